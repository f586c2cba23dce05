package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// system are the paths of the system that programs need: programs, libraries and settings. Set once.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store",
	"/run/current-system"}

// devices are the harmless devices. Set once.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// buildRoot builds a root file system with only what the command may see, and moves into it.
func buildRoot(c Command) error {
	root := filepath.Join(c.Scratch, "root")
	if err := unix.Mount("tmpfs", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=1m"); err != nil {
		return fmt.Errorf("root: %w", err)
	}
	b := rootBuilder{root: root}
	b.bind(filepath.Join(c.Scratch, "tmp"), "/tmp", true)
	for _, dir := range append(system[:len(system):len(system)], c.Readable...) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrPermission) { // otherwise its user cannot see it outside either
			b.bind(dir, dir, false)
		}
	}
	b.addDevices()
	b.bind(c.Workspace, c.Workspace, c.Mode == WorkspaceWrite)
	for _, path := range c.Kept {
		if c.Mode == WorkspaceWrite {
			b.bind(path, path, false)
		}
	}
	b.do("root", func() error { return unix.Chdir(root) })
	b.do("root", func() error { return unix.PivotRoot(".", ".") })
	b.do("the old root", func() error { return unix.Unmount(".", unix.MNT_DETACH) })
	b.do("root", func() error { return os.Chdir("/") })
	b.do("root", func() error { return readOnly("/", 0) })
	return b.err
}

// hide mounts an empty directory over each hidden one. It comes first, so that a later bind of a directory above shows
// the empty one too. A process without the privilege to mount cannot remove such a mount, not even in a namespace of
// its own.
func hide(dirs []string) error {
	for _, dir := range dirs {
		err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY,
			"mode=555,size=4k")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("hide %s: %w", dir, err)
		}
	}
	return nil
}

// A rootBuilder builds a root file system. After the first error it does nothing more.
type rootBuilder struct {
	root string
	err  error
}

func (b *rootBuilder) do(what string, act func() error) {
	if b.err != nil {
		return
	}
	if err := act(); err != nil {
		b.err = fmt.Errorf("%s: %w", what, err)
	}
}

// bind mounts a directory or file from outside, if it exists. A link is copied.
func (b *rootBuilder) bind(from, at string, writable bool) {
	b.do(at, func() error {
		info, err := os.Lstat(from)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		to := filepath.Join(b.root, at)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(from)
			if err != nil {
				return err
			}
			if err = os.Symlink(target, to); errors.Is(err, fs.ErrExist) {
				return nil
			}
			return err
		}
		if err := mountPoint(to, info.IsDir()); err != nil {
			return err
		}
		if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return err
		}
		if writable {
			return unix.MountSetattr(unix.AT_FDCWD, to, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID})
		}
		return readOnly(to, unix.AT_RECURSIVE)
	})
}

// mountPoint makes an empty file or directory to mount on.
func mountPoint(path string, dir bool) error {
	if dir {
		return os.MkdirAll(path, 0o755)
	}
	if _, err := os.Lstat(path); err == nil { // a mount point need not be readable
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// readOnly makes a mount read-only.
func readOnly(path string, flags uint) error {
	return unix.MountSetattr(unix.AT_FDCWD, path, flags,
		&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID})
}

// addDevices makes /proc and /dev.
func (b *rootBuilder) addDevices() {
	for _, device := range devices {
		b.do(device, func() error {
			to := filepath.Join(b.root, device)
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			if err := mountPoint(to, false); err != nil {
				return err
			}
			return unix.Mount(device, to, "", unix.MS_BIND, "")
		})
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0",
		"stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		b.do("/dev/"+name, func() error { return os.Symlink(target, filepath.Join(b.root, "dev", name)) })
	}
	for _, made := range []struct{ at, kind, options string }{{"proc", "proc", ""},
		{"dev/shm", "tmpfs", "mode=1777,size=256m"}} {
		b.do("/"+made.at, func() error {
			to := filepath.Join(b.root, made.at)
			if err := os.MkdirAll(to, 0o755); err != nil {
				return err
			}
			return unix.Mount(made.kind, to, made.kind, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, made.options)
		})
	}
}

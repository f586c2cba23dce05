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
	if c.Mode == WorkspaceWrite {
		b.overlay(c)
	} else {
		b.bind(c.Workspace, c.Workspace, false)
	}
	b.do("root", func() error { return unix.Chdir(root) })
	b.do("root", func() error { return unix.PivotRoot(".", ".") })
	b.do("the old root", func() error { return unix.Unmount(".", unix.MNT_DETACH) })
	b.do("root", func() error { return os.Chdir("/") })
	b.do("root", func() error { return readOnly("/", 0) })
	return b.err
}

// overlay mounts the workspace so that all writes go to a new layer (see [Scratch.Changed]). What former commands left
// in the private layer lies beneath it.
func (b *rootBuilder) overlay(c Command) {
	b.do("overlay of the workspace", func() error {
		to := filepath.Join(b.root, c.Workspace)
		if err := os.Chdir(filepath.Join(c.Scratch, layerName)); err != nil {
			return err
		}
		for _, name := range []string{lowerName, privateName, upperName, workName} {
			if err := os.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
		if err := unix.Mount(c.Workspace, lowerName, "", unix.MS_BIND, ""); err != nil { // its path may have colons
			return err
		}
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		err := unix.Mount("overlay", to, "overlay", unix.MS_NOSUID|unix.MS_NODEV, "userxattr,index=off,lowerdir="+
			lowerName+":"+privateName+",upperdir="+upperName+",workdir="+workName)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ELOOP) {
			err = fmt.Errorf("%w; the directory for temporary files (TMPDIR) must be on a file system such as ext4, XFS, "+
				"Btrfs or tmpfs, and outside of the workspace", err)
		}
		return err
	})
}

// targets returns the hidden paths without links. What the command cannot reach is left out.
func targets(hidden []string) ([]string, error) {
	var all []string
	for _, path := range hidden {
		switch real, err := filepath.EvalSymlinks(path); {
		case err == nil:
			all = append(all, real)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
			return nil, fmt.Errorf("hide %s: %w", path, err)
		}
	}
	return all, nil
}

// hide mounts an empty directory or file over each path that is there. A process without the privilege to mount cannot
// remove such a mount, not even in a namespace of its own.
func hide(paths []string) error {
	for _, path := range paths {
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
			continue
		case err == nil && info.IsDir():
			err = unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY,
				"mode=555,size=4k")
		case err == nil:
			err = unix.Mount(os.DevNull, path, "", unix.MS_BIND, "")
		}
		if err != nil {
			return fmt.Errorf("hide %s: %w", path, err)
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

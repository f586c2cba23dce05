package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// system is what programs need of the system: themselves, their libraries and their settings. Set once, as all here.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store",
	"/run/current-system"}

// devices are those that harm nobody.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// house makes a root of the file system in which only what the command may see stands, and moves into it.
func house(c Command) error {
	root := filepath.Join(c.Scratch, "root")
	if err := unix.Mount("tmpfs", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=1m"); err != nil {
		return fmt.Errorf("root: %w", err)
	}
	h := housing{root: root}
	h.mirror(filepath.Join(c.Scratch, "tmp"), "/tmp", true)
	for _, dir := range append(system[:len(system):len(system)], c.Readable...) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrPermission) { // its user could not see it outside either
			h.mirror(dir, dir, false)
		}
	}
	h.furnish()
	h.mirror(c.Workspace, c.Workspace, c.Mode == WorkspaceWrite)
	for _, path := range c.Kept {
		if c.Mode == WorkspaceWrite {
			h.mirror(path, path, false)
		}
	}
	h.do("root", func() error { return unix.Chdir(root) })
	h.do("root", func() error { return unix.PivotRoot(".", ".") })
	h.do("the old root", func() error { return unix.Unmount(".", unix.MNT_DETACH) })
	h.do("root", func() error { return os.Chdir("/") })
	h.do("root", func() error { return readOnly("/", 0) })
	return h.err
}

// hide lays an empty directory over each that a command must not see, before anything is shown to it: what shows it a
// directory above shows that one too. A process that has given up the right to mount cannot take it away
// again, not even in a namespace of its own.
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

// A housing builds a root. After the first error it does nothing more.
type housing struct {
	root string
	err  error
}

func (h *housing) do(what string, act func() error) {
	if h.err != nil {
		return
	}
	if err := act(); err != nil {
		h.err = fmt.Errorf("%s: %w", what, err)
	}
}

// mirror shows a directory or file of outside, if it is there. A link is made anew.
func (h *housing) mirror(from, at string, writable bool) {
	h.do(at, func() error {
		about, err := os.Lstat(from)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		to := filepath.Join(h.root, at)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if about.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(from)
			if err != nil {
				return err
			}
			if err = os.Symlink(target, to); errors.Is(err, fs.ErrExist) {
				return nil
			}
			return err
		}
		if err := place(to, about.IsDir()); err != nil {
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

// place makes what something can be mounted on.
func place(path string, dir bool) error {
	if dir {
		return os.MkdirAll(path, 0o755)
	}
	if _, err := os.Lstat(path); err == nil { // to be mounted on, it need not be readable
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

func readOnly(path string, flags uint) error {
	return unix.MountSetattr(unix.AT_FDCWD, path, flags,
		&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID})
}

// furnish makes /proc and /dev.
func (h *housing) furnish() {
	for _, device := range devices {
		h.do(device, func() error {
			to := filepath.Join(h.root, device)
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			if err := place(to, false); err != nil {
				return err
			}
			return unix.Mount(device, to, "", unix.MS_BIND, "")
		})
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0",
		"stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		h.do("/dev/"+name, func() error { return os.Symlink(target, filepath.Join(h.root, "dev", name)) })
	}
	for _, made := range []struct{ at, kind, options string }{{"proc", "proc", ""},
		{"dev/shm", "tmpfs", "mode=1777,size=256m"}} {
		h.do("/"+made.at, func() error {
			to := filepath.Join(h.root, made.at)
			if err := os.MkdirAll(to, 0o755); err != nil {
				return err
			}
			return unix.Mount(made.kind, to, made.kind, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, made.options)
		})
	}
}

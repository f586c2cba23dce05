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
	for _, step := range []func() error{
		func() error { return os.Chdir(root) },
		func() error { return unix.PivotRoot(".", ".") },
		func() error { return unix.Unmount(".", unix.MNT_DETACH) }, // the old root
		func() error { return os.Chdir("/") },
		func() error { return restrict("/", 0, unix.MOUNT_ATTR_RDONLY) },
	} {
		b.do("root", step)
	}
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
		return noOverlay(unix.Mount("overlay", to, "overlay", unix.MS_NOSUID|unix.MS_NODEV, "userxattr,index=off,lowerdir="+
			lowerName+":"+privateName+",upperdir="+upperName+",workdir="+workName))
	})
}

// noOverlay adds to an error of mounting overlayfs what to do about it.
func noOverlay(err error) error {
	switch err {
	case unix.EINVAL, unix.ELOOP:
		return fmt.Errorf("%w; the directory for temporary files (TMPDIR) must be on a file system such as ext4, XFS, "+
			"Btrfs or tmpfs, and outside of the workspace", err)
	case unix.EPERM, unix.ENODEV:
		return errors.New("the kernel lets no user mount overlayfs; it needs Linux 5.11 and the module overlay")
	}
	return err
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
			return restrict(to, unix.AT_RECURSIVE, 0)
		}
		return restrict(to, unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY)
	})
}

// mountPoint makes an empty file or directory to mount on.
func mountPoint(path string, dir bool) error {
	if dir {
		return os.MkdirAll(path, 0o755)
	}
	if _, err := os.Lstat(path); err == nil { // it need not be readable
		return nil
	}
	return os.WriteFile(path, nil, 0o644)
}

// restrict takes the right to set users from a mount, and more.
func restrict(path string, flags uint, more uint64) error {
	return unix.MountSetattr(unix.AT_FDCWD, path, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | more})
}

// addDevices makes /proc and /dev.
func (b *rootBuilder) addDevices() {
	for _, device := range devices {
		b.bind(device, device, true)
	}
	for name, target := range map[string]string{"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"} {
		b.do("/dev", func() error { return os.Symlink("/proc/self/fd"+target, filepath.Join(b.root, "dev", name)) })
	}
	for kind, at := range map[string]string{"proc": "/proc", "tmpfs": "/dev/shm"} {
		b.do(at, func() error {
			options := map[string]string{"tmpfs": "mode=1777,size=256m"}[kind]
			at = filepath.Join(b.root, at)
			return errors.Join(os.MkdirAll(at, 0o755),
				unix.Mount(kind, at, kind, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, options))
		})
	}
}

package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// checkEvery is the shortest interval between two measurements. Slow measurements are made less often.
const checkEvery = 100 * time.Millisecond

// killed is the exit code of a command that used too much memory.
const killed = 128 + int(syscall.SIGKILL)

// errMemory means that a command used too much memory, or that this cannot be measured.
var errMemory = errors.New("too much memory")

// watch stops a command when it is over a limit, until ctx ends.
func watch(ctx context.Context, stop context.CancelCauseFunc, over func() error) {
	for took := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(checkEvery, 10*took)):
		}
		began := time.Now()
		if err := over(); err != nil {
			stop(err)
		}
		took = time.Since(began)
	}
}

// tooMuchMemory returns an error if the processes of a process namespace, of which this is the /proc, use too much
// memory, without mapped files. Shared memory counts for each process; the first process is the helper.
func tooMuchMemory(processes *os.Root, l Limits) error {
	all, err := fs.ReadDir(processes.FS(), ".")
	if err != nil {
		return errMemory
	}
	var used int64
	for _, e := range all {
		if pid, err := strconv.Atoi(e.Name()); err != nil || pid == 1 {
			continue
		}
		status, err := processes.ReadFile(e.Name() + "/status")
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			return errMemory
		}
		for line := range strings.Lines(string(status)) {
			if field := strings.Fields(line); len(field) == 3 && (field[0] == "RssAnon:" || field[0] == "RssShmem:") {
				kib, _ := strconv.ParseInt(field[1], 10, 64)
				used += kib << 10
			}
		}
	}
	if used > l.Memory {
		return errMemory
	}
	return nil
}

// written are the directories of a scratch directory that a command writes to.
var written = []string{"tmp", layerName} // Set once

// wroteTooMuch returns [ErrTmp] if the files of a command use too much disk.
func (c Command) wroteTooMuch() error {
	left := c.Limits.Tmp
	for _, name := range written {
		if left -= size(filepath.Join(c.Scratch, name), left); left < 0 {
			return ErrTmp
		}
	}
	return nil
}

// tidy removes all files of a command that has ended if they are too much, and returns [ErrTmp] then.
func (c Command) tidy() error {
	err := c.wroteTooMuch()
	if err == nil {
		return nil
	}
	for _, name := range written {
		dir := filepath.Join(c.Scratch, name)
		entries, unread := os.ReadDir(dir)
		err = errors.Join(err, unread)
		for _, e := range entries {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// size returns how many bytes of disk the files below a directory use, each at least some; more than limit if that
// cannot be measured. It follows no links, and makes unreadable directories readable.
func size(dir string, limit int64) (sum int64) {
	const least = 4 << 10 // what the smallest file takes of the file system's own tables
	_ = os.Chmod(dir, 0o700)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return limit + 1
	}
	defer func() { _ = root.Close() }()
	err = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = e.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil {
			return err
		}
		if info.IsDir() && info.Mode()&0o700 != 0o700 { // count what is in it
			_ = root.Chmod(name, 0o700)
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			sum += max(s.Blocks*512, least)
		}
		if sum > limit {
			return fs.SkipAll
		}
		return nil
	})
	if err != nil {
		return limit + 1
	}
	return sum
}

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// checkEvery is the shortest interval between two measurements. Slow measurements are made less often.
const checkEvery = 100 * time.Millisecond

// pause waits until the next measurement, after one that took so long. It returns false if ctx has ended.
func pause(ctx context.Context, took time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(max(checkEvery, 10*took)):
		return true
	}
}

// watchMemory ends this process, and with it all that it started, when they use too much memory. Shared memory counts
// for each process.
func watchMemory(l Limits) {
	for {
		began := time.Now()
		if used := memory(); used > l.Memory {
			reportMemory(os.Stderr, l)
			os.Exit(killed)
		}
		pause(context.Background(), time.Since(began))
	}
}

// killed is the exit code of a command that used too much memory.
const killed = 128 + int(syscall.SIGKILL)

// reportMemory writes to the output of a command why it was ended.
func reportMemory(out io.Writer, l Limits) {
	_, _ = fmt.Fprintf(out, "\nThe command used more than %d MiB of memory and was ended, with everything that it had "+
		"begun.\n", l.Memory>>20)
}

// memory returns how many bytes of memory all processes but this one use, without the mapped files.
func memory() int64 {
	var used int64
	all, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, file := range all {
		if file == "/proc/1/status" {
			continue
		}
		status, _ := os.ReadFile(file) // empty if the process has ended
		for line := range bytes.Lines(status) {
			for _, field := range []string{"RssAnon:", "RssShmem:"} {
				if text, ok := bytes.CutPrefix(line, []byte(field)); ok {
					kib, _ := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(text), []byte(" kB"))), 10, 64)
					used += kib << 10
				}
			}
		}
	}
	return used
}

// watchTmp stops a command when its /tmp is full, until ctx ends.
func watchTmp(ctx context.Context, c Command, stop context.CancelCauseFunc) {
	for took := time.Duration(0); pause(ctx, took); {
		began := time.Now()
		if size(c.tmp()) > c.Limits.Tmp {
			stop(ErrTmp)
		}
		took = time.Since(began)
	}
}

// tidyTmp empties the /tmp of a command that has ended if it is full, and returns [ErrTmp] then.
func tidyTmp(c Command) error {
	if size(c.tmp()) <= c.Limits.Tmp {
		return nil
	}
	entries, err := os.ReadDir(c.tmp())
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(c.tmp(), e.Name())))
	}
	return errors.Join(ErrTmp, err)
}

// tmp returns the path of the /tmp of a command outside the sandbox.
func (c Command) tmp() string { return filepath.Join(c.Scratch, "tmp") }

// size returns how many bytes of disk the files below a directory use. It follows no links, and makes unreadable
// directories readable.
func size(dir string) int64 {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0
	}
	defer func() { _ = root.Close() }()
	var sum int64
	_ = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // removed meanwhile
		}
		info, err := e.Info()
		if err != nil {
			return nil
		}
		if info.IsDir() && info.Mode()&0o700 != 0o700 { // count what is in it
			_ = root.Chmod(name, 0o700)
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			sum += s.Blocks * 512
		}
		return nil
	})
	return sum
}

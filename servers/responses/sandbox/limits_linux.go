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

// lookEvery is how often it is looked how much a command uses. A look that takes long is taken less often.
const lookEvery = 100 * time.Millisecond

// pause waits until the next look. It reports whether there is one.
func pause(ctx context.Context, looked time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(max(lookEvery, 10*looked)):
		return true
	}
}

// watchMemory ends this process, and with it all that it began, when they use too much memory. What several use
// together is counted for each.
func watchMemory(l Limits) {
	for {
		began := time.Now()
		if used := memory(); used > l.Memory {
			tellMemory(os.Stderr, l)
			os.Exit(killed)
		}
		pause(context.Background(), time.Since(began))
	}
}

// killed is the exit code of a command that used too much memory.
const killed = 128 + int(syscall.SIGKILL)

// tellMemory says at the end of a command's output why it was ended.
func tellMemory(out io.Writer, l Limits) {
	_, _ = fmt.Fprintf(out, "\nThe command used more than %d MiB of memory and was ended, with everything that it had "+
		"begun.\n", l.Memory>>20)
}

// memory is how many bytes all processes but this one use of their own.
func memory() int64 {
	var used int64
	all, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, file := range all {
		if file == "/proc/1/status" {
			continue
		}
		status, _ := os.ReadFile(file) // it may have ended
		for line := range bytes.Lines(status) {
			for _, row := range []string{"RssAnon:", "RssShmem:"} {
				if text, ok := bytes.CutPrefix(line, []byte(row)); ok {
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
	for looked := time.Duration(0); pause(ctx, looked); {
		began := time.Now()
		if size(c.tmp()) > c.Limits.Tmp {
			stop(ErrTmp)
		}
		looked = time.Since(began)
	}
}

// tidyTmp empties the /tmp of a command that has ended when it is full, and returns [ErrTmp] then.
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

// tmp is where the /tmp of a command lies outside.
func (c Command) tmp() string { return filepath.Join(c.Scratch, "tmp") }

// size is how much room the files below a directory take, in bytes. Links are not followed, directories that cannot be
// read are made readable.
func size(dir string) int64 {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0
	}
	defer func() { _ = root.Close() }()
	var sum int64
	_ = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // it has gone
		}
		about, err := e.Info()
		if err != nil {
			return nil
		}
		if about.IsDir() && about.Mode()&0o700 != 0o700 { // nothing hides in it
			_ = root.Chmod(name, 0o700)
		}
		if s, ok := about.Sys().(*syscall.Stat_t); ok {
			sum += s.Blocks * 512
		}
		return nil
	})
	return sum
}

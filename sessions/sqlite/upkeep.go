package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

const (
	copyPrefix, copySuffix = fileName + ".", ".copy"
	copyTemp               = fileName + ".copying"
	copiesKept             = 3

	copyEvery  = time.Hour
	copySpare  = 16 << 20 // bytes that stay free beside a copy, so that work goes on
	sweepEvery = time.Minute
	// clockJump is how far the wall clock may go ahead between two looks without being doubted, and doubtFor how long
	// nothing is deleted then: a clock that is wrong may be set back, but what was deleted is gone.
	clockJump = 24 * time.Hour
	doubtFor  = time.Hour
	sweepSize = 200 // rows that one sweep deletes; a person may wait for the writer meanwhile
)

// upkeep maintains the file each second, minute and day. Owned by the holder of the upkeep token.
type upkeep struct {
	*file
	historyFor time.Duration // Set once; how long history is kept
	threadsFor time.Duration // Set once; how long threads are kept
	swept      time.Time     // when a sweep last found nothing more to delete
	clock      clock
	copyAt     time.Time // when it is looked next whether the day has a copy
	copyErr    error     // of the last look
	failing    bool      // the last tick had an error, which was logged
}

// tick does the upkeep that is due. An error, such as of a full disk, is logged once, and the upkeep is tried again.
// It returns an error only if the lock of the directory is gone.
func (s *upkeep) tick(ctx context.Context) error {
	if !s.dir.Held() {
		s.lockLost.Store(true)
		return fmt.Errorf("the lock of the state directory %s was removed or replaced while this Switchboard used it; this "+
			"one ends", s.dir.Path)
	}
	err := errors.Join(s.checkpoint(ctx), s.sweep(ctx), s.copyDaily(ctx))
	switch {
	case ctx.Err() != nil:
	case err != nil && !s.failing:
		s.failing = true
		s.log.Error("the file of the sessions cannot be kept", zap.String("file", s.path), zap.Error(err))
	case err == nil && s.failing:
		s.failing = false
		s.log.Info("the file of the sessions is kept again", zap.String("file", s.path))
	}
	return nil
}

// checkpoint moves changes from the log into the file, as far as no reader needs them in the log.
func (s *upkeep) checkpoint(ctx context.Context) error {
	if !s.dirty.Swap(false) {
		return nil
	}
	var busy, frames, moved int
	row := s.checkpointer.QueryRowContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
	if err := row.Scan(&busy, &frames, &moved); err != nil {
		s.dirty.Store(true)
		err = fmt.Errorf("move the log: %w", err)
		if ctx.Err() == nil {
			s.checkpointErr.Store(&err)
		}
		return err
	}
	s.checkpointErr.Store(nil)
	if moved < frames {
		s.dirty.Store(true)
	}
	return nil
}

// Kept returns why changes cannot be moved from the log into the file, such as a full disk, or nil. The log may still
// have room for small changes then, but not for most work. The state is at most about a second old.
func (f *file) Kept() error {
	if err := f.checkpointErr.Load(); err != nil {
		return f.fault(*err)
	}
	return nil
}

// A clock is what is known of the clock on the wall. It is pure.
type clock struct {
	seen    time.Time // when it was looked at last; zero: never
	doubted time.Time // until when it may be wrong
}

// isDoubted reports whether the clock may be wrong now. It has skipped so much since the last look.
func (c *clock) isDoubted(now time.Time, skipped time.Duration) bool {
	if !c.seen.IsZero() && skipped > clockJump {
		c.doubted = now.Add(doubtFor)
	}
	c.seen = now
	return now.Before(c.doubted)
}

// sweep deletes some of what is too old. After it has found nothing more, it pauses for a minute.
func (s *upkeep) sweep(ctx context.Context) error {
	now := time.Now()
	if s.clock.isDoubted(now, handoff.Skipped(s.clock.seen, now)) || now.Sub(s.swept) < sweepEvery {
		return nil
	}
	left := false
	err := s.change(ctx, func(ctx context.Context, tx transaction) error {
		before := now.Add(-s.historyFor).UnixMilli()
		for _, old := range []struct {
			rows   string
			before int64
		}{
			{"at <= ?1 ORDER BY at LIMIT ?2", before},
			{"unkept = 1 AND at <= ?1 ORDER BY at LIMIT ?2", now.Add(-ledger.KeyFor).UnixMilli()},
		} {
			rows := "FROM past WHERE " + old.rows + ")"
			for _, forget := range []string{
				"DELETE FROM texts WHERE (caller, key) IN (SELECT caller, key ",
				"DELETE FROM history_words WHERE rowid IN (SELECT id ", "DELETE FROM past WHERE id IN (SELECT id ",
			} {
				n, err := affected(tx.ExecContext(ctx, forget+rows, old.before, sweepSize))
				if err != nil {
					return err
				}
				left = left || n >= sweepSize
			}
		}
		more, err := forgetThreads(ctx, tx, now.Add(-s.threadsFor))
		if err != nil {
			return err
		}
		left = left || more
		if err := forgetSaid(ctx, tx, "SELECT id FROM said WHERE at <= ? ORDER BY at LIMIT ?", before,
			sweepSize); err != nil {
			return err
		}
		for _, forget := range []struct {
			what   string
			before int64
		}{
			{"DELETE FROM docs WHERE caller IN (SELECT name FROM callers WHERE ends <= ?)", now.UnixMilli()},
			{"DELETE FROM callers WHERE ends <= ?", now.UnixMilli()},
			{"DELETE FROM vals WHERE ends <= ?", now.UnixMilli()},
			{"DELETE FROM owned WHERE id <= (SELECT max(id) FROM owned) - ?", ledger.MaxOwned},
			{"DELETE FROM documents WHERE ends <= ?", now.UnixMilli()},
			{"DELETE FROM spent WHERE changed <= ?", now.Add(-sessions.SpentFor).UnixMilli()},
		} {
			if _, err := tx.ExecContext(ctx, forget.what, forget.before); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && !left {
		s.swept = now
	}
	return err
}

// copyDaily makes the day's copy if there is none, and removes the oldest copies. It looks once an hour: a try that
// fails may write until the disk is full.
func (s *upkeep) copyDaily(ctx context.Context) error {
	if time.Now().Before(s.copyAt) {
		return s.copyErr
	}
	s.copyAt, s.copyErr = time.Now().Add(copyEvery), nil
	name := copyOf(today())
	if slices.Contains(s.copies(), name) {
		return nil
	}
	if err := s.copyTo(ctx, name); err != nil {
		s.copyErr = fmt.Errorf("copy %s: %w", s.path, err)
		return s.copyErr
	}
	s.counts.copies.Add(1)
	all := s.copies()
	for _, name := range all[:max(len(all)-copiesKept, 0)] {
		if err := s.dir.Root().Remove(name); err != nil {
			return err
		}
	}
	return nil
}

func today() string { return time.Now().UTC().Format(time.DateOnly) }

// copyOf returns the file name of the copy of a day.
func copyOf(day string) string { return copyPrefix + day + copySuffix }

// copyTo writes a copy to a file name, whole or not at all.
func (f *file) copyTo(ctx context.Context, name string) error {
	about, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	if room, err := sessions.RoomOf(f.dir.Path); err == nil && room < uint64(about.Size())+copySpare {
		return fmt.Errorf("no room on the disk: %d bytes are free", room)
	}
	root := f.dir.Root()
	temp, err := root.OpenFile(copyTemp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, fileMode) // VACUUM INTO accepts an empty file
	if err != nil {
		return err
	}
	defer func() { _ = temp.Close() }() // only synced
	_, err = f.checkpointer.ExecContext(ctx, "VACUUM INTO ?", filepath.Join(f.dir.Path, copyTemp))
	if err == nil {
		err = temp.Sync()
	}
	if err == nil {
		err = root.Rename(copyTemp, name)
	}
	if err != nil {
		if gone := root.Remove(copyTemp); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// copies returns the file names of the copies, oldest first. Copies with a future date come first: they were made
// while the clock was wrong, and may be older than any other.
func (f *file) copies() []string {
	entries, err := fs.ReadDir(f.dir.Root().FS(), ".")
	if err != nil {
		return nil
	}
	var all []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), copyPrefix) && strings.HasSuffix(e.Name(), copySuffix) {
			all = append(all, e.Name())
		}
	}
	slices.Sort(all)
	future, found := slices.BinarySearch(all, copyOf(today()))
	if found {
		future++
	}
	return slices.Concat(all[future:], all[:future])
}

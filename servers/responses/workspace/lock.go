package workspace

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
)

// A dirLock is the lock of a directory for one edit or command at a time. A full channel is locked.
type dirLock chan struct{}

// lock locks the workspace and those that overlap with it, so that no other command or edit runs there until done.
func (w *Workspace) lock(ctx context.Context) (done func(), err error) {
	var locked []dirLock
	done = func() {
		for _, t := range slices.Backward(locked) {
			<-t
		}
	}
	for _, t := range w.locks { // every workspace locks in the order of their creation
		select {
		case t <- struct{}{}:
			locked = append(locked, t)
		case <-ctx.Done():
			done()
			return nil, context.Cause(ctx)
		}
	}
	return done, nil
}

// makeLocks makes the lock of a new workspace, and finds those of the others that it overlaps with.
func (w *Workspace) makeLocks(others []*Workspace) {
	for _, o := range others {
		if within(w.dir, o.dir) || within(o.dir, w.dir) {
			w.locks = append(w.locks, o.locks[len(o.locks)-1]) // its own
		}
	}
	w.locks = append(w.locks, make(dirLock, 1))
}

// within reports whether a directory is the same as another one or inside it.
func within(inner, outer string) bool {
	rel, err := filepath.Rel(outer, inner)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

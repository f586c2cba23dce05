package workspace

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
)

// A turn is the lock of a directory for one edit or command at a time. A full channel is locked.
type turn chan struct{}

// alone locks the workspace and those that overlap with it, so that no other command or edit runs there until done.
func (w *Workspace) alone(ctx context.Context) (done func(), err error) {
	var locked []turn
	done = func() {
		for _, t := range slices.Backward(locked) {
			<-t
		}
	}
	for _, t := range w.turns { // every workspace locks in the order of their creation
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

// takeTurns makes the lock of a new workspace, and finds those of the others that it overlaps with.
func (w *Workspace) takeTurns(others []*Workspace) {
	for _, o := range others {
		if within(w.dir, o.dir) || within(o.dir, w.dir) {
			w.turns = append(w.turns, o.turns[len(o.turns)-1]) // its own
		}
	}
	w.turns = append(w.turns, make(turn, 1))
}

// within reports whether a directory is the same as another one or inside it.
func within(inner, outer string) bool {
	rel, err := filepath.Rel(outer, inner)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

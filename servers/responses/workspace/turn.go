package workspace

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
)

// A turn is the lock of a directory for one edit or command at a time: a full channel is locked.
type turn chan struct{}

// alone waits until no command and no edit of this directory is left, nor of another workspace in or around it.
func (w *Workspace) alone(ctx context.Context) (done func(), err error) {
	var had []turn
	done = func() {
		for _, t := range slices.Backward(had) {
			<-t
		}
	}
	for _, t := range w.turns { // all have them in the order in which they were made
		select {
		case t <- struct{}{}:
			had = append(had, t)
		case <-ctx.Done():
			done()
			return nil, context.Cause(ctx)
		}
	}
	return done, nil
}

// takeTurns makes the turn of a workspace that opens, and finds those of the others that it overlaps with.
func (w *Workspace) takeTurns(others []*Workspace) {
	for _, o := range others {
		if within(w.dir, o.dir) || within(o.dir, w.dir) {
			w.turns = append(w.turns, o.turns[len(o.turns)-1]) // its own
		}
	}
	w.turns = append(w.turns, make(turn, 1))
}

// within reports whether a directory is another one or in it.
func within(inner, outer string) bool {
	rel, err := filepath.Rel(outer, inner)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

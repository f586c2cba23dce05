package servers

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers/trees"
)

// Bounds of what is done beside the making of a worktree.
const (
	undoTimeout = 10 * time.Second // to remove one whose session was not made
	goneTimeout = 2 * time.Second  // to find out whether one was removed
	// worksFor is how long after its last change a session may be at work, also if its server does not say so, and
	// idleFor how long it is left alone if its server says that it is idle: more may be asked there.
	worksFor = time.Hour
	idleFor  = 5 * time.Minute
	// tidyEvery is how often worktrees are looked for whose work is merged, on machines that have some.
	tidyEvery = time.Minute
)

// CreateIn implements [handoff.Planter].
func (f *Fleet) CreateIn(ctx context.Context, t handoff.Target, name string, always bool) (handoff.Attached, error) {
	k, fault := f.now.Load().connector(t.Server)
	if fault != nil {
		return handoff.Attached{}, fault
	}
	if !always && !k.spec.Worktrees[t.Project] {
		return f.Create(ctx, t)
	}
	return f.create(ctx, t, func(c Conn, ctx context.Context, dir string) (handoff.Attached, error) {
		git, fault := k.git(c)
		if fault != nil {
			return handoff.Attached{}, fault
		}
		w, err := trees.Add(ctx, git, dir, name)
		if err != nil {
			return handoff.Attached{}, k.named(err)
		}
		a, err := c.Create(ctx, w.Directory)
		if err != nil { // nothing was done in it, so nothing is lost
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
			defer cancel()
			if err := trees.Remove(ctx, git, w); err != nil {
				f.log.Info("worktree without a session stays", zap.String("server", t.Server), zap.Error(err))
			}
			return handoff.Attached{}, err
		}
		return a, nil
	})
}

// git returns what runs git on the machine of a connection.
func (k *connector) git(c Conn) (trees.Git, *handoff.Error) {
	g, ok := c.(Gitter)
	if !ok {
		return nil, trees.Cannot(k.spec.Name, "agents of its kind have one directory and no worktrees",
			"Ask without a worktree; nothing was run.")
	}
	return g.Git, nil
}

// named returns an error about git with the name of the machine.
func (k *connector) named(err error) *handoff.Error {
	fault := *handoff.AsError(err)
	fault.Subject = k.spec.Name
	return &fault
}

// tidy removes the worktrees beside a repository whose work is merged and that no session uses. Without a list of the
// sessions, it removes none.
func (f *Fleet) tidy(ctx context.Context, k *connector, git trees.Git, of string) {
	list, fault := f.lists.list(ctx, k, listTimeout)
	if fault != nil {
		return
	}
	now := time.Now()
	if n := trees.Tidy(ctx, git, &handoff.Worktree{Of: of}, now, func(w *handoff.Worktree) (known, works bool) {
		return usedIn(list, w, now)
	}); n > 0 {
		f.lists.outdate(k.spec.Name)
		f.change()
		f.log.Info("worktrees of merged work removed", zap.String("server", k.spec.Name), zap.Int("number", n))
	}
}

// keepTidy calls tidyAll until ctx ends.
func (f *Fleet) keepTidy(ctx context.Context) {
	for tick := time.Tick(tidyEvery); ; {
		select {
		case <-tick:
			f.tidyAll(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// tidyAll removes the worktrees whose work is merged. A machine is asked only if its last list has a session in one.
func (f *Fleet) tidyAll(ctx context.Context) {
	for _, k := range f.now.Load().connectors {
		of := map[string]bool{} // repositories
		for _, t := range f.lists.cached(k.spec.Name).threads {
			if w := handoff.WorktreeAt(t.Dir); w != nil {
				of[w.Of] = true
			}
		}
		link := k.now.Load().link
		if len(of) == 0 || link == nil {
			continue
		}
		git, fault := k.git(link.Conn)
		for dir := range of {
			if fault == nil {
				f.tidy(ctx, k, git, dir)
			}
		}
	}
}

// usedIn reports whether a list has a session in a worktree, and whether one may be at work.
func usedIn(list []namedThread, w *handoff.Worktree, now time.Time) (known, works bool) {
	for _, t := range list {
		if inside(t.Dir, w.Root) {
			quiet := worksFor
			if t.Status == handoff.SessionIdle {
				quiet = idleFor
			}
			known, works = true, works || now.Sub(t.Updated) < quiet || runs(t)
		}
	}
	return known, works
}

// runs reports whether a session runs a turn, as far as its server says.
func runs(t namedThread) bool {
	return t.Status == handoff.SessionRunning || t.Status == handoff.SessionWaiting
}

// RemoveWorktree removes the worktree of a session, which may be named as people do, and its branch, unless a session
// is at work there or something would be lost; see [trees.Remove]. A worktree that is gone already is no error.
func (f *Fleet) RemoveWorktree(ctx context.Context, g handoff.Grant, t handoff.Target) error {
	t, err := f.Resolve(ctx, g, t)
	if err != nil {
		return err
	}
	k, err := f.allowedOne(g, t.Server)
	if err != nil {
		return err
	}
	return f.alter(ctx, g, handoff.ActGive, t, func(ctx context.Context, c Catalog) error {
		text, err := c.Read(ctx, t.Thread, 1)
		if err != nil {
			return err
		}
		w := handoff.WorktreeAt(text.Thread.Dir)
		if w == nil {
			return handoff.Fault(handoff.CodeNotFound, "worktree of that session", "")
		}
		list, fault := f.lists.list(ctx, k, listTimeout)
		if fault != nil {
			return fault
		}
		if slices.ContainsFunc(list, func(t namedThread) bool { return inside(t.Dir, w.Root) && runs(t) }) {
			return handoff.Fault(handoff.CodeBusy, t.Server, "a session works in that worktree")
		}
		link, fault := k.link(ctx, true)
		if fault != nil {
			return fault
		}
		git, fault := k.git(link.Conn)
		if fault != nil {
			return fault
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), trees.Takes) // of a large one it takes long
		defer cancel()
		if err := trees.Remove(ctx, git, w); err != nil {
			return k.named(err)
		}
		return nil
	})
}

// checkTree returns an error for a session whose worktree was removed: it cannot go on. If that is not known, it
// returns nil.
func (f *Fleet) checkTree(ctx context.Context, k *connector, a handoff.Attached) *handoff.Error {
	w := handoff.WorktreeAt(a.Workspace)
	link, fault := k.link(ctx, false)
	if w == nil || fault != nil {
		return nil
	}
	git, fault := k.git(link.Conn)
	if fault != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, goneTimeout)
	defer cancel()
	if gone, err := trees.Gone(ctx, git, w); !gone || err != nil {
		return nil
	}
	return handoff.Fault(handoff.CodeSessionGone, sayable(a.Title), "its worktree "+w.Root+" was removed")
}

var _ handoff.Planter = (*Fleet)(nil)

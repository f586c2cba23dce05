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
	made := false // in one of two tries
	return f.create(ctx, t, func(k *connector, ctx context.Context, c Conn, dir string) (handoff.Attached, error) {
		git, fault := k.git(c)
		if fault != nil {
			return handoff.Attached{}, fault
		}
		w, fresh, err := trees.Add(ctx, git, dir, name)
		made = made || fresh // else a session of an earlier request has it
		if err != nil {
			return handoff.Attached{}, err
		}
		a, err := k.create(ctx, c, w.Directory)
		if err != nil && made { // nothing was done in it, so nothing is lost
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
			defer cancel()
			if err := trees.Remove(ctx, git, w); err != nil {
				f.log.Info("worktree without a session stays", zap.String("server", t.Server), zap.Error(err))
			}
		}
		return a, err
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

// sessionsFor returns the sessions that may use a worktree on the machine of a connector: all of its own, and the
// newest of the others, since two entries may be of one machine. A path that another machine has too only keeps more.
// Its own are listed last: what is done with them follows at once.
func (f *Fleet) sessionsFor(ctx context.Context, k *connector) (all []namedThread, fault *handoff.Error) {
	for _, other := range f.now.Load().connectors {
		if other != k {
			list, _ := f.lists.listed(ctx, other)
			all = slices.Concat(all, list, f.lists.cached(other.spec.Name).threads) // the last ones of one that is away
		}
	}
	own, fault := f.lists.list(ctx, k, listTimeout)
	if fault == nil {
		own, fault = f.lists.widen(ctx, k, own, searchTimeout)
	}
	return slices.Concat(all, own), fault
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

// tidyAll removes the worktrees whose work is merged and that no session uses. A machine is asked only if its last list
// has a session in one. Without a list of its sessions, none is removed there.
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
		if fault != nil {
			continue
		}
		n := 0
		for dir := range of {
			list, fault := f.sessionsFor(ctx, k) // for each anew: a turn may have begun meanwhile
			if fault != nil {
				break
			}
			now := time.Now()
			n += trees.Tidy(ctx, git, &handoff.Worktree{Of: dir}, now, func(w *handoff.Worktree) (known, works bool) {
				return usedIn(list, w, now)
			})
		}
		if n > 0 {
			f.lists.outdate(k.spec.Name)
			f.change()
			f.log.Info("worktrees of merged work removed", zap.String("server", k.spec.Name), zap.Int("number", n))
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
		list, fault := f.sessionsFor(ctx, k)
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
		return trees.Remove(ctx, git, w)
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

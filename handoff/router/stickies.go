package router

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// stickies holds the threads that a caller uses on each server or project. They are read from the store once; after
// that the router is their only writer.
type stickies struct {
	pages *handoff.Feed // Set once: of the caller's pages

	mu       sync.Mutex
	inUse    map[stickyKey]handoff.Sticky // Guarded by mu: complete if loaded
	chosen   map[stickyKey]time.Time      // Guarded by mu: when the caller chose the thread in use, or to use none
	loaded   bool                         // Guarded by mu
	unstored map[stickyKey]stickyWrite    // Guarded by mu: writes that the store does not have yet
	storing  bool                         // Guarded by mu: a job writes unstored
}

// A stickyWrite sets or clears one sticky session in the store.
type stickyWrite struct {
	sticky handoff.Sticky
	clear  bool
}

// stickyKey identifies a sticky thread: there is one for each server and each project.
type stickyKey struct{ server, project string }

// String returns "bigpc" or "bigpc/api".
func (k stickyKey) String() string {
	if k.project == "" {
		return k.server
	}
	return k.server + "/" + k.project
}

func keyOf(t handoff.Target) stickyKey { return stickyKey{t.Server, t.Project} }

// get returns the sticky thread of a server or project. The stickies must have been loaded.
func (s *stickies) get(k stickyKey) (handoff.Sticky, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.inUse[k]
	return one, ok
}

// set adds the stickies of the store, once. Those that were put or dropped before are newer, and stay. A Since in the
// future is ignored: the clock was set back.
func (s *stickies) set(list []handoff.Sticky) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded {
		return
	}
	for _, one := range list {
		k := keyOf(one.Target)
		if _, ok := s.inUse[k]; ok {
			continue
		}
		s.inUse[k] = one
		if one.Since.Before(now) {
			s.chosen[k] = one.Since
		}
	}
	s.loaded = true
}

func (s *stickies) isLoaded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loaded
}

// put makes a thread sticky for a request that came at the time asked. It returns false if the caller has chosen
// another thread since then, or none: the turn of a request may begin late.
func (s *stickies) put(one handoff.Sticky, asked time.Time) bool {
	k := keyOf(one.Target)
	s.mu.Lock()
	late := s.chosen[k].After(asked)
	if late && s.inUse[k].Target != one.Target {
		s.mu.Unlock()
		return false
	}
	s.inUse[k] = one
	if !late {
		s.chosen[k] = asked
	}
	s.mu.Unlock()
	s.pages.Publish(handoff.PageEvent{Kind: handoff.EventSticky})
	return true
}

// drop removes a sticky thread because the caller wants it.
func (s *stickies) drop(k stickyKey) {
	s.mu.Lock()
	delete(s.inUse, k)
	s.chosen[k] = time.Now()
	s.mu.Unlock()
	s.pages.Publish(handoff.PageEvent{Kind: handoff.EventSticky})
}

// dropGone removes a sticky thread that is gone from its server. It returns false if it is not sticky any more.
func (s *stickies) dropGone(t handoff.Target) bool {
	s.mu.Lock()
	if s.inUse[keyOf(t)].Target != t {
		s.mu.Unlock()
		return false
	}
	delete(s.inUse, keyOf(t))
	s.mu.Unlock()
	s.pages.Publish(handoff.PageEvent{Kind: handoff.EventSticky})
	return true
}

func (s *stickies) list() []handoff.Sticky {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.inUse), func(x, y handoff.Sticky) int {
		return strings.Compare(keyOf(x.Target).String(), keyOf(y.Target).String())
	})
}

// queue adds a write. It replaces an older write of the same server or project, so there are never more writes than
// those. It returns true if the caller has to start the job that writes.
func (s *stickies) queue(w stickyWrite) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unstored[keyOf(w.sticky.Target)] = w
	begin := !s.storing
	s.storing = true
	return begin
}

// next removes and returns a write. It returns false if there is none; then the job that writes has ended.
func (s *stickies) next() (stickyWrite, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(s.unstored), func(x, y stickyKey) int {
		return strings.Compare(x.String(), y.String())
	})
	if len(keys) == 0 {
		s.storing = false
		return stickyWrite{}, false
	}
	w := s.unstored[keys[0]]
	delete(s.unstored, keys[0])
	return w, true
}

// putBack adds a write that failed again, unless there is a newer one.
func (s *stickies) putBack(w stickyWrite) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, newer := s.unstored[keyOf(w.sticky.Target)]; !newer {
		s.unstored[keyOf(w.sticky.Target)] = w
	}
}

// stored reports whether the store has all writes.
func (s *stickies) stored() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.unstored) == 0 && !s.storing
}

// loadStickies reads the caller's stickies from the store, once.
func (c *caller) loadStickies(ctx context.Context) error {
	if c.stickies.isLoaded() {
		return nil
	}
	list, err := c.router.cfg.Stickies.List(ctx, c.who)
	if err != nil {
		return err
	}
	c.stickies.set(list)
	for _, s := range list {
		if !s.Named {
			c.router.cfg.Owners.add(c.who, s.Target)
		}
	}
	return nil
}

// readStickies is loadStickies ahead of need: it logs an error.
func (c *caller) readStickies(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := c.loadStickies(ctx); err != nil {
		c.router.cfg.Log.Warn("sticky sessions not read", zap.String("principal", c.who.Principal), zap.Error(err))
	}
}

// stick queues a write for the store. The writes are made one after the other, only the newest of each server or
// project, and repeated until the store is back.
//
// For a nameless caller nothing is stored, since they cannot come back.
func (c *caller) stick(w stickyWrite) {
	if !c.who.Nameless() && c.stickies.queue(w) {
		c.router.jobs.finally(c.writeStickies)
	}
}

// writeStickies makes the queued writes, until none is left. When the process ends it tries each once more.
func (c *caller) writeStickies(ctx context.Context) {
	for try := 0; ; {
		w, more := c.stickies.next()
		if !more {
			return
		}
		limited, cancel := detached(ctx)
		var err error
		if w.clear {
			err = c.router.cfg.Stickies.Clear(limited, c.who, w.sticky.Target)
		} else {
			err = c.router.cfg.Stickies.Set(limited, c.who, w.sticky)
		}
		cancel()
		if err != nil {
			c.router.cfg.Log.Warn("sticky session not stored", zap.String("principal", c.who.Principal),
				zap.String("server", w.sticky.Target.Server), zap.Error(err))
		}
		if err != nil && retryable(err) && ctx.Err() == nil {
			c.stickies.putBack(w)
			c.router.cfg.Pause(ctx, try)
			try++
			continue
		}
		try = 0
	}
}

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

// stickies are the threads that a caller uses on each server or project. They are read from the store once; after that
// the router is their only writer.
type stickies struct {
	pages *handoff.Feed // Set once: what pages follow

	mu       sync.Mutex
	inUse    map[stickyKey]handoff.Sticky // Guarded by mu: valid if loaded
	chosen   map[stickyKey]time.Time      // Guarded by mu: when the caller asked for what is in use, or for nothing
	loaded   bool                         // Guarded by mu
	unstored map[stickyKey]stickyWrite    // Guarded by mu: what the store has still to learn
	storing  bool                         // Guarded by mu: a job writes it
}

// A stickyWrite is what the store has to learn of one sticky session; without a thread it is cleared.
type stickyWrite struct {
	sticky handoff.Sticky
	clear  bool
}

// stickyKey says where a sticky thread counts.
type stickyKey struct{ server, project string }

// String returns "bigpc" or "bigpc/api".
func (k stickyKey) String() string {
	if k.project == "" {
		return k.server
	}
	return k.server + "/" + k.project
}

func keyOf(t handoff.Target) stickyKey { return stickyKey{t.Server, t.Project} }

// get returns the sticky thread for a target, if the stickies were read.
func (s *stickies) get(k stickyKey) (handoff.Sticky, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.inUse[k]
	return one, ok
}

// set takes what the store has. What was set meanwhile is newer and stays. A time that is still to
// come tells nothing: the clock was set back.
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

// put makes a thread sticky for a request of that time. False: the caller has chosen another one
// since, or none. Work that waited, or that was lost and found, comes late.
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

// drop is the caller's wish.
func (s *stickies) drop(k stickyKey) {
	s.mu.Lock()
	delete(s.inUse, k)
	s.chosen[k] = time.Now()
	s.mu.Unlock()
	s.pages.Publish(handoff.PageEvent{Kind: handoff.EventSticky})
}

// dropGone forgets a sticky thread that is gone. False: another one is sticky by now, or none.
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

// queue adds a write; it replaces an older one of the same server or project, so that there are never
// more than those. True: nobody writes them yet, the caller has to.
func (s *stickies) queue(w stickyWrite) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unstored[keyOf(w.sticky.Target)] = w
	begin := !s.storing
	s.storing = true
	return begin
}

// next takes a write out. False: there is none, and from here on nobody writes.
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

// putBack puts a write back that failed, unless a newer one has come.
func (s *stickies) putBack(w stickyWrite) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, newer := s.unstored[keyOf(w.sticky.Target)]; !newer {
		s.unstored[keyOf(w.sticky.Target)] = w
	}
}

// stored reports whether the store has all of it.
func (s *stickies) stored() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.unstored) == 0 && !s.storing
}

// load reads a caller's stickies once.
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
			c.router.cfg.Owners.made(c.who, s.Target)
		}
	}
	return nil
}

// readStickies reads them before they are needed.
func (c *caller) readStickies(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := c.loadStickies(ctx); err != nil {
		c.router.cfg.Log.Warn("sticky sessions not read", zap.String("principal", c.who.Principal), zap.Error(err))
	}
}

// stick sees to it that the store has a sticky session, or has it no more, as the stickies do. The store is written
// behind: one write after the other, of each session the newest alone, repeated until the store is back.
//
// A caller without a name cannot come back to anything, so nothing is stored for them.
func (c *caller) stick(w stickyWrite) {
	if !c.who.Nameless() && c.stickies.queue(w) {
		c.router.jobs.finally(c.writeStickies)
	}
}

// writeStickies writes until nothing is left. When the process ends it tries each once more.
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
		if err != nil && retried(err) && ctx.Err() == nil {
			c.stickies.putBack(w)
			c.router.pause(ctx, try)
			try++
			continue
		}
		try = 0
	}
}

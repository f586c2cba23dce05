package homes

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/router"
)

const (
	// idleFor is how long a home is kept in which nothing is open and of which nothing was asked.
	idleFor = time.Minute
	// drainEvery is how often a home in which somebody is served is looked at again.
	drainEvery = 50 * time.Millisecond
	// beginFor is how long a home that is handed over is waited for whose work is about to begin. After that it may
	// wait for a machine, and its words wait elsewhere until somebody was asked.
	beginFor = 5 * time.Second
	// cutFor is how long a home is kept for a call that was cut: how it ended is written.
	cutFor = 2 * time.Second
	// leavingAtOnce bounds the homes that are handed over at a time.
	leavingAtOnce = 64
	// releasedAtOnce bounds the idle homes that are let go of at a time: the store forgets them within leaveWithin.
	releasedAtOnce = 512
)

// Others reports whether another instance is there that takes homes.
func (s *Homes) Others() bool { return s.in != nil && s.in.others() }

// Drain hands homes over while another instance is there: it takes none any more, and lets go of each once nobody
// is served in it. busy reports that somebody is by what lasts longer than its request, such as a call. When ctx
// ends, it lets go of the others too. It returns when none is left. It is called once, before the context of
// [Homes.Run] ends.
func (s *Homes) Drain(ctx context.Context, busy func(handoff.Caller) bool) {
	if s.in == nil {
		return
	}
	s.in.mu.Lock()
	s.in.drains = true
	s.in.near.Leaves(s.in.Self.ID)
	s.in.mu.Unlock()
	began, moved := time.Now(), 0
	ticker := time.NewTicker(drainEvery)
	defer ticker.Stop()
	for s.in.others() {
		over := ctx.Err() != nil
		s.mu.Lock()
		here, leaving, ending := slices.Collect(maps.Values(s.homes)), len(s.in.leaving), s.over
		s.mu.Unlock()
		if ending {
			return
		}
		for _, h := range here {
			if s.handOver(h, func() bool {
				return busy(h.Caller()) || time.Since(began) < s.in.beginFor && h.Beginning()
			}, over) {
				moved++
			}
		}
		if len(here) == 0 && leaving == 0 { // what was let go of has written all it had to
			s.each.Log.Info("callers are handed over", zap.Int("callers", moved), zap.Duration("took", time.Since(began)))
			return
		}
		<-ticker.C
	}
}

// handOver lets go of a home, and reports whether it did. A home stays while a request is served in it that is not the
// stream of a page, which comes again, and while it is busy; with anyway neither counts. It stays in any case while too
// many others are going.
func (s *Homes) handOver(h *home, busy func() bool, anyway bool) bool {
	s.mu.Lock()
	pages, _ := h.Feed(handoff.Grant{Caller: h.Caller()}).Load()
	visits, served := h.visits, h.guests > pages
	s.mu.Unlock()
	if !anyway && (served || busy()) { // in this order: what the last request has begun is seen
		return false
	}
	s.mu.Lock()
	stays := s.over || s.homes[h.Caller()] != h || h.end == nil || len(s.in.leaving) >= leavingAtOnce ||
		h.visits != visits && !anyway
	if end := h.end; !stays {
		s.closeLocked(h)
		s.running.Go(func() { // for cutFor at most
			if s.in.Lost != nil {
				s.in.Lost(h.Caller())
			}
			for cut := time.Now(); busy() && time.Since(cut) < cutFor; {
				time.Sleep(drainEvery)
			}
			end(router.ErrMoved)
		})
	}
	s.mu.Unlock()
	return !stays
}

// release lets go of homes that nothing is open in and nobody has come to for a while. What exceeds releasedAtOnce is
// left to the next time.
func (s *Homes) release(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.homes {
		if len(s.in.leaving) >= releasedAtOnce {
			return
		}
		if h.end != nil && h.guests == 0 && now.Sub(h.asked) >= idleFor && h.Idle() {
			s.dropLocked(h)
		}
	}
}

func (in *instances) draining() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.drains
}

// successor returns the instance that serves a caller who is not here while this one drains: the one that has the home,
// or is to take it. It is this one where the store was not reached to free the home: no other one could take that.
func (s *Homes) successor(ctx context.Context, c handoff.Caller) (Instance, error) {
	claims, err := s.in.Store.Claims(ctx, []handoff.Caller{c})
	if err != nil {
		return Instance{}, handoff.Because(handoff.CodeStoreDown, "", err)
	}
	id := claims[0].ID
	if id == s.in.Self.ID {
		return s.in.Self, nil
	}
	if id == "" || s.Dead(id) {
		s.in.mu.Lock()
		id = s.in.near.Taker(c)
		s.in.mu.Unlock()
	}
	if id == "" {
		return Instance{}, handoff.Fault(handoff.CodeShutdown, "", "")
	}
	return s.instance(ctx, id)
}

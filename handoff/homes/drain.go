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
	// drainEvery is the time between two attempts to hand a busy home over.
	drainEvery = 50 * time.Millisecond
	// beginFor bounds how long a draining instance keeps a home whose work is about to begin. Work that takes longer
	// probably waits for a machine; the next home asks the caller before it begins that work.
	beginFor = 5 * time.Second
	// cutFor is how long a home is kept after its calls were cut, so that their ends are written.
	cutFor = 2 * time.Second
	// leavingAtOnce bounds the homes that are handed over at a time.
	leavingAtOnce = 64
)

// Others reports whether another instance is there that takes homes.
func (s *Homes) Others() bool { return s.cluster != nil && s.cluster.others() }

// Drain hands all homes over, as long as another instance is there. From now on this instance takes none, and it gives
// up each home once no request is served in it. busy reports whether a caller uses their home beyond requests, such as
// by a call. When ctx ends, Drain gives up the remaining homes, too. It returns when none is left. It is called once,
// before the context of [Homes.Run] ends.
func (s *Homes) Drain(ctx context.Context, busy func(handoff.Caller) bool) {
	if s.cluster == nil {
		return
	}
	s.cluster.mu.Lock()
	s.cluster.drains = true
	s.cluster.neighbours.Leaves(s.cluster.Self.ID)
	s.cluster.mu.Unlock()
	began, moved := time.Now(), 0
	ticker := time.NewTicker(drainEvery)
	defer ticker.Stop()
	for s.cluster.others() {
		over := ctx.Err() != nil
		s.mu.Lock()
		here, leaving, ending := slices.Collect(maps.Values(s.homes)), len(s.cluster.leaving), s.over
		s.mu.Unlock()
		if ending {
			return
		}
		for _, h := range here {
			if s.handOver(h, func() bool {
				return busy(h.Caller()) || time.Since(began) < s.cluster.beginFor && h.Beginning()
			}, over) {
				moved++
			}
		}
		if len(here) == 0 && leaving == 0 { // the homes that were given up have written their last steps
			s.config.Log.Info("callers are handed over", zap.Int("callers", moved), zap.Duration("took", time.Since(began)))
			return
		}
		<-ticker.C
	}
}

// handOver gives a home up, and reports whether it did. A home stays while it is busy, or a request is served in it
// other than the streams of pages, which reconnect; with anyway neither counts. It stays also while too many others are
// leaving.
func (s *Homes) handOver(h *home, busy func() bool, anyway bool) bool {
	s.mu.Lock()
	pages, _ := h.Feed(handoff.Grant{Caller: h.Caller()}).Load()
	visits, served := h.visits, h.requests > pages
	s.mu.Unlock()
	if !anyway && (served || busy()) { // busy comes last, so that it sees what the last request has begun
		return false
	}
	s.mu.Lock()
	stays := s.over || s.homes[h.Caller()] != h || h.end == nil || len(s.cluster.leaving) >= leavingAtOnce ||
		h.visits != visits && !anyway
	if end := h.end; !stays {
		s.closeLocked(h)
		s.running.Go(func() { // for cutFor at most
			if s.cluster.Lost != nil {
				s.cluster.Lost(h.Caller())
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

func (in *cluster) draining() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.drains
}

// successor returns the instance that serves a caller while this one drains and does not have them: the one that has
// the home, or is to take it. It is this one if the store still names it, because the store was away when the home was
// given up: no other instance could take that home.
func (s *Homes) successor(ctx context.Context, c handoff.Caller) (handoff.Instance, error) {
	claims, err := s.cluster.Store.Claims(ctx, []handoff.Caller{c})
	if err != nil {
		return handoff.Instance{}, handoff.StoreDown(err)
	}
	id := claims[0].ID
	if id == s.cluster.Self.ID {
		return s.cluster.Self, nil
	}
	if id == "" || s.Dead(id) {
		s.cluster.mu.Lock()
		id = s.cluster.neighbours.Taker(c)
		s.cluster.mu.Unlock()
	}
	if id == "" {
		return handoff.Instance{}, handoff.Fault(handoff.CodeShutdown, "", "")
	}
	return s.instance(ctx, id)
}

// Package homes gives each caller a home: a router of their own, which has everything of them. [Homes] is the
// [router.Service] of all of them.
//
// Where several instances share a store, each home is at one of them. Whoever asks [Homes.Where] at any instance is
// told at which; a home that nobody has, or whose instance is dead, is taken by the one that was asked. An instance
// beats in the store each second. Others hold it for dead when they have seen it silent for long enough while they
// themselves reached the store, and take over what it has. It ceases to act sooner than that: until it has seen that
// its homes are still its own, no agent is given anything by it. What it writes of a home that another has taken, the
// store refuses.
//
// An instance that is to end while others are there drains: it takes no home any more, says so with its beat, and lets
// go of each home once nobody is served in it. Whoever is asked for the caller takes it; where work is open in it, an
// instance that has seen the beat does.
//
// It must not know any call, tool, adapter or store, like the routers.
//
// # Concurrency
//
// [Homes] is safe for concurrent use. A home is made when something is first asked for its caller, and nobody waits for
// that. [Homes.Run] ends the homes and waits for them.
//
// # Failure
//
// What a former life of the process left is taken up by the homes of those who have anything, some at a time. A store
// that is away is waited for; until then each caller is told so who asks for what may be there.
package homes

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/router"
)

// recovering is how many homes take up what was left at a time: each asks the store, which others wait for too.
const recovering = 16

// Bounds of the homes that nothing is open in. When there are more, those end whose callers have been away longest:
// their sticky sessions and what they have not heard are read from the store when they come back. No home ends in which
// somebody is served, or that was asked for something a short time ago: whoever holds its state without a trace of it
// there is done with it after that.
const (
	maxHomes = 1000
	awayFor  = 10 * time.Minute
)

// retries stand between two tries to read who has left something.
var retries = handoff.Backoff{First: 250 * time.Millisecond, Longest: 10 * time.Second}

// Homes has a home for each caller.
type Homes struct {
	router.Service // Set once: what is asked for a caller is asked of their home

	each  router.Config // Set once: of every home's router, but for its caller
	in    *instances    // Set once; nil: this is the only one
	known chan struct{} // closed once what a former life left is known, and taken up

	running sync.WaitGroup // the homes that run

	mu    sync.Mutex
	ctx   context.Context          // Guarded by mu: of Run; nil before it
	over  bool                     // Guarded by mu: Run waits for the last homes
	read  bool                     // Guarded by mu: who has left anything has a home
	homes map[handoff.Caller]*home // Guarded by mu
	event uint64                   // Guarded by mu: the highest id in the feeds of homes that have ended
}

// A home is the router of one caller.
type home struct {
	*router.Router
	epoch  int64                   // Set once: in which it was taken; 0: nobody else takes homes
	asked  time.Time               // Guarded by the homes' mu: when something was last asked of it
	guests int                     // Guarded by the homes' mu: requests that are served in it; see [Homes.Where]
	visits int                     // Guarded by the homes' mu: how many ever were
	end    context.CancelCauseFunc // Guarded by the homes' mu: ends it; nil: it does not run yet
}

// New returns homes whose routers are all of one configuration. Its Caller is that of each home; of IDs, Queues,
// Owners, Rates and Counts, which all homes share, those that it lacks are made. Nothing is done before [Homes.Run].
func New(each router.Config) *Homes {
	each = each.WithDefaults()
	s := &Homes{each: each, known: make(chan struct{}), homes: map[handoff.Caller]*home{}}
	s.Service = router.NewService(s.of)
	if each.Ledger == nil {
		s.read = true
		close(s.known)
	}
	return s
}

// of returns the home of a caller.
func (s *Homes) of(c handoff.Caller) *router.Router {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	h := s.homes[c]
	if h == nil && s.in != nil {
		return s.elsewhere(c)
	}
	if h == nil {
		s.endSomeLocked(now)
		h = s.makeLocked(c, now, 0)
		s.beginLocked(h)
		if s.read && s.each.Ledger != nil {
			h.TakeUp(s.ctx, nil) // else it would have a home
		}
	}
	h.asked = now
	return h.Router
}

// makeLocked makes a home that does not run yet. epoch is in which it was taken; 0: nobody else takes homes.
func (s *Homes) makeLocked(c handoff.Caller, now time.Time, epoch int64) *home {
	cfg := s.each
	cfg.Caller = c
	if s.in != nil && cfg.Auditor != nil {
		cfg.Auditor = AuditOf(cfg.Auditor, s.in.Self.ID, epoch)
	}
	h := &home{Router: router.NewRouter(cfg), epoch: epoch, asked: now}
	h.Feed(handoff.Grant{Caller: c}).Continue(s.event) // a page may come back with an id of the feed before
	s.homes[c] = h
	return h
}

// begun returns the home of a caller of whom something may be left. It has ended meanwhile where that had to wait for
// very long.
func (s *Homes) begun(c handoff.Caller) *router.Router {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.homes[c]
	if h == nil {
		h = s.makeLocked(c, time.Now(), 0)
	}
	s.beginLocked(h)
	return h.Router
}

// beginLocked lets a home run if it does not and the homes do. What is asked of one that is made when they end is
// refused, as by the others.
func (s *Homes) beginLocked(h *home) {
	switch {
	case h.end != nil, s.ctx == nil:
	case s.over:
		h.Refuse()
	default:
		ctx, end := context.WithCancelCause(s.ctx)
		h.end = end
		s.running.Go(func() {
			defer end(nil)
			_ = h.Run(ctx)
			s.ended(h)
		})
		if s.in != nil {
			s.running.Go(func() { s.open(ctx, h) })
		}
	}
}

// A leaver is a store that is told of callers who are away: of whom nothing is written from when it is called until
// they are back. What it returns is done then.
type leaver interface {
	Leave(c handoff.Caller) (done func(context.Context) error)
}

// dropLocked ends a home and lets it go.
func (s *Homes) dropLocked(h *home) {
	h.end(router.ErrMoved) // nothing is open, or another instance has it
	s.closeLocked(h)
}

// closeLocked has nothing come to a home any more. It is to be ended.
func (s *Homes) closeLocked(h *home) {
	s.event = max(s.event, h.Feed(handoff.Grant{Caller: h.Caller()}).Last())
	delete(s.homes, h.Caller())
	if s.in != nil {
		s.in.leaving[h.Caller()] = make(chan bool)
	}
}

// ended is for a home whose router has ended. Unless it is needed again already, the store need not know of it.
func (s *Homes) ended(h *home) {
	var done func(context.Context) error
	s.mu.Lock()
	c := h.Caller()
	if store, ok := s.each.Ledger.(leaver); ok && (s.homes[c] == nil || s.homes[c] == h && s.in != nil) {
		done = store.Leave(c)
	}
	s.mu.Unlock()
	if done != nil {
		ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
		if err := done(ctx); err != nil {
			s.each.Log.Info("the store still has a caller who is away", zap.Error(err))
		}
		cancel()
	}
	if s.in != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if leaving := s.in.leaving[c]; leaving != nil {
			close(leaving)
			delete(s.in.leaving, c)
		}
	}
}

// endSomeLocked ends homes when there are too many: some at once, since looking costs.
func (s *Homes) endSomeLocked(now time.Time) {
	if len(s.homes) < maxHomes {
		return
	}
	away := map[handoff.Caller]*home{}
	for c, h := range s.homes {
		if h.end != nil && h.guests == 0 && now.Sub(h.asked) >= awayFor && h.Idle() {
			away[c] = h
		}
	}
	first := slices.SortedFunc(maps.Keys(away), func(x, y handoff.Caller) int {
		return away[x].asked.Compare(away[y].asked)
	})
	for _, c := range first[:min(len(first), maxHomes/4)] {
		s.dropLocked(away[c])
	}
}

// all returns the homes that are there.
func (s *Homes) all() []*home {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.homes))
}

// Run lets the homes run, takes up what a former life of the process left, and returns when ctx has ended and every
// home with it. Where another instance is there by then, it goes on with what is open. Run is called once.
func (s *Homes) Run(ctx context.Context) error {
	living, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	s.mu.Lock()
	s.ctx = living
	for _, h := range s.homes {
		s.beginLocked(h)
	}
	s.mu.Unlock()
	sharing, last := context.WithCancel(context.WithoutCancel(ctx)) // as long as any home runs
	defer last()
	shared := make(chan struct{})
	go func() {
		defer close(shared)
		if s.in != nil {
			s.share(sharing)
		}
	}()
	switch {
	case s.in != nil:
		s.begin(ctx)
	case s.each.Ledger != nil:
		s.recover(ctx)
	}
	<-ctx.Done()
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	if cause := context.Cause(ctx); s.in != nil && s.in.others() {
		end(router.ErrMoved)
	} else {
		end(cause)
	}
	s.running.Wait()
	last()
	<-shared
	return nil
}

// begin waits until this instance may take homes. What is left of others is taken over when it is known that they are
// gone.
func (s *Homes) begin(ctx context.Context) {
	for try := 0; s.each.Owners.Read(ctx) != nil; try++ {
		if !s.pause(ctx, try) {
			return
		}
	}
	select {
	case <-s.in.first:
		close(s.known)
	case <-ctx.Done():
	}
}

// pause waits before try number n (from 0). False means that ctx ended.
func (s *Homes) pause(ctx context.Context, n int) bool {
	select {
	case <-time.After(s.each.Jitter(retries.Step(n))):
		return true
	case <-ctx.Done():
		return false
	}
}

// recover makes the homes of those of whom a former life left anything, and waits until they have taken that up.
func (s *Homes) recover(ctx context.Context) {
	for try := 0; ; try++ {
		err := s.each.Owners.Read(ctx)
		var left []ledger.Entry
		if err == nil {
			// It bounds each of its answers; all of them may take a while.
			left, err = s.each.Counts.Timed(s.each.Ledger).OpenAll(ctx)
		}
		if err == nil {
			s.takeUp(ctx, left)
			return
		}
		if try == 0 {
			s.each.Log.Warn("the ledger cannot be read yet", zap.Error(err))
		}
		if !s.pause(ctx, try) {
			return
		}
	}
}

// takeUp gives each home what is left of its caller.
func (s *Homes) takeUp(ctx context.Context, left []ledger.Entry) {
	of := map[handoff.Caller][]ledger.Entry{}
	for _, e := range left {
		of[e.Caller] = append(of[e.Caller], e)
	}
	s.mu.Lock()
	s.read = true
	now := time.Now()
	for c := range of {
		if s.homes[c] == nil {
			s.makeLocked(c, now, 0)
		}
	}
	waiting := slices.Collect(maps.Keys(s.homes))
	s.mu.Unlock()
	var group sync.WaitGroup
	room := make(chan struct{}, recovering)
	for _, c := range waiting {
		room <- struct{}{}
		group.Go(func() {
			defer func() { <-room }()
			s.begun(c).TakeUp(ctx, of[c])
		})
	}
	group.Wait()
	close(s.known)
}

// NextID returns an id that was never given; see [router.IDs].
func (s *Homes) NextID() string { return s.each.IDs.Next() }

// ServersChanged tells every page that the health of the fleet changed.
func (s *Homes) ServersChanged() {
	for _, h := range s.all() {
		h.ServersChanged()
	}
}

// Working reports whether work of anybody is under way on a server.
func (s *Homes) Working(server string) bool {
	return slices.ContainsFunc(s.all(), func(h *home) bool { return h.Working(server) })
}

// Waiting counts the work that waits for a server which was lost at a time, by caller.
func (s *Homes) Waiting(server string, lost time.Time) map[handoff.Caller]int {
	waiting := map[handoff.Caller]int{}
	for _, h := range s.all() {
		if n := h.Waiting(server, lost); n > 0 {
			waiting[h.Caller()] = n
		}
	}
	return waiting
}

// Recovered waits until it is known, and taken up, what a former life of the process left, for at most within; 0 does
// not wait. It gives [handoff.CodeStoreDown] while that is not so.
func (s *Homes) Recovered(ctx context.Context, within time.Duration) error {
	return router.Known(ctx, s.known, within)
}

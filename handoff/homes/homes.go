// Package homes gives each caller a home: a router of their own, with all of their state. [Homes] is the
// [router.Service] over all of them.
//
// Instances that share a store share the callers: each home is at one instance. [Homes.Where] returns at which; if none
// has the home, or the one that has it is dead, the instance that was asked takes it. Each instance writes a beat into
// the store every second. Another instance counts as dead when its beat has not changed for long enough, of time in
// which the store answered; then its homes are taken over. An instance that cannot beat stops acting before that: it
// gives no agent anything until it has verified that its homes are still its own. The store refuses its writes to a
// home that another instance has taken.
//
// An instance that is to end while others are there drains: it takes no homes any more, says so in its beat, and gives
// up each home once no request is served in it. The instance that is next asked for the caller takes the home; a home
// with open work is taken by an instance that has seen the beat.
//
// It must not know any call, tool, adapter or store, like the routers.
//
// # Concurrency
//
// [Homes] is safe for concurrent use. A home is made by the first request for its caller, which does not wait for it.
// [Homes.Run] ends the homes and waits for them.
//
// # Failure
//
// Work that an earlier life of the process left is taken up by the homes of its callers, some homes at a time. A store
// that is away is waited for; until then, requests that need that work fail with [handoff.CodeStoreDown].
package homes

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/router"
)

// recovering bounds the homes that take up stored work at a time, since each asks the store.
const recovering = 16

// Bounds of idle homes; the store has all of their state for when the caller comes back. A home stays while a request
// is served in it or something is being done.
const (
	// maxHomes is how many homes there may be before the idle ones end. With half as many again, each idle one ends at
	// once: one backend can name any number of callers.
	maxHomes = 1000
	awayFor  = 10 * time.Minute // how long an idle home is kept after its last use
	// justUsed is awayFor when there are far too many homes: what has just been looked up is about to be used.
	justUsed = time.Second
	// idleFor is the same where other instances could have the caller, however few homes there are.
	idleFor = time.Minute
	// endedAtOnce bounds the idle homes that end at a time: the store must let go of them within leaveWithin.
	endedAtOnce  = 256
	endIdleEvery = time.Second
)

// Homes has a home for each caller.
type Homes struct {
	router.Service // Set once: passes each request to the home of its caller

	config    router.Config // Set once: of every home's router, without Caller
	cluster   *cluster      // Set once; nil: there is one instance
	recovered chan struct{} // closed once the work of an earlier life is taken up

	most int // Set once: the constant maxHomes; tests have fewer

	running sync.WaitGroup // the homes that run

	mu    sync.Mutex
	ctx   context.Context          // Guarded by mu: of Run; nil before it
	over  bool                     // Guarded by mu: Run waits for the last homes
	read  bool                     // Guarded by mu: the store was read, and all callers with open work have a home
	homes map[handoff.Caller]*home // Guarded by mu
	event uint64                   // Guarded by mu: the highest id in the feeds of homes that have ended
}

// A home is the router of one caller.
type home struct {
	*router.Router
	epoch    int64                   // Set once: in which it was taken; 0: there is one instance
	usedAt   time.Time               // Guarded by the homes' mu: when it was last asked for
	requests int                     // Guarded by the homes' mu: requests that are served in it; see [Homes.Where]
	visits   int                     // Guarded by the homes' mu: number of such requests so far
	ended    chan struct{}           // closed when it has ended after it was removed
	end      context.CancelCauseFunc // Guarded by the homes' mu: ends it; nil: it does not run yet
}

// away reports whether nobody has used a home for a time, and the store has all of its state. The work that it has not
// taken up yet would be nobody's. The homes' mu is held.
func (h *home) away(now time.Time, least time.Duration) bool {
	return h.end != nil && h.requests == 0 && now.Sub(h.usedAt) >= least && h.Idle() &&
		(h.epoch == 0 || h.Recovered(context.Background(), 0) == nil)
}

// New returns homes whose routers all have one configuration, each with its own Caller. IDs, Queues, Owners, Rates and
// Counts are shared by all homes, and made if they are nil. Homes do nothing before [Homes.Run].
func New(each router.Config) *Homes {
	each = each.WithDefaults()
	s := &Homes{config: each, most: maxHomes, recovered: make(chan struct{}), homes: map[handoff.Caller]*home{}}
	s.Service = router.NewService(s.of, s.home)
	if each.Store == nil {
		s.read = true
		close(s.recovered)
	}
	return s
}

// of returns the router of a caller. For one who has no home here, it is a router that refuses all work and is not
// kept: who only asks what there is leaves nothing behind.
func (s *Homes) of(c handoff.Caller) *router.Router {
	s.mu.Lock()
	h, read := s.homes[c], s.read
	if h == nil && s.cluster != nil {
		h = s.cluster.leaving[c] // what is heard at the end of a call is noted
	}
	if h != nil {
		h.usedAt = time.Now()
		s.mu.Unlock()
		return h.Router
	}
	s.mu.Unlock()
	r := s.refusing(c)
	if s.cluster == nil && read && s.config.Store != nil {
		r.LeftNothing() // callers with open work have a home
	}
	return r
}

// home returns the router of a caller, and makes it if there is none; where another instance has the caller, one that
// refuses all work.
func (s *Homes) home(c handoff.Caller) *router.Router {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	h := s.homes[c]
	if h == nil && s.cluster != nil {
		return s.refusing(c)
	}
	if h == nil {
		h = s.makeLocked(c, now, 0)
		s.beginLocked(h)
		if s.read && s.config.Store != nil {
			h.LeftNothing() // callers with open work have a home already
		}
	}
	h.usedAt = now
	return h.Router
}

// makeLocked makes a home that does not run yet, taken in an epoch; 0: there is one instance.
func (s *Homes) makeLocked(c handoff.Caller, now time.Time, epoch int64) *home {
	cfg := s.config
	cfg.Caller = c
	if s.cluster != nil && cfg.Auditor != nil {
		cfg.Auditor = AuditOf(cfg.Auditor, s.cluster.Self.ID, epoch)
	}
	h := &home{Router: router.NewRouter(cfg), epoch: epoch, usedAt: now, ended: make(chan struct{})}
	h.Feed(handoff.Grant{Caller: c}).Continue(s.event) // a page may come back with an id of an earlier feed
	s.homes[c] = h
	return h
}

// ensure returns the running home of a caller, and makes it again if it has ended meanwhile.
func (s *Homes) ensure(c handoff.Caller) *router.Router {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.homes[c]
	if h == nil {
		h = s.makeLocked(c, time.Now(), 0)
	}
	s.beginLocked(h)
	return h.Router
}

// beginLocked runs a home, unless it runs already or [Homes.Run] has not begun. A home that is made while Run ends
// refuses all work.
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
			s.routerEnded(h)
		})
		if s.cluster != nil {
			s.running.Go(func() {
				if h.TakeUp(ctx); s.cluster.Taken != nil && ctx.Err() == nil {
					s.cluster.Taken(ctx, h.Caller())
				}
			})
		}
	}
}

// Waiting is a store that knows whose work an earlier life of the process left.
type Waiting interface {
	// Waiting returns the callers of this life with a document whose name begins with the prefix.
	Waiting(ctx context.Context, prefix string) ([]handoff.Caller, error)
}

// A leaver is a store that is told of callers who leave this instance. After Leave, nothing is written of the caller
// until they are back; done then finishes leaving, and may wait for the store.
type leaver interface {
	Leave(c handoff.Caller) (done func(context.Context) error)
}

// dropLocked ends a home and removes it.
func (s *Homes) dropLocked(h *home) {
	h.end(router.ErrMoved) // nothing is open, or another instance has the caller
	s.closeLocked(h)
}

// closeLocked removes a home. Among several instances, requests that make no home reach it until it has ended. The home
// is to be ended.
func (s *Homes) closeLocked(h *home) {
	s.event = max(s.event, h.Feed(handoff.Grant{Caller: h.Caller()}).Last())
	delete(s.homes, h.Caller())
	if s.cluster != nil {
		s.cluster.leaving[h.Caller()] = h
	}
}

// routerEnded is called when the router of a home has ended. Unless the caller has a new home here, it tells the store
// that they are gone.
func (s *Homes) routerEnded(h *home) {
	var done func(context.Context) error
	s.mu.Lock()
	c := h.Caller()
	if store, ok := s.config.Store.(leaver); ok && (s.homes[c] == nil || s.homes[c] == h && s.cluster != nil) {
		done = store.Leave(c)
	}
	s.mu.Unlock()
	if done != nil {
		ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
		if err := done(ctx); err != nil {
			s.config.Log.Info("the store still has a caller who is away", zap.Error(err))
		}
		cancel()
	}
	if s.cluster != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.cluster.leaving[c] == h {
			close(h.ended)
			delete(s.cluster.leaving, c)
		}
	}
}

// endIdle ends idle homes, those first that were not used for longest.
func (s *Homes) endIdle(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	least, most := awayFor, endedAtOnce
	if s.cluster != nil {
		least, most = idleFor, endedAtOnce-len(s.cluster.leaving)
	}
	switch {
	case len(s.homes) >= s.most*3/2:
		least = justUsed
	case len(s.homes) < s.most && s.cluster == nil:
		return
	}
	var away []*home
	for _, h := range s.homes {
		if h.away(now, least) {
			away = append(away, h)
		}
	}
	slices.SortFunc(away, func(x, y *home) int { return x.usedAt.Compare(y.usedAt) })
	for _, h := range away[:max(min(len(away), most), 0)] {
		s.dropLocked(h)
	}
}

// list returns all homes.
func (s *Homes) list() []*home {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.homes))
}

// Run runs the homes, takes up the work that an earlier life of the process left, and returns when ctx and then every
// home has ended. If another instance is there by then, the homes end with [router.ErrMoved], and it goes on with their
// work. Run is called once.
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
		s.share(sharing)
	}()
	switch {
	case s.cluster != nil:
		s.begin(ctx)
	case s.config.Store != nil:
		s.recover(ctx)
	}
	<-ctx.Done()
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	if cause := context.Cause(ctx); s.cluster != nil && s.cluster.others() {
		end(router.ErrMoved)
	} else {
		end(cause)
	}
	s.running.Wait()
	last()
	<-shared
	return nil
}

// begin waits until this instance may take homes. Homes of dead instances are taken over later, see [Homes.takeOver].
func (s *Homes) begin(ctx context.Context) {
	for try := 0; s.config.Owners.Read(ctx) != nil; try++ {
		if !s.config.Pause(ctx, try) {
			return
		}
	}
	select {
	case <-s.cluster.ready:
		close(s.recovered)
	case <-ctx.Done():
	}
}

// recover makes a home for each caller with open work in the store, and waits until the homes have taken that up.
func (s *Homes) recover(ctx context.Context) {
	for try := 0; ; try++ {
		err := s.config.Owners.Read(ctx)
		var left []handoff.Caller
		if store, ok := s.config.Store.(Waiting); ok && err == nil {
			// Without a timeout: the store bounds each of its requests, and many may be needed.
			left, err = store.Waiting(ctx, ledger.HandoffDoc)
		}
		if err == nil {
			s.takeUp(ctx, left)
			return
		}
		if try == 0 {
			s.config.Log.Warn("the store cannot be read yet", zap.Error(err))
		}
		if !s.config.Pause(ctx, try) {
			return
		}
	}
}

// takeUp makes a home for each of these callers, and has it take up what the store has of them. Other homes that are
// there have nothing to take up.
func (s *Homes) takeUp(ctx context.Context, left []handoff.Caller) {
	s.mu.Lock()
	s.read = true
	for _, c := range left {
		if s.homes[c] == nil {
			s.makeLocked(c, time.Now(), 0)
		}
	}
	nothing := maps.Clone(s.homes)
	s.mu.Unlock()
	for _, c := range left {
		delete(nothing, c)
	}
	for c := range nothing {
		s.ensure(c).LeftNothing()
	}
	_ = forEach(left, func(c handoff.Caller) error {
		s.ensure(c).TakeUp(ctx)
		return nil
	})
	close(s.recovered)
}

// forEach calls a function for callers, for some at a time, and returns the first error.
func forEach(all []handoff.Caller, do func(handoff.Caller) error) error {
	var group errgroup.Group
	group.SetLimit(recovering)
	for _, c := range all {
		group.Go(func() error { return do(c) })
	}
	return group.Wait()
}

// NextID returns a new id; see [router.IDs].
func (s *Homes) NextID() string { return s.config.IDs.Next() }

// ServersChanged tells all pages that the health of the fleet changed.
func (s *Homes) ServersChanged() {
	for _, h := range s.list() {
		h.ServersChanged()
	}
}

// Working reports whether any caller's work is under way on a server.
func (s *Homes) Working(server string) bool {
	return slices.ContainsFunc(s.list(), func(h *home) bool { return h.Working(server) })
}

// Waiting counts the work that waits for a server, which is lost since the time lost, by caller.
func (s *Homes) Waiting(server string, lost time.Time) map[handoff.Caller]int {
	waiting := map[handoff.Caller]int{}
	for _, h := range s.list() {
		if n := h.Waiting(server, lost); n > 0 {
			waiting[h.Caller()] = n
		}
	}
	return waiting
}

// Recovered waits until the work of an earlier life of the process is taken up, for at most within; 0 does not wait. It
// returns [handoff.CodeStoreDown] if that takes longer.
func (s *Homes) Recovered(ctx context.Context, within time.Duration) error {
	return router.Known(ctx, s.recovered, within)
}

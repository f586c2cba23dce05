package homes

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/router"
)

const (
	// verifyEvery is the time between two comparisons of the homes here with the store.
	verifyEvery = 10 * time.Second
	// yieldFor is how long an instance leaves the homes of a dead one to the [Neighbours.Taker] of each.
	yieldFor = time.Second
	// knownWithin bounds how long a request waits until a home that was just taken has its open work.
	knownWithin = 2 * time.Second
	// leavesWithin bounds how long a request waits for the earlier router of its caller to end.
	leavesWithin = 10 * time.Second
	// leaveWithin bounds how long the store may take to let a caller leave.
	leaveWithin = 2 * time.Second
)

// A Store stores which instance has which home. Its errors are [handoff.Error]; each method answers within a second, or
// a second for some hundred homes.
type Store interface {
	Beats
	Slots
	Indexes
}

// Beats stores the beats of all instances.
type Beats interface {
	Beat(ctx context.Context, b ledger.Beat) error
	Beats(ctx context.Context) ([]ledger.Beat, error)
	// Forget removes a dead instance, and its claims to these homes, unless its beat has changed.
	Forget(ctx context.Context, gone ledger.Beat, had []handoff.Caller) error
}

// Slots stores the claims to homes.
type Slots interface {
	// Take takes a home for this instance, if no instance has it but the dead one ("": none), and returns its claim
	// afterwards.
	Take(ctx context.Context, c handoff.Caller, dead string) (ledger.Claim, error)
	// Claims returns the claims to the homes of callers, in their order.
	Claims(ctx context.Context, of []handoff.Caller) ([]ledger.Claim, error)
	// Assert writes the claim of this instance to a home again, unless the store has a later one.
	Assert(ctx context.Context, c handoff.Caller, mine ledger.Claim) error
}

// Indexes knows the callers of an instance.
type Indexes interface {
	// Callers returns the callers whose homes an instance has or had. There may be others among them.
	Callers(ctx context.Context, id string) ([]handoff.Caller, error)
	// Lose makes this instance write nothing more of a caller.
	Lose(c handoff.Caller)
}

func instanceOf(b ledger.Beat) handoff.Instance {
	return handoff.Instance{ID: b.ID, Address: b.Address, Fingerprint: b.Fingerprint, Draining: b.Draining}
}

// Sharing configures homes that are at one of several instances.
type Sharing struct {
	Self  handoff.Instance
	Store Store
	// Lost is called when this instance gives up a caller, because another has them or is to take them; nil: not used.
	Lost func(handoff.Caller)
	// Taken is called for each home that was taken, once its open work is taken up. It may wait until ctx, which is of
	// the home, ends. nil: not used.
	Taken func(context.Context, handoff.Caller)
}

// cluster is the part of Homes that deals with other instances.
type cluster struct {
	Sharing                             // Set once
	log        *zap.Logger              // Set once
	verifyNow  chan struct{}            // capacity 1; a token in it asks to verify now
	ready      chan struct{}            // closed once this instance may act for the first time
	beginFor   time.Duration            // Set once: the constant beginFor; tests have longer
	beats      uint64                   // Owned by beat: number of beats so far
	missed     bool                     // Owned by beat: the store did not take the newest one
	drains     bool                     // Guarded by mu: this instance takes no homes any more
	inheriting map[string]bool          // Guarded by mu: ids of instances whose homes are being taken over
	neighbours Neighbours               // Guarded by mu
	taking     singleflight.Group       // of homes, by caller; safe by itself
	leaving    map[handoff.Caller]*home // Guarded by the homes' mu: those that are ending
	mu         sync.Mutex
	readyOnce  sync.Once // closes ready
}

// NewShared returns the homes of one of several instances. The home of a caller is made by [Homes.Where], or by taking
// over the homes of a dead instance. Requests for callers whose homes are not here are refused.
func NewShared(each router.Config, with Sharing) *Homes {
	in := &cluster{
		Sharing: with, verifyNow: make(chan struct{}, 1), ready: make(chan struct{}), inheriting: map[string]bool{},
		leaving: map[handoff.Caller]*home{}, beginFor: beginFor,
	}
	each.MayAct = in.mayAct
	s := New(each)
	s.cluster, in.log = in, s.config.Log
	return s
}

func (in *cluster) mayAct() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.neighbours.MayAct(time.Now())
}

// others reports whether another instance is there that takes homes.
func (in *cluster) others() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.ContainsFunc(in.neighbours.There(), func(b ledger.Beat) bool {
		return b.ID != in.Self.ID && !b.Draining
	})
}

// Dead reports whether an instance is certainly gone.
func (s *Homes) Dead(id string) bool {
	if s.cluster == nil {
		return false
	}
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	return s.cluster.neighbours.Dead(id)
}

// Instances returns the instances that are not dead.
func (s *Homes) Instances() (there []handoff.Instance) {
	if s.cluster == nil {
		return nil
	}
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	for _, b := range s.cluster.neighbours.There() {
		there = append(there, instanceOf(b))
	}
	return there
}

// Where returns the instance that has the home of a caller. If the home is free, or its instance is dead, this instance
// takes it first. If there is one instance only, Where returns the zero Instance at once. While this instance may have
// lost its homes it takes none, and returns [handoff.CodeStoreDown]; while it drains, it returns an instance that is to
// take the home. ctx is of the request that is to be served: until it ends, a home here is not handed over.
func (s *Homes) Where(ctx context.Context, c handoff.Caller) (handoff.Instance, error) {
	if s.cluster == nil {
		return handoff.Instance{}, nil
	}
	for {
		at, err := s.locate(ctx, c)
		if err != nil || at.ID != s.cluster.Self.ID {
			return at, err
		}
		if h := s.visit(ctx, c); h != nil {
			_ = h.Recovered(ctx, knownWithin) // after an error, requests that need the open work fail themselves
			return at, nil
		}
	}
}

// visit counts a request in a home until ctx ends, and returns the home, or nil if it was given up meanwhile.
func (s *Homes) visit(ctx context.Context, c handoff.Caller) *home {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.homes[c]
	if h == nil {
		return nil
	}
	h.requests++
	h.visits++
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		h.requests--
	})
	return h
}

// get returns the home of a caller, or nil, and notes that it was used.
func (s *Homes) get(c handoff.Caller) *home {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.homes[c]
	if h != nil {
		h.usedAt = time.Now()
	}
	return h
}

// locate finds or takes a home. Concurrent calls for one caller share one attempt.
func (s *Homes) locate(ctx context.Context, c handoff.Caller) (handoff.Instance, error) {
	in := s.cluster
	if s.get(c) != nil {
		return in.Self, nil
	}
	taking := in.taking.DoChan(c.Principal+"\x00"+c.User, func() (any, error) {
		return s.take(context.WithoutCancel(ctx), c) // others wait for it, too; the store bounds it
	})
	select {
	case taken := <-taking:
		return taken.Val.(handoff.Instance), taken.Err
	case <-ctx.Done():
		return handoff.Instance{}, handoff.AsError(ctx.Err())
	}
}

// take takes a home that is free, or whose instance is dead, and makes it.
func (s *Homes) take(ctx context.Context, c handoff.Caller) (handoff.Instance, error) {
	in := s.cluster
	if s.get(c) != nil { // taken meanwhile
		return in.Self, nil
	}
	s.mu.Lock()
	leaving := in.leaving[c]
	s.mu.Unlock()
	if leaving != nil { // the earlier router of this caller still writes
		select {
		case <-leaving.ended:
		case <-time.After(leavesWithin):
			return handoff.Instance{}, handoff.Fault(handoff.CodeStoreDown, "",
				"the caller's earlier router has not ended here")
		}
	}
	if in.draining() {
		if at, err := s.successor(ctx, c); err != nil || at.ID != in.Self.ID {
			return at, err
		}
	}
	if !in.mayAct() {
		return handoff.Instance{}, handoff.Fault(handoff.CodeStoreDown, "",
			"this instance may have lost its callers to another")
	}
	claim, err := in.Store.Take(ctx, c, "")
	if err == nil && claim.ID != in.Self.ID && s.Dead(claim.ID) {
		claim, err = in.Store.Take(ctx, c, claim.ID)
	}
	switch {
	case err != nil:
		return handoff.Instance{}, handoff.StoreDown(err)
	case claim.ID != in.Self.ID:
		return s.instance(ctx, claim.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over { // another instance takes the home when it finds this one dead
		return handoff.Instance{}, handoff.Fault(handoff.CodeShutdown, "", "")
	}
	s.beginLocked(s.makeLocked(c, time.Now(), claim.Epoch))
	return in.Self, nil
}

// instance returns an instance by id. Of one that beats no more, only the id is known.
func (s *Homes) instance(ctx context.Context, id string) (handoff.Instance, error) {
	for _, one := range s.Instances() {
		if one.ID == id {
			return one, nil
		}
	}
	table, err := s.cluster.Store.Beats(ctx) // it may have started a moment ago
	for _, b := range table {
		if b.ID == id {
			return instanceOf(b), nil
		}
	}
	if err != nil {
		return handoff.Instance{}, handoff.StoreDown(err)
	}
	return handoff.Instance{ID: id}, nil
}

// refusing returns a router that refuses all work, for a caller whose home is not here.
func (s *Homes) refusing(c handoff.Caller) *router.Router {
	cfg := s.config
	cfg.Caller = c
	r := router.NewRouter(cfg)
	r.Refuse()
	return r
}

// share ends idle homes, until ctx has ended. Where there are other instances, it also writes beats, reads those of
// others, takes homes over, and verifies homes.
func (s *Homes) share(ctx context.Context) {
	var all sync.WaitGroup
	every := func(d time.Duration, do func(context.Context)) {
		all.Go(func() {
			ticker := time.NewTicker(d)
			defer ticker.Stop()
			for ctx.Err() == nil {
				do(ctx)
				select {
				case <-ticker.C:
				case <-ctx.Done():
				}
			}
		})
	}
	defer all.Wait()
	every(endIdleEvery, func(context.Context) { s.endIdle(time.Now()) })
	if s.cluster == nil {
		return
	}
	every(beatEvery, s.cluster.beat)
	every(readEvery, func(ctx context.Context) {
		for _, gone := range s.cluster.read(ctx) {
			all.Go(func() { s.takeOver(ctx, gone) })
		}
	})
	all.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-time.After(verifyEvery):
			case <-s.cluster.verifyNow:
			case <-ctx.Done():
				return
			}
			s.verify(ctx)
		}
	})
}

// beat writes a beat.
func (in *cluster) beat(ctx context.Context) {
	in.beats++
	sent := time.Now()
	self := in.Self
	b := ledger.Beat{
		ID: self.ID, N: in.beats, Address: self.Address, Fingerprint: self.Fingerprint, Draining: in.draining(),
	}
	if err := in.Store.Beat(ctx, b); err != nil {
		if !in.missed {
			in.log.Warn("the store takes no beats", zap.Error(err))
		}
		in.missed = true
		return
	}
	in.mu.Lock()
	in.neighbours.Acknowledged(sent)
	may := in.neighbours.MayAct(time.Now())
	in.mu.Unlock()
	if may {
		in.readyOnce.Do(func() { close(in.ready) })
	}
	if !may || in.missed { // others may have taken homes, or the store may have come back with old claims
		in.verifySoon()
	}
	in.missed = false
}

// verifySoon has the homes verified at once.
func (in *cluster) verifySoon() {
	select {
	case in.verifyNow <- struct{}{}:
	default:
	}
}

// read reads the table of beats. It returns the instances that are dead or drain and whose homes this one is not taking
// over yet.
func (in *cluster) read(ctx context.Context) (gone []ledger.Beat) {
	asked := time.Now()
	table, err := in.Store.Beats(ctx)
	if err != nil {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.neighbours.Read(table, asked, time.Now())
	if in.drains || !in.neighbours.MayAct(time.Now()) {
		return nil
	}
	drain := slices.DeleteFunc(in.neighbours.There(), func(b ledger.Beat) bool { return !b.Draining })
	for _, one := range append(in.neighbours.Gone(), drain...) {
		if one.ID != in.Self.ID && !in.inheriting[one.ID] {
			in.inheriting[one.ID] = true
			gone = append(gone, one)
		}
	}
	return gone
}

// verify compares the homes here with the store, and ends those that another instance has. If it had to write a claim
// again, it verifies once more before this instance may act: another may have taken that home meanwhile.
func (s *Homes) verify(ctx context.Context) {
	sent := time.Now()
	here := s.list()
	callers := make([]handoff.Caller, len(here))
	for i, h := range here {
		callers[i] = h.Caller()
	}
	stored, err := s.cluster.Store.Claims(ctx, callers)
	if err != nil {
		return
	}
	asserted := false
	for i, h := range here {
		mine := ledger.Claim{ID: s.cluster.Self.ID, Epoch: h.epoch}
		switch Verify(mine, stored[i]) {
		case Evict:
			s.evict(h)
		case Assert:
			if s.cluster.Store.Assert(ctx, callers[i], mine) != nil {
				return
			}
			asserted = true
		}
	}
	if asserted {
		s.cluster.verifySoon()
		return
	}
	s.cluster.mu.Lock()
	s.cluster.neighbours.Verified(sent)
	s.cluster.mu.Unlock()
}

// evict ends the home of a caller whom another instance has. The store refuses what its router still writes.
func (s *Homes) evict(h *home) {
	s.mu.Lock()
	if s.homes[h.Caller()] != h {
		s.mu.Unlock()
		return
	}
	s.cluster.Store.Lose(h.Caller())
	s.dropLocked(h)
	s.mu.Unlock()
	s.config.Log.Info("another instance has a caller", zap.String("principal", h.Caller().Principal))
	if s.cluster.Lost != nil {
		s.cluster.Lost(h.Caller())
	}
}

// AuditOf returns an auditor that adds an instance and the epoch of a home to each record.
func AuditOf(a handoff.Auditor, instance string, epoch int64) handoff.Auditor {
	return homeAuditor{a, instance, epoch}
}

type homeAuditor struct {
	handoff.Auditor
	instance string
	epoch    int64
}

// Audit implements [handoff.Auditor].
func (a homeAuditor) Audit(ctx context.Context, rec handoff.AuditRecord) error {
	rec.Instance, rec.Epoch = a.instance, a.epoch
	return a.Auditor.Audit(ctx, rec)
}

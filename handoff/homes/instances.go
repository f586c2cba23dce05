package homes

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/router"
)

// Times of what instances do about each other's homes.
const (
	verifyEvery = 10 * time.Second
	// yieldFor is how long an instance leaves the homes of one that is gone to whoever is to take them.
	yieldFor = time.Second
	// knownWithin bounds how long it is waited for what was left in a home that was just taken.
	knownWithin = 2 * time.Second
	// leaveWithin bounds how long the store is asked to let go of a home.
	leaveWithin = 2 * time.Second
)

// A Store keeps who has which home, for several instances. Its errors are of the vocabulary; each method answers within
// a second, or a second for some hundred homes.
type Store interface {
	Beats
	Slots
	Indexes
}

// Beats keeps what each instance says of itself.
type Beats interface {
	Beat(ctx context.Context, b ledger.Beat) error
	Beats(ctx context.Context) ([]ledger.Beat, error)
	// Forget forgets an instance and that it had these homes, unless it was heard of since.
	Forget(ctx context.Context, gone ledger.Beat, had []handoff.Caller) error
}

// Slots gives homes to instances.
type Slots interface {
	// Take takes a home unless an instance has it that is not the dead one, and returns who has it then.
	Take(ctx context.Context, c handoff.Caller, dead string) (ledger.Claim, error)
	// Claims returns who has the homes of callers, in their order.
	Claims(ctx context.Context, of []handoff.Caller) ([]ledger.Claim, error)
	// Assert tells the store who has a home, unless it knows of a later taking.
	Assert(ctx context.Context, c handoff.Caller, mine ledger.Claim) error
}

// Indexes knows whom an instance has.
type Indexes interface {
	// Callers returns those whose homes an instance has, or had, and perhaps others.
	Callers(ctx context.Context, id string) ([]handoff.Caller, error)
	// Lose ends that this instance writes in a home.
	Lose(c handoff.Caller)
}

// An Instance is one of several that share a store.
type Instance struct {
	ID          string // of its life; no other has it
	Address     string // where others reach it, as host:port
	Fingerprint string // of its certificate
	Draining    bool   // it takes no homes any more
}

func instanceOf(b ledger.Beat) Instance { return Instance{b.ID, b.Address, b.Fingerprint, b.Draining} }

// Sharing is what homes need that are one of several instances.
type Sharing struct {
	Self  Instance
	Store Store
	// Lost is told that another instance has a caller, once their router is ending here; nil: nobody is.
	Lost func(handoff.Caller)
	// Taken is told of each home that was taken, once what was left in it is taken up, and may wait until ctx, the
	// home's, ends; nil: nobody is.
	Taken func(context.Context, handoff.Caller)
}

// instances is how one of several instances gets on with the others.
type instances struct {
	Sharing                               // Set once
	log      *zap.Logger                  // Set once
	look     chan struct{}                // capacity 1; a token in it asks to verify now
	first    chan struct{}                // closed once this instance may act for the first time
	beginFor time.Duration                // Set once: see the constant; tests have longer
	beaten   uint64                       // Owned by beat
	missed   bool                         // Owned by beat: the store did not take the newest one
	drains   bool                         // Guarded by mu: it takes no homes any more
	heir     map[string]bool              // Guarded by mu: of whom the homes are being taken over, by id
	near     Neighbours                   // Guarded by mu
	taking   map[handoff.Caller]*taking   // Guarded by mu: homes that are being taken
	leaving  map[handoff.Caller]chan bool // Guarded by the homes' mu: routers that are ending, closed when they have
	mu       sync.Mutex
	once     sync.Once // closes first
}

// A taking of a home is in progress, for all who wait for it.
type taking struct {
	done chan struct{} // closed when found and err are set
	at   Instance
	err  error
}

// NewShared returns the homes of one of several instances. A caller's home is made by [Homes.Where], and by taking over
// what an instance left that is gone; of whom it has not, an instance knows and takes nothing.
func NewShared(each router.Config, with Sharing) *Homes {
	in := &instances{
		Sharing: with, look: make(chan struct{}, 1), first: make(chan struct{}), heir: map[string]bool{},
		taking: map[handoff.Caller]*taking{}, leaving: map[handoff.Caller]chan bool{}, beginFor: beginFor,
	}
	each.MayAct = in.mayAct
	s := New(each)
	s.in, in.log = in, s.each.Log
	return s
}

func (in *instances) mayAct() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.near.MayAct(time.Now())
}

// others reports whether another instance is there that takes homes.
func (in *instances) others() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.ContainsFunc(in.near.There(), func(b ledger.Beat) bool { return b.ID != in.Self.ID && !b.Draining })
}

// Dead reports whether an instance is certainly gone.
func (s *Homes) Dead(id string) bool {
	if s.in == nil {
		return false
	}
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	return s.in.near.Dead(id)
}

// Instances returns those that are there.
func (s *Homes) Instances() (there []Instance) {
	if s.in == nil {
		return nil
	}
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	for _, b := range s.in.near.There() {
		there = append(there, instanceOf(b))
	}
	return there
}

// Where returns the instance that has a caller now, after it was taken by this one where it was free or where its
// instance is dead. Of one instance alone it is the zero Instance, which costs nothing. While this instance may have
// lost its homes it takes none, and gives [handoff.CodeStoreDown]; one that drains names another that is to take it.
// ctx is of the request for which that is asked: until it ends, a home here is not handed over.
func (s *Homes) Where(ctx context.Context, c handoff.Caller) (Instance, error) {
	if s.in == nil {
		return Instance{}, nil
	}
	for {
		at, err := s.locate(ctx, c)
		if err != nil || at.ID != s.in.Self.ID {
			return at, err
		}
		if h := s.visit(ctx, c); h != nil {
			_ = h.Recovered(ctx, knownWithin) // else each request is told
			return at, nil
		}
	}
}

// visit counts what is served in a home until ctx ends, and returns the home; nil: it was let go of meanwhile.
func (s *Homes) visit(ctx context.Context, c handoff.Caller) *home {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.homes[c]
	if h == nil {
		return nil
	}
	h.guests++
	h.visits++
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		h.guests--
	})
	return h
}

// had returns the home of a caller, nil where there is none.
func (s *Homes) had(c handoff.Caller) *home {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.homes[c]
	if h != nil {
		h.asked = time.Now()
	}
	return h
}

// locate finds or takes a home, once for all who ask at a time.
func (s *Homes) locate(ctx context.Context, c handoff.Caller) (Instance, error) {
	in := s.in
	if s.had(c) != nil {
		return in.Self, nil
	}
	in.mu.Lock()
	t := in.taking[c]
	mine := t == nil
	if mine {
		t = &taking{done: make(chan struct{})}
		in.taking[c] = t
	}
	in.mu.Unlock()
	if !mine {
		select {
		case <-t.done:
			return t.at, t.err
		case <-ctx.Done():
			return Instance{}, handoff.AsError(ctx.Err())
		}
	}
	t.at, t.err = s.take(context.WithoutCancel(ctx), c) // for the others too; the store bounds it
	in.mu.Lock()
	delete(in.taking, c)
	in.mu.Unlock()
	close(t.done)
	return t.at, t.err
}

// take takes a home that is free, or whose instance is dead, and makes it.
func (s *Homes) take(ctx context.Context, c handoff.Caller) (Instance, error) {
	in := s.in
	if s.had(c) != nil { // taken since
		return in.Self, nil
	}
	s.mu.Lock()
	leaving := in.leaving[c]
	s.mu.Unlock()
	if leaving != nil { // what it still writes is of before
		<-leaving
	}
	if in.draining() {
		if at, err := s.successor(ctx, c); err != nil || at.ID != in.Self.ID {
			return at, err
		}
	}
	if !in.mayAct() {
		return Instance{}, handoff.Fault(handoff.CodeStoreDown, "", "this instance may have lost its callers to another")
	}
	claim, err := in.Store.Take(ctx, c, "")
	if err == nil && claim.ID != in.Self.ID && s.Dead(claim.ID) {
		claim, err = in.Store.Take(ctx, c, claim.ID)
	}
	switch {
	case err != nil:
		return Instance{}, handoff.Because(handoff.CodeStoreDown, "", err)
	case claim.ID != in.Self.ID:
		return s.instance(ctx, claim.ID)
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over { // whoever finds this instance gone takes it
		return Instance{}, handoff.Fault(handoff.CodeShutdown, "", "")
	}
	s.endSomeLocked(now)
	s.beginLocked(s.makeLocked(c, now, claim.Epoch))
	return in.Self, nil
}

// instance returns what is known of an instance: its id alone where it beats no more.
func (s *Homes) instance(ctx context.Context, id string) (Instance, error) {
	for _, one := range s.Instances() {
		if one.ID == id {
			return one, nil
		}
	}
	table, err := s.in.Store.Beats(ctx) // it may have begun a moment ago
	for _, b := range table {
		if b.ID == id {
			return instanceOf(b), nil
		}
	}
	if err != nil {
		return Instance{}, handoff.Because(handoff.CodeStoreDown, "", err)
	}
	return Instance{ID: id}, nil
}

// open takes up what is left in a home that was just taken.
func (s *Homes) open(ctx context.Context, h *home) {
	for try := 0; ; try++ {
		left, err := s.each.Counts.Timed(s.each.Ledger).Open(ctx, h.Caller())
		if err == nil {
			h.TakeUp(ctx, left)
			break
		}
		if !s.pause(ctx, try) {
			return
		}
	}
	if s.in.Taken != nil {
		s.in.Taken(ctx, h.Caller())
	}
}

// elsewhere returns a router that takes nothing, for a caller whom this instance does not have.
func (s *Homes) elsewhere(c handoff.Caller) *router.Router {
	cfg := s.each
	cfg.Caller = c
	r := router.NewRouter(cfg)
	r.Refuse()
	return r
}

// share beats, reads the others' beats, and cares for homes, until ctx has ended.
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
	every(beatEvery, s.in.beat)
	every(readEvery, func(ctx context.Context) {
		for _, gone := range s.in.read(ctx) {
			all.Go(func() { s.takeOver(ctx, gone) })
		}
	})
	all.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-time.After(verifyEvery):
			case <-s.in.look:
			case <-ctx.Done():
				return
			}
			s.verify(ctx)
			s.release(time.Now())
		}
	})
	all.Wait()
}

// beat says that this instance is there.
func (in *instances) beat(ctx context.Context) {
	in.beaten++
	sent := time.Now()
	self := in.Self
	b := ledger.Beat{
		ID: self.ID, N: in.beaten, Address: self.Address, Fingerprint: self.Fingerprint, Draining: in.draining(),
	}
	if err := in.Store.Beat(ctx, b); err != nil {
		if !in.missed {
			in.log.Warn("the store takes no beats", zap.Error(err))
		}
		in.missed = true
		return
	}
	in.mu.Lock()
	in.near.Acknowledged(sent)
	may := in.near.MayAct(time.Now())
	in.mu.Unlock()
	if may {
		in.once.Do(func() { close(in.first) })
	}
	if !may || in.missed { // others may have taken what is here; or the store may have come back as it was before
		in.lookAgain()
	}
	in.missed = false
}

// lookAgain has the homes verified now.
func (in *instances) lookAgain() {
	select {
	case in.look <- struct{}{}:
	default:
	}
}

// read looks who beats, and returns those who are gone or drain, and whose homes nobody here takes over so far.
func (in *instances) read(ctx context.Context) (gone []ledger.Beat) {
	asked := time.Now()
	table, err := in.Store.Beats(ctx)
	if err != nil {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.near.Read(table, asked, time.Now())
	if in.drains || !in.near.MayAct(time.Now()) {
		return nil
	}
	drain := slices.DeleteFunc(in.near.There(), func(b ledger.Beat) bool { return !b.Draining })
	for _, one := range append(in.near.Gone(), drain...) {
		if one.ID != in.Self.ID && !in.heir[one.ID] {
			in.heir[one.ID] = true
			gone = append(gone, one)
		}
	}
	return gone
}

// verify compares the homes that are here with the store. One that another instance has is let go of. What the store
// had to be told counts once it says so itself: somebody may have taken the home meanwhile.
func (s *Homes) verify(ctx context.Context) {
	sent := time.Now()
	here := s.all()
	callers := make([]handoff.Caller, len(here))
	for i, h := range here {
		callers[i] = h.Caller()
	}
	stored, err := s.in.Store.Claims(ctx, callers)
	if err != nil {
		return
	}
	told := false
	for i, h := range here {
		mine := ledger.Claim{ID: s.in.Self.ID, Epoch: h.epoch}
		switch Verify(mine, stored[i]) {
		case Evict:
			s.evict(h)
		case Assert:
			if s.in.Store.Assert(ctx, callers[i], mine) != nil {
				return
			}
			told = true
		}
	}
	if told {
		s.in.lookAgain()
		return
	}
	s.in.mu.Lock()
	s.in.near.Verified(sent)
	s.in.mu.Unlock()
}

// evict ends the home of a caller whom another instance has. What its router still writes is refused.
func (s *Homes) evict(h *home) {
	s.mu.Lock()
	if s.homes[h.Caller()] != h {
		s.mu.Unlock()
		return
	}
	s.in.Store.Lose(h.Caller())
	s.dropLocked(h)
	s.mu.Unlock()
	s.each.Log.Info("another instance has a caller", zap.String("principal", h.Caller().Principal))
	if s.in.Lost != nil {
		s.in.Lost(h.Caller())
	}
}

// AuditOf returns an auditor whose records name an instance and the epoch of a home there.
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

package router

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/work"
)

// Config configures a router. Fleet is required. All routers of a process share IDs, Queues, Owners, Rates and Counts;
// where a field is nil, the router makes its own.
type Config struct {
	Fleet    handoff.Fleet
	Store    Store            // what is kept of the caller; may also be a [ledger.History]; nil: work is forgotten at the end
	Notifier handoff.Notifier // nil: no notices outside of calls
	Auditor  handoff.Auditor  // nil: decisions are only logged
	Log      *zap.Logger      // nil: none

	// Caller is served by the router. [Router.TakeUp] gives it the work that an earlier life of the process left.
	Caller handoff.Caller

	IDs    *IDs
	Queues *Queues
	Owners *Owners
	Rates  *Rates
	Counts *Counts

	// Gates keep instances that share a store from starting turns in one thread at the same moment; nil: there is one
	// instance, whose queues do that.
	Gates Gates
	// MayAct reports whether this instance certainly still is the caller's home. The router asks right before it gives
	// an agent work, more words or a decision, and refuses them after a no; nil: there is one instance.
	MayAct func() bool

	// Jitter shortens a pause at random; nil: [handoff.Jitter].
	Jitter func(time.Duration) time.Duration
	// Patience is how long the router tries to reach a lost agent before its work counts as unknown; 0: 30 min.
	Patience time.Duration
	// Silence is how long a turn may report nothing before the caller is told that it still runs; 0: 120 s.
	// A silent turn is still watched, and never ended.
	Silence time.Duration
	// GiveUp is how long a question waits for an answer before it is declined; 0: 30 min.
	GiveUp time.Duration
	// AskAgain is the time between two tries to decline a question that was given up; 0: 60 s.
	AskAgain time.Duration
}

// A Store keeps what is known of callers. It decides nothing.
type Store interface {
	// State returns what is kept of a caller, except texts and the past.
	State(ctx context.Context, c handoff.Caller) (ledger.State, error)
	// Commit writes a batch whole or not at all. After an error with code unreachable it is not known whether the batch
	// was written. After another life of the service, or another instance, has taken the caller, the code is shutdown.
	Commit(ctx context.Context, c handoff.Caller, b ledger.Batch) (ledger.Committed, error)
}

// A Router takes one caller's requests to agents and publishes what comes of them. It refuses requests of any other
// caller, and has nothing to show them.
type Router struct {
	Service // Set once: of its caller alone

	cfg   Config         // Set once
	past  ledger.History // Set once: the whole words and the history of the store; may be nil
	pages handoff.Feed   // safe by itself

	prefetches prefetches   // safe by itself
	doing      atomic.Int32 // what is being done that may not be open yet
	idle       atomic.Bool  // the state is idle since the newest step

	mail     chan letter   // to the loop
	finished chan func()   // from each job that has ended: what is done then, or nil
	ended    chan struct{} // closed when the loop has ended

	mu      sync.Mutex
	running bool             // Guarded by mu: the loop runs
	over    bool             // Guarded by mu: the loop has ended, or will never run
	early   []func() func()  // Guarded by mu: what waits for the loop to begin
	state   *work.State      // Owned by the loop; while none runs, guarded by mu
	lives   map[string]*life // like state: of open handoffs, by id
	jobs    int              // like state: number of jobs that have not ended
	ctx     context.Context  // Set by Run before the loop

	recovered chan struct{} // closed by [Router.TakeUp]; nil: there is no store
	takenUp   sync.Once     // closes recovered
}

// WithDefaults returns the configuration with defaults in place of zero fields, except for those that may stay nil.
func (cfg Config) WithDefaults() Config {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Jitter == nil {
		cfg.Jitter = handoff.Jitter
	}
	if cfg.MayAct == nil {
		cfg.MayAct = func() bool { return true }
	}
	if cfg.IDs == nil {
		cfg.IDs = NewIDs("")
	}
	if cfg.Queues == nil {
		cfg.Queues = NewQueues()
	}
	if cfg.Owners == nil {
		store, _ := cfg.Store.(ledger.Owners)
		cfg.Owners = NewOwners(store)
	}
	if cfg.Rates == nil {
		cfg.Rates = new(Rates)
	}
	if cfg.Counts == nil {
		cfg.Counts = NewCounts(cfg.Fleet)
	}
	cfg.Patience, cfg.Silence = cmp.Or(cfg.Patience, 30*time.Minute), cmp.Or(cfg.Silence, 2*time.Minute)
	cfg.GiveUp, cfg.AskAgain = cmp.Or(cfg.GiveUp, 30*time.Minute), cmp.Or(cfg.AskAgain, handoff.AskAgainAfter)
	return cfg
}

// NewRouter returns a router that does nothing before [Router.Run].
func NewRouter(cfg Config) *Router {
	cfg = cfg.WithDefaults()
	past, _ := cfg.Store.(ledger.History)
	if cfg.Store != nil {
		cfg.Store = cfg.Counts.Timed(cfg.Store)
	}
	r := &Router{
		cfg: cfg, past: past, lives: map[string]*life{},
		mail: make(chan letter), finished: make(chan func()), ended: make(chan struct{}),
	}
	r.prefetches.byKey = map[string]*prefetch{}
	of := func(handoff.Caller) *Router { return r }
	r.state, r.Service = work.New(r.knows()), Service{of, of}
	r.idle.Store(true)
	if cfg.Store != nil {
		r.recovered = make(chan struct{})
	}
	cfg.Counts.add(r)
	return r
}

// knows returns what the state of the caller knows of the world.
func (r *Router) knows() work.Config {
	cfg := r.cfg
	_, forks := cfg.Fleet.(handoff.Forker)
	return work.Config{
		Caller: cfg.Caller, Threads: cfg.Queues, Counter: cfg.Counts, Pages: &r.pages, NextID: cfg.IDs.Next,
		Registered: r.registered, Room: cfg.Rates.take, Forks: forks, Stored: cfg.Store != nil, Shared: cfg.Gates != nil,
		Own:   func(t handoff.Target) { cfg.Owners.add(cfg.Caller, t) },
		Pause: func(try int) time.Duration { return cfg.Jitter(retries.Step(try)) },
		Bad: func(name string) {
			cfg.Log.Warn("a document of a caller cannot be read", zap.String("principal", cfg.Caller.Principal))
		},
		Patience: cfg.Patience, Silence: cfg.Silence, GiveUp: cfg.GiveUp, AskAgain: cfg.AskAgain,
	}
}

// A Service has the methods that fronts call on behalf of a caller. Each of them goes to the router of that caller.
type Service struct {
	find func(handoff.Caller) *Router // Set once
	keep func(handoff.Caller) *Router // Set once
}

// NewService returns the service of many routers. of returns the router of a caller, which may be one that refuses work
// and is not kept, and home the one that stays, for what is to be remembered. Where a router serves somebody else, the
// service refuses requests and shows nothing.
func NewService(of, home func(handoff.Caller) *Router) Service { return Service{of, home} }

// of returns the router of a caller.
func (v Service) of(c handoff.Caller) *Router { return v.find(c).serving(c) }

// home returns the router of a caller, which stays.
func (v Service) home(c handoff.Caller) *Router { return v.keep(c).serving(c) }

// serving returns the router itself if it serves a caller, else one that knows nothing of them.
func (r *Router) serving(c handoff.Caller) *Router {
	if c == r.cfg.Caller {
		return r
	}
	cfg := r.cfg
	cfg.Caller, cfg.Store, cfg.Counts = c, nil, NewCounts(cfg.Fleet)
	other := NewRouter(cfg)
	other.Refuse()
	other.recovered = r.recovered
	return other
}

// giver returns the router that is to do something for a grant, which stays until done. A caller without one gets one
// only if work may be given.
func (v Service) giver(g handoff.Grant) (r *Router, done func(), err error) {
	if v.of(g.Caller).isOver() {
		if err := v.MayGive(g); err != nil {
			return nil, nil, err
		}
	}
	r = v.home(g.Caller)
	r.doing.Add(1)
	return r, func() { r.doing.Add(-1) }, nil
}

func (r *Router) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// sums asks what there is.
func (r *Router) sums() work.Sums { return *ask(r, &work.Sums{}) }

// Idle reports whether everything of the caller is in the store: no listener attends, no work or question is open, no
// page listens, every outcome was heard, and nothing is left to be written.
func (r *Router) Idle() bool {
	listeners, _ := r.pages.Load()
	return r.doing.Load() == 0 && listeners == 0 && r.idle.Load()
}

// Handoffs returns a caller's handoffs, newest first. Before [Router.TakeUp] has read the work of an earlier life, it
// returns the handoffs of this one, and [handoff.CodeStoreDown].
func (v Service) Handoffs(g handoff.Grant) ([]handoff.Record, error) {
	r := v.of(g.Caller)
	unread := r.Recovered(context.Background(), 0) // before the list: without an error, the list is complete
	return slices.DeleteFunc(ask(r, &work.List{}).All, func(rec handoff.Record) bool {
		return !rec.Shown(g) || rec.Unkept && rec.State == handoff.StatusDelivered // only its key is kept
	}), unread
}

// Handoff returns one of a caller's handoffs.
func (v Service) Handoff(g handoff.Grant, id string) (handoff.Record, error) {
	r := v.of(g.Caller)
	rec := ask(r, &work.Find{ID: id}).Record
	if rec.ID == "" || !rec.Shown(g) {
		return handoff.Record{}, r.notFound()
	}
	return rec, nil
}

// notFound returns the error that there is no such work, or [handoff.CodeStoreDown] while that is not known.
func (r *Router) notFound() error {
	return r.orUnread(handoff.Fault(handoff.CodeNotFound, "such work", ""))
}

// orUnread returns [handoff.CodeStoreDown] in place of an error that may be due to work of an earlier life that was not
// read yet.
func (r *Router) orUnread(err error) error {
	switch handoff.CodeOf(err) {
	case handoff.CodeNotFound, handoff.CodeNotPending:
		if unread := r.Recovered(context.Background(), 0); unread != nil {
			return unread
		}
	}
	return err
}

// Recovered waits until the router has the work of its earlier life, for at most within; 0 does not wait. It returns
// [handoff.CodeStoreDown] if that takes longer.
func (r *Router) Recovered(ctx context.Context, within time.Duration) error {
	if r.recovered == nil {
		return nil
	}
	return Known(ctx, r.recovered, within)
}

// Known waits, for at most within, until known is closed, which happens when the work of an earlier life was read; see
// [Router.Recovered].
func Known(ctx context.Context, known <-chan struct{}, within time.Duration) error {
	select {
	case <-known:
		return nil
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	select {
	case <-known:
		return nil
	case <-ctx.Done():
		return handoff.Fault(handoff.CodeStoreDown, handoff.WhyStoreReading, "")
	}
}

// Working reports whether work is under way on a server, or is about to begin there.
func (r *Router) Working(server string) bool {
	return r.prefetches.on(server) || ask(r, &work.Sums{Server: server}).Working
}

// Waiting counts the caller's work that waits for a server, which is lost since the time lost.
func (r *Router) Waiting(server string, lost time.Time) int {
	return ask(r, &work.Sums{Server: server, Since: lost}).Waiting
}

// Beginning reports whether some work has not reached its agent yet. If the caller moved to another home now, that home
// would ask the caller before it begins such work.
func (r *Router) Beginning() bool { return r.sums().Beginning }

// Caller returns the caller whom the router serves.
func (r *Router) Caller() handoff.Caller { return r.cfg.Caller }

// Stickies returns a caller's sticky sessions, by server.
func (v Service) Stickies(ctx context.Context, g handoff.Grant) ([]handoff.RecordSticky, error) {
	r := v.of(g.Caller)
	used, err := r.used(ctx)
	if err != nil {
		return nil, handoff.AsError(err)
	}
	list := []handoff.RecordSticky{}
	for _, s := range used {
		if !g.AllowsServer(s.Target.Server) {
			continue
		}
		why := handoff.WhyNew
		if s.Named {
			why = handoff.WhyNamed
		}
		list = append(list, handoff.RecordSticky{
			Server: work.PlaceOf(s.Target).String(), ThreadID: s.Target.Thread, Title: s.Title, Why: why, Since: s.Since,
		})
	}
	return list, nil
}

// used returns the sessions that the caller uses. A router that refuses all work reads them from the store each time.
func (r *Router) used(ctx context.Context) ([]handoff.Sticky, error) {
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	return ask(r, &work.Used{}).All, nil
}

// PutSticky makes an existing session the sticky one of "bigpc" or "bigpc/api"; title is its name.
func (v Service) PutSticky(ctx context.Context, g handoff.Grant, server, thread, title string) error {
	if err := g.May(handoff.ActGive); err != nil {
		return err
	}
	r, done, err := v.giver(g)
	if err != nil {
		return err
	}
	defer done()
	if err := r.open(ctx); err != nil {
		return handoff.AsError(err)
	}
	target, err := r.cfg.Fleet.Resolve(ctx, g, handoff.Target{Server: server, Thread: thread})
	if err != nil {
		return err
	}
	if target.Thread == "" || target.Thread == handoff.NewThread {
		return handoff.Fault(handoff.CodeMalformed, "which session is meant", "")
	}
	ask(r, &work.Use{Sticky: handoff.Sticky{Target: target, Title: title, Named: true, Since: time.Now().UTC()}})
	return nil
}

// ClearSticky forgets the sticky session of "bigpc" or "bigpc/api"; the next request there starts anew.
func (v Service) ClearSticky(ctx context.Context, g handoff.Grant, server string) error {
	if err := g.May(handoff.ActGive); err != nil {
		return err
	}
	name, project, _ := strings.Cut(server, "/")
	place := work.Place{Server: name, Project: project}
	r := v.of(g.Caller)
	if err := r.open(ctx); err != nil {
		return handoff.AsError(err)
	}
	if !ask(r, &work.Unuse{Place: place, Look: true}).Was || !g.AllowsServer(name) {
		return handoff.Fault(handoff.CodeNotFound, "current session there", "")
	}
	r = v.home(g.Caller)
	if err := r.open(ctx); err != nil {
		return handoff.AsError(err)
	}
	ask(r, &work.Unuse{Place: place})
	return nil
}

// Shown reports whether a page is open on which the caller reads all their questions.
func (v Service) Shown(g handoff.Grant) bool { return v.of(g.Caller).pages.Shown() }

// Feed returns the feed of a caller's pages, or an empty one if the grant may not read the caller's work.
func (v Service) Feed(g handoff.Grant) *handoff.Feed {
	if g.May(handoff.ActRead) != nil {
		return new(handoff.Feed)
	}
	return &v.home(g.Caller).pages
}

// ServersChanged tells the caller's pages that the health of the fleet changed.
func (r *Router) ServersChanged() { r.pages.Publish(handoff.PageEvent{Kind: handoff.PageServers}) }

// retries is the pause between two tries to reach a lost agent, or the store.
var retries = handoff.Backoff{First: 250 * time.Millisecond, Longest: 10 * time.Second}

// Pause waits before try number n (from 0) to reach a lost agent or the store. It returns false when ctx ends first.
func (cfg Config) Pause(ctx context.Context, n int) bool {
	select {
	case <-time.After(cfg.Jitter(retries.Step(n))):
		return true
	case <-ctx.Done():
		return false
	}
}

// act calls give, which sends something to an agent. It refuses if another instance may be the caller's home by now:
// then only that instance may send.
func (r *Router) act(give func() error) error {
	if !r.cfg.MayAct() {
		return handoff.Fault(handoff.CodeStoreDown, "", "this instance may have lost its callers to another")
	}
	return give()
}

// registered returns the configuration of a server. If the fleet is no [handoff.Registrar], only its name is known.
func (r *Router) registered(server string) handoff.Registered {
	if fleet, ok := r.cfg.Fleet.(handoff.Registrar); ok {
		return fleet.Registered(server)
	}
	return handoff.Registered{Names: []string{server}}
}

// ErrMoved is the cause with which the context of [Router.Run] ends when the caller gets another home. That home goes
// on from the store: waiting work stays accepted there, and running work gets no outcome here.
var ErrMoved = errors.New("the caller has another home")

// IDs makes the ids of all routers of a process. No other life of the process makes the same ones. It is safe for
// concurrent use.
type IDs struct {
	life string        // Set once
	last atomic.Uint64 // the number of the last id
}

// NewIDs returns the ids of one life of the process. They begin with the name of that life, [a-z0-9], which must be
// unique; "": a random name.
func NewIDs(life string) *IDs {
	return &IDs{life: cmp.Or(life, strings.ToLower(rand.Text()[:8]))}
}

// Next returns a new id, [a-z0-9-], at most 20 bytes.
func (n *IDs) Next() string { return n.life + "-" + strconv.FormatUint(n.last.Add(1), 10) }

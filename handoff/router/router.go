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
	"switchboard/handoff/phase"
)

// Config is what a router needs. Fleet and Stickies are required. IDs, Queues, Owners, Rates and Counts are shared by
// all routers of a process; a router that is given none has its own.
type Config struct {
	Fleet    handoff.Fleet
	Stickies handoff.Stickies
	Ledger   ledger.Ledger    // nil: work is forgotten when the process ends. It may also be a [ledger.History]
	Notifier handoff.Notifier // nil: nobody is told outside calls
	Auditor  handoff.Auditor  // nil: decisions are only logged
	Log      *zap.Logger      // nil: none

	// Caller is whom the router serves. What a former life left of theirs is given to it by [Router.TakeUp].
	Caller handoff.Caller

	IDs    *IDs
	Queues *Queues
	Owners *Owners
	Rates  *Rates
	Counts *Counts

	// Gates keep instances that share a store from starting turns in one thread at the same moment; nil: nobody else is
	// there, and the queues do that.
	Gates Gates
	// MayAct reports whether nobody else can have the caller by now. It is asked right before an agent is given work,
	// more words or a decision, which are refused where it says no; nil: nobody else is there.
	MayAct func() bool

	// Jitter shortens a pause by chance; nil: [handoff.Jitter].
	Jitter func(time.Duration) time.Duration
	// Patience is how long an agent that was lost is looked for before its work counts as unknown; 0: 30 min.
	Patience time.Duration
	// Silence is how long a turn may report nothing before the caller is told that it still runs; 0: 120 s.
	// A silent turn is still watched, and never ended.
	Silence time.Duration
	// GiveUp is how long a question waits for an answer before it is declined; 0: 30 min.
	GiveUp time.Duration
	// AskAgain is the time between two tries to decline a question that was given up; 0: 60 s.
	AskAgain time.Duration
}

// A Router takes one caller's requests to agents and publishes what comes of them. Of anybody else it knows nothing,
// and takes nothing.
type Router struct {
	Service // Set once: of its caller alone

	cfg  Config         // Set once; the ledger and the stickies count their round trips
	past ledger.History // Set once: what the ledger keeps beside its entries; may be nil

	mine *caller // Set once: of whom it serves

	jobs jobs // safe by itself

	recovered chan struct{} // closed once what a former life left is known; nil: there is no ledger
	takenUp   sync.Once     // closes recovered
}

// WithDefaults fills in what a configuration lacks, except for what may be nil.
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
		store, _ := cfg.Ledger.(ledger.Owners)
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
	past, _ := cfg.Ledger.(ledger.History)
	if cfg.Ledger != nil {
		cfg.Ledger = cfg.Counts.Timed(cfg.Ledger)
	}
	cfg.Stickies = timedStickies{cfg.Stickies, cfg.Counts.store}
	r := &Router{cfg: cfg, past: past}
	r.mine, r.Service = newCaller(r, cfg.Caller), Service{r.caller}
	if cfg.Ledger != nil {
		r.recovered = make(chan struct{})
	}
	cfg.Counts.add(r)
	return r
}

// A Service is what fronts ask for a caller. Each of its methods asks the router that serves the caller.
type Service struct {
	of func(handoff.Caller) *caller // Set once
}

// NewService returns the service of many routers; of returns that of a caller. It takes nothing for a caller whom the
// router does not serve.
func NewService(of func(handoff.Caller) *Router) Service {
	return Service{func(who handoff.Caller) *caller { return of(who).caller(who) }}
}

// caller returns what is known of a caller, which is nothing unless the router serves them.
func (r *Router) caller(who handoff.Caller) *caller {
	if who != r.mine.who {
		return newCaller(r, who)
	}
	return r.mine
}

// Idle reports whether everything of the caller is in the store: nobody attends, no run or question is open, no page
// listens, and there is nothing to be told or written.
func (r *Router) Idle() bool {
	c := r.mine
	listeners, _ := c.feed.pages.Load()
	return listeners == 0 && c.feed.idle() && c.questions.count() == 0 && c.stickies.stored() && c.claims.none()
}

// Handoffs returns a caller's handoffs, newest first. While it is not known what the router's former life left, it
// returns what is known, and [handoff.CodeStoreDown].
func (v Service) Handoffs(g handoff.Grant) ([]handoff.Record, error) {
	c := v.of(g.Caller)
	unread := c.router.Recovered(context.Background(), 0) // first: what is known a moment later is in the list
	return slices.DeleteFunc(c.registry.list(), func(rec handoff.Record) bool {
		return !rec.Shown(g) || rec.Unkept && rec.State == handoff.StatusDelivered // of which only the key is known
	}), unread
}

// Handoff returns one of a caller's handoffs.
func (v Service) Handoff(g handoff.Grant, id string) (handoff.Record, error) {
	c := v.of(g.Caller)
	rec, _ := c.registry.find(id)
	if rec.ID == "" || !rec.Shown(g) {
		return handoff.Record{}, c.router.notFound()
	}
	return rec, nil
}

// notFound says that there is no such work, once that can be known.
func (r *Router) notFound() error {
	if err := r.Recovered(context.Background(), 0); err != nil {
		return err
	}
	return handoff.Fault(handoff.CodeNotFound, "such work", "")
}

// Recovered waits until the router knows what its former life left, for at most within; 0 does not wait. It gives
// [handoff.CodeStoreDown] while that is not known.
func (r *Router) Recovered(ctx context.Context, within time.Duration) error {
	if r.recovered == nil {
		return nil
	}
	return Known(ctx, r.recovered, within)
}

// Known waits until what a former life left is known, which closes a channel; see [Router.Recovered].
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
		return handoff.Fault(handoff.CodeStoreDown, "", "what was done before is not read yet")
	}
}

// Working reports whether work is under way on a server, or is about to begin there.
func (r *Router) Working(server string) bool {
	return r.mine.prefetches.on(server) || r.mine.registry.working(server)
}

// Waiting counts the caller's work that waits for a server which was lost at a time.
func (r *Router) Waiting(server string, lost time.Time) int {
	return r.mine.registry.waits(server, lost)
}

// Beginning reports whether words are on their way to an agent. Another home would ask before it begins them.
func (r *Router) Beginning() bool {
	return slices.ContainsFunc(r.mine.registry.runs(), func(w *run) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch w.state.Phase {
		case phase.Resolving, phase.Attaching, phase.Starting, phase.Steering:
			return true
		}
		return false
	})
}

// Caller is whom the router serves.
func (r *Router) Caller() handoff.Caller { return r.mine.who }

// Questions returns what agents wait for, oldest first.
func (v Service) Questions(g handoff.Grant) []handoff.RecordQuestion {
	return slices.DeleteFunc(v.of(g.Caller).questions.list(), func(q handoff.RecordQuestion) bool {
		return !g.AllowsServer(q.Server)
	})
}

// Stickies returns a caller's sticky sessions, by server.
func (v Service) Stickies(ctx context.Context, g handoff.Grant) ([]handoff.RecordSticky, error) {
	c := v.of(g.Caller)
	if err := c.loadStickies(ctx); err != nil {
		return nil, handoff.AsError(err)
	}
	list := []handoff.RecordSticky{}
	for _, s := range c.stickies.list() {
		if !g.AllowsServer(s.Target.Server) {
			continue
		}
		why := handoff.WhyNew
		if s.Named {
			why = handoff.WhyNamed
		}
		list = append(list, handoff.RecordSticky{
			Server: keyOf(s.Target).String(), ThreadID: s.Target.Thread, Title: s.Title, Why: why, Since: s.Since,
		})
	}
	return list, nil
}

// PutSticky makes a session the one in use on "bigpc" or "bigpc/api". The session must exist; title is its name.
func (v Service) PutSticky(ctx context.Context, g handoff.Grant, server, thread, title string) error {
	c := v.of(g.Caller)
	if err := c.loadStickies(ctx); err != nil {
		return handoff.AsError(err)
	}
	target, err := c.router.cfg.Fleet.Resolve(ctx, g, handoff.Target{Server: server, Thread: thread})
	if err != nil {
		return err
	}
	if target.Thread == "" || target.Thread == handoff.NewThread {
		return handoff.Fault(handoff.CodeMalformed, "which session is meant", "")
	}
	now := time.Now()
	s := handoff.Sticky{Target: target, Title: title, Named: true, Since: now.UTC()}
	if c.stickies.put(s, now) {
		c.stick(stickyWrite{sticky: s})
	}
	return nil
}

// ClearSticky forgets the sticky session of "bigpc" or "bigpc/api"; the next request there starts anew.
func (v Service) ClearSticky(ctx context.Context, g handoff.Grant, server string) error {
	c := v.of(g.Caller)
	if err := c.loadStickies(ctx); err != nil {
		return handoff.AsError(err)
	}
	name, project, _ := strings.Cut(server, "/")
	key := stickyKey{name, project}
	if _, ok := c.stickies.get(key); !ok || !g.AllowsServer(name) {
		return handoff.Fault(handoff.CodeNotFound, "sticky session there", "")
	}
	c.stickies.drop(key)
	c.stick(stickyWrite{sticky: handoff.Sticky{Target: handoff.Target{Server: name, Project: project}}, clear: true})
	return nil
}

// Shown reports whether a page shows the caller what happens.
func (v Service) Shown(g handoff.Grant) bool {
	pages, _ := v.of(g.Caller).feed.pages.Load()
	return pages > 0
}

// Feed returns the feed that a caller's pages follow.
func (v Service) Feed(g handoff.Grant) *handoff.Feed { return &v.of(g.Caller).feed.pages }

// ServersChanged tells every page that the health of the fleet changed.
func (r *Router) ServersChanged() {
	r.mine.feed.pages.Publish(handoff.PageEvent{Kind: handoff.EventServers})
}

// repeatEvery is how long what goes on may be missing from a store that came back empty.
const repeatEvery = 30 * time.Second

// repeat tells the ledger again and again what is not delivered, so that a store which came back empty
// learns it although nothing else happens.
func (r *Router) repeat(ctx context.Context) {
	ticker := time.NewTicker(repeatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		for _, l := range r.mine.registry.writers() {
			if err := l.repeat(ctx); err != nil && retried(err) {
				break // it is away: next time
			}
		}
	}
}

// retries stand between two tries to reach an agent that was lost, or the store.
var retries = handoff.Backoff{First: 250 * time.Millisecond, Longest: 10 * time.Second}

// pause waits before try number n (from 0). False means that ctx ended.
func (r *Router) pause(ctx context.Context, n int) bool {
	t := time.NewTimer(r.cfg.Jitter(retries.Step(n)))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// act gives an agent something, unless somebody else may have the caller by now: that one decides what is given.
func (r *Router) act(give func() error) error {
	if !r.cfg.MayAct() {
		return handoff.Fault(handoff.CodeStoreDown, "", "this instance may have lost its callers to another")
	}
	return give()
}

// registered returns what is configured of a server; a fleet that does not tell knows it by its name.
func (r *Router) registered(server string) handoff.Registered {
	if fleet, ok := r.cfg.Fleet.(handoff.Registrar); ok {
		return fleet.Registered(server)
	}
	return handoff.Registered{Names: []string{server}}
}

// Refuse is for a router that is not to run: it takes nothing, as one that has ended.
func (r *Router) Refuse() {
	r.jobs.refuse()
	r.cfg.Counts.remove(r)
}

// ErrMoved is the cause with which the context of [Router.Run] ends when the caller gets another home, which goes on
// with what the ledger has: words that wait stay accepted, and nobody is told an outcome of what runs.
var ErrMoved = errors.New("the caller has another home")

// Run starts and awaits everything that outlives a call. It is called once. When ctx ends, every open run gets its
// outcome, unless that is for [ErrMoved], and Run returns after the last one.
func (r *Router) Run(ctx context.Context) error {
	var first []job
	if r.cfg.Ledger != nil {
		first = []job{r.repeat}
	}
	r.jobs.run(ctx, first...)
	r.cfg.Counts.remove(r)
	return nil
}

// IDs names what the routers of a process make, so that no other life of the process gives the same name. It is safe
// for concurrent use.
type IDs struct {
	life string        // Set once
	last atomic.Uint64 // the number of the last id
}

// NewIDs returns the ids of a life of the process, which begin with its name, [a-z0-9]; "": a random one. No two lives
// have the same.
func NewIDs(life string) *IDs {
	return &IDs{life: cmp.Or(life, strings.ToLower(rand.Text()[:8]))}
}

// Next returns an id that was never given, [a-z0-9-], at most 20 bytes.
func (n *IDs) Next() string { return n.life + "-" + strconv.FormatUint(n.last.Add(1), 10) }

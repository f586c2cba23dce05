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

// Config configures a router. Fleet and Stickies are required. All routers of a process share IDs, Queues, Owners,
// Rates and Counts; where a field is nil, the router makes its own.
type Config struct {
	Fleet    handoff.Fleet
	Stickies handoff.Stickies
	Ledger   ledger.Ledger    // may also be a [ledger.History]; nil: work is forgotten when the process ends
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

// A Router takes one caller's requests to agents and publishes what comes of them. It refuses requests of any other
// caller, and has nothing to show them.
type Router struct {
	Service // Set once: of its caller alone

	cfg  Config         // Set once; its ledger and stickies count their round trips
	past ledger.History // Set once: the whole words and the history of the ledger; may be nil

	mine *caller // Set once: the state of its caller

	jobs  jobs         // safe by itself
	doing atomic.Int32 // what is being done that may not be open yet

	recovered chan struct{} // closed by [Router.TakeUp]; nil: there is no ledger
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
	r.mine, r.Service = newCaller(r, cfg.Caller), Service{r.caller, r.caller}
	if cfg.Ledger != nil {
		r.recovered = make(chan struct{})
	}
	cfg.Counts.add(r)
	return r
}

// A Service has the methods that fronts call on behalf of a caller. Each of them goes to the router of that caller.
type Service struct {
	of   func(handoff.Caller) *caller // Set once
	home func(handoff.Caller) *caller // Set once
}

// NewService returns the service of many routers. of returns the router of a caller, which may be one that refuses work
// and is not kept, and home the one that stays, for what is to be remembered. Where a router serves somebody else, the
// service refuses requests and shows nothing.
func NewService(of, home func(handoff.Caller) *Router) Service {
	return Service{
		func(who handoff.Caller) *caller { return of(who).caller(who) },
		func(who handoff.Caller) *caller { return home(who).caller(who) },
	}
}

// giver returns the router that is to do something for a grant, which stays until done. A caller without one gets one
// only if work may be given.
func (v Service) giver(g handoff.Grant) (r *Router, done func(), err error) {
	if v.of(g.Caller).router.jobs.isClosed() {
		if err := v.MayGive(g); err != nil {
			return nil, nil, err
		}
	}
	r = v.home(g.Caller).router
	r.doing.Add(1)
	return r, func() { r.doing.Add(-1) }, nil
}

// caller returns the state of a caller, which is empty unless the router serves them.
func (r *Router) caller(who handoff.Caller) *caller {
	if who != r.mine.who {
		return newCaller(r, who)
	}
	return r.mine
}

// Idle reports whether everything of the caller is in the store: no listener attends, no run or question is open, no
// page listens, every outcome was heard, and nothing is left to be written.
func (r *Router) Idle() bool {
	c := r.mine
	listeners, _ := c.feed.pages.Load()
	return r.doing.Load() == 0 && listeners == 0 && c.feed.idle() && c.questions.count() == 0 && c.stickies.stored() && c.claims.none()
}

// Handoffs returns a caller's handoffs, newest first. Before [Router.TakeUp] has read the work of an earlier life, it
// returns the handoffs of this one, and [handoff.CodeStoreDown].
func (v Service) Handoffs(g handoff.Grant) ([]handoff.Record, error) {
	c := v.of(g.Caller)
	unread := c.router.Recovered(context.Background(), 0) // before the list: without an error, the list is complete
	return slices.DeleteFunc(c.registry.list(), func(rec handoff.Record) bool {
		return !rec.Shown(g) || rec.Unkept && rec.State == handoff.StatusDelivered // only its key is kept
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

// notFound returns the error that there is no such work, or [handoff.CodeStoreDown] while that is not known.
func (r *Router) notFound() error {
	if err := r.Recovered(context.Background(), 0); err != nil {
		return err
	}
	return handoff.Fault(handoff.CodeNotFound, "such work", "")
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
	return r.mine.prefetches.on(server) || r.mine.registry.working(server)
}

// Waiting counts the caller's work that waits for a server, which is lost since the time lost.
func (r *Router) Waiting(server string, lost time.Time) int {
	return r.mine.registry.countWaiting(server, lost)
}

// Beginning reports whether some work has not reached its agent yet. If the caller moved to another home now, that home
// would ask the caller before it begins such work.
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

// Caller returns the caller whom the router serves.
func (r *Router) Caller() handoff.Caller { return r.mine.who }

// Questions returns the open questions of agents, oldest first, each with the answers that the grant may give outside
// of calls.
func (v Service) Questions(g handoff.Grant) []handoff.RecordQuestion {
	c := v.of(g.Caller)
	shown := []handoff.RecordQuestion{}
	for _, q := range c.questions.list() {
		if c.asks(g, q.Shown) {
			shown = append(shown, q.offered(g))
		}
	}
	return shown
}

// asks reports whether a grant may see a question: it may answer it, or see the work that asks it.
func (c *caller) asks(g handoff.Grant, q handoff.RecordQuestion) bool {
	rec, _ := c.registry.find(q.Handoff)
	return g.AllowsServer(q.Server) && (g.May(handoff.ActDecline) == nil || rec.Shown(g))
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
	c := r.caller(g.Caller)
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
	if err := g.May(handoff.ActGive); err != nil {
		return err
	}
	c := v.of(g.Caller)
	if err := c.loadStickies(ctx); err != nil {
		return handoff.AsError(err)
	}
	name, project, _ := strings.Cut(server, "/")
	key := stickyKey{name, project}
	if _, ok := c.stickies.get(key); !ok || !g.AllowsServer(name) {
		return handoff.Fault(handoff.CodeNotFound, "sticky session there", "")
	}
	c = v.home(g.Caller)
	if err := c.loadStickies(ctx); err != nil {
		return handoff.AsError(err)
	}
	c.stickies.drop(key)
	c.stick(stickyWrite{sticky: handoff.Sticky{Target: handoff.Target{Server: name, Project: project}}, clear: true})
	return nil
}

// Shown reports whether a page of the caller is open.
func (v Service) Shown(g handoff.Grant) bool {
	pages, _ := v.of(g.Caller).feed.pages.Load()
	return pages > 0
}

// Feed returns the feed of a caller's pages, or an empty one if the grant may not read the caller's work.
func (v Service) Feed(g handoff.Grant) *handoff.Feed {
	if g.May(handoff.ActRead) != nil {
		return new(handoff.Feed)
	}
	return &v.home(g.Caller).feed.pages
}

// ServersChanged tells the caller's pages that the health of the fleet changed.
func (r *Router) ServersChanged() {
	r.mine.feed.pages.Publish(handoff.PageEvent{Kind: handoff.EventServers})
}

// repeatEvery is how long open work may be missing from a store that came back empty.
const repeatEvery = 30 * time.Second

// repeat writes the newest step of each open handoff to the ledger again, every [repeatEvery]. So a store that came
// back empty learns of work in which nothing else happens.
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
			if err := l.repeat(ctx); err != nil && retryable(err) {
				break // the store is away
			}
		}
	}
}

// retries is the pause between two tries to reach a lost agent, or the store.
var retries = handoff.Backoff{First: 250 * time.Millisecond, Longest: 10 * time.Second}

// Pause waits before try number n (from 0) to reach a lost agent or the store. It returns false when ctx ends first.
func (cfg Config) Pause(ctx context.Context, n int) bool {
	t := time.NewTimer(cfg.Jitter(retries.Step(n)))
	defer t.Stop()
	select {
	case <-t.C:
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

// Refuse makes a router that will never run refuse all work, as one that has ended does.
func (r *Router) Refuse() {
	r.jobs.refuse()
	r.cfg.Counts.remove(r)
}

// ErrMoved is the cause with which the context of [Router.Run] ends when the caller gets another home. That home goes
// on from the ledger: waiting work stays accepted there, and running work gets no outcome here.
var ErrMoved = errors.New("the caller has another home")

// Run starts and awaits everything that outlives a call. It is called once. When ctx ends, every open run gets an
// outcome, except when the cause is [ErrMoved]. Run returns after the last run has ended.
func (r *Router) Run(ctx context.Context) error {
	var first []job
	if r.cfg.Ledger != nil {
		first = []job{r.repeat}
	}
	r.jobs.run(ctx, first...)
	r.cfg.Counts.remove(r)
	return nil
}

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

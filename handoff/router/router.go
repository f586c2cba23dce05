package router

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// Config is what a router needs. Fleet and Stickies are required. Queues, Owners, Rates and Counts are shared by all
// routers of a process; a router that is given none has its own.
type Config struct {
	Fleet    handoff.Fleet
	Stickies handoff.Stickies
	Ledger   ledger.Ledger    // nil: work is forgotten when the process ends. It may also be a [ledger.History]
	Notifier handoff.Notifier // nil: nobody is told outside calls
	Auditor  handoff.Auditor  // nil: decisions are only logged
	Log      *zap.Logger      // nil: none
	Life     string           // names this life of the router in ids, [a-z0-9]; "": random. No two routers have the same

	// Caller is the only one whom the router serves: it takes up what a former life left of theirs, and the entries of
	// others belong to other routers. Zero: the router serves everybody.
	Caller handoff.Caller
	Queues *Queues
	Owners *Owners
	Rates  *Rates
	Counts *Counts

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

// A Router takes requests to agents and publishes what comes of them.
type Router struct {
	fleet    handoff.Fleet                     // Set once
	stickies handoff.Stickies                  // Set once
	ledger   ledger.Ledger                     // Set once; may be nil
	past     ledger.History                    // Set once: what the ledger keeps beside its entries; may be nil
	only     handoff.Caller                    // Set once: whom it serves; zero: everybody
	notifier handoff.Notifier                  // Set once; may be nil
	auditor  handoff.Auditor                   // Set once; may be nil
	giveUp   time.Duration                     // Set once
	askAgain time.Duration                     // Set once
	log      *zap.Logger                       // Set once
	life     string                            // Set once
	patience time.Duration                     // Set once
	silence  time.Duration                     // Set once
	jitter   func(time.Duration) time.Duration // Set once: shortens a pause by chance
	queues   *Queues                           // Set once; shared, like the next three
	owners   *Owners                           // Set once
	rates    *Rates                            // Set once
	counts   *Counts                           // Set once

	jobs jobs          // safe by itself
	ids  atomic.Uint64 // the last id given

	prefetches prefetches    // safe by itself
	recovered  chan struct{} // closed once what a former life left is known; nil: there is no ledger

	mu      sync.Mutex
	callers map[handoff.Caller]*callerState // Guarded by mu
	claimed map[string]string               // Guarded by mu: keys of the ledger that this life of the router has in hand, and their owners
}

// NewRouter returns a router that does nothing before [Router.Run].
func NewRouter(cfg Config) *Router {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Life == "" {
		cfg.Life = strings.ToLower(rand.Text()[:8])
	}
	if cfg.Jitter == nil {
		cfg.Jitter = handoff.Jitter
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
	past, _ := cfg.Ledger.(ledger.History)
	if cfg.Ledger != nil {
		cfg.Ledger = timedLedger{cfg.Ledger, cfg.Counts.store}
	}
	r := &Router{
		fleet: cfg.Fleet, stickies: timedStickies{cfg.Stickies, cfg.Counts.store}, log: cfg.Log, life: cfg.Life, only: cfg.Caller,
		ledger: cfg.Ledger, past: past, notifier: cfg.Notifier, auditor: cfg.Auditor,
		giveUp: cmp.Or(cfg.GiveUp, 30*time.Minute), askAgain: cmp.Or(cfg.AskAgain, handoff.AskAgainAfter),
		patience: cmp.Or(cfg.Patience, 30*time.Minute), silence: cmp.Or(cfg.Silence, 2*time.Minute), jitter: cfg.Jitter,
		queues: cfg.Queues, owners: cfg.Owners, rates: cfg.Rates, counts: cfg.Counts, callers: map[handoff.Caller]*callerState{}, claimed: map[string]string{},
	}
	if r.ledger != nil {
		r.recovered = make(chan struct{})
	}
	r.counts.add(r)
	return r
}

// NextID returns an id that no other life of the router gives, [a-z0-9-], at most 20 bytes.
func (r *Router) NextID() string {
	return r.life + "-" + strconv.FormatUint(r.ids.Add(1), 10)
}

func (r *Router) caller(c handoff.Caller) *callerState {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	b := r.callers[c]
	if b == nil {
		r.letGoLocked(now)
		b = newCallerState(r.counts)
		r.callers[c] = b
	}
	b.asked = now
	return b
}

// known returns what is known of each caller.
func (r *Router) known() []*callerState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.callers))
}

// claim takes an entry of the ledger in hand for an owner.
func (r *Router) claim(key, owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claimed[key] = owner
}

// claimLeft takes an entry in hand that a former life left. False means that it is already: there is never a second
// owner of a handoff here.
func (r *Router) claimLeft(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, had := r.claimed[key]
	if !had {
		r.claimed[key] = ""
	}
	return !had
}

// release lets go of an entry that needs nobody any more, unless its key has another owner by now.
func (r *Router) release(key, owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.claimed[key] == owner {
		delete(r.claimed, key)
	}
}

// threadKey names the queue of a thread.
func threadKey(t handoff.Target) string { return "thread " + t.Server + " " + t.Thread }

// newSessionKey names the queue in which a caller's next thread on a server or project is made.
func newSessionKey(c handoff.Caller, t handoff.Target) string {
	return "new " + c.String() + " " + keyOf(t).String()
}

// loadStickies reads a caller's stickies once; after that the router is their only writer.
func (r *Router) loadStickies(ctx context.Context, c handoff.Caller, b *callerState) error {
	if b.isLoaded() {
		return nil
	}
	list, err := r.stickies.List(ctx, c)
	if err != nil {
		return err
	}
	b.setStickies(list)
	for _, s := range list {
		if !s.Named {
			r.owners.made(c, s.Target)
		}
	}
	return nil
}

// Handoffs returns a caller's handoffs, newest first. While it is not known what the router's former life left, it
// returns what is known, and [handoff.CodeStoreDown].
func (r *Router) Handoffs(g handoff.Grant) ([]handoff.Record, error) {
	unread := r.Recovered(context.Background(), 0) // first: what is known a moment later is in the list
	return slices.DeleteFunc(r.caller(g.Caller).list(), func(rec handoff.Record) bool {
		return !rec.Shown(g) || rec.Unkept && rec.State == handoff.StatusDelivered // of which only the key is known
	}), unread
}

// Handoff returns one of a caller's handoffs.
func (r *Router) Handoff(g handoff.Grant, id string) (handoff.Record, error) {
	rec, _ := r.caller(g.Caller).find(id)
	if rec.ID == "" || !rec.Shown(g) {
		return handoff.Record{}, r.notFound()
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
	select {
	case <-r.recovered:
		return nil
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	select {
	case <-r.recovered:
		return nil
	case <-ctx.Done():
		return handoff.Fault(handoff.CodeStoreDown, "", "what was done before is not read yet")
	}
}

// Questions returns what agents wait for, oldest first.
func (r *Router) Questions(g handoff.Grant) []handoff.RecordQuestion {
	return slices.DeleteFunc(r.caller(g.Caller).listQuestions(), func(q handoff.RecordQuestion) bool { return !g.AllowsServer(q.Server) })
}

// Stickies returns a caller's sticky sessions, by server.
func (r *Router) Stickies(ctx context.Context, g handoff.Grant) ([]handoff.RecordSticky, error) {
	b := r.caller(g.Caller)
	if err := r.loadStickies(ctx, g.Caller, b); err != nil {
		return nil, handoff.AsError(err)
	}
	list := []handoff.RecordSticky{}
	for _, s := range b.listStickies() {
		if !g.AllowsServer(s.Target.Server) {
			continue
		}
		why := handoff.WhyNew
		if s.Named {
			why = handoff.WhyNamed
		}
		list = append(list, handoff.RecordSticky{Server: keyOf(s.Target).String(), ThreadID: s.Target.Thread, Title: s.Title, Why: why, Since: s.Since})
	}
	return list, nil
}

// PutSticky makes a session the one in use on "bigpc" or "bigpc/api". The session must exist; title is its name.
func (r *Router) PutSticky(ctx context.Context, g handoff.Grant, server, thread, title string) error {
	b := r.caller(g.Caller)
	if err := r.loadStickies(ctx, g.Caller, b); err != nil {
		return handoff.AsError(err)
	}
	target, err := r.fleet.Resolve(ctx, g, handoff.Target{Server: server, Thread: thread})
	if err != nil {
		return err
	}
	if target.Thread == "" || target.Thread == handoff.NewThread {
		return handoff.Fault(handoff.CodeMalformed, "which session is meant", "")
	}
	now := time.Now()
	s := handoff.Sticky{Target: target, Title: title, Named: true, Since: now.UTC()}
	if b.putSticky(s, now) {
		r.stick(g.Caller, b, stickyWrite{sticky: s})
	}
	return nil
}

// ClearSticky forgets the sticky session of "bigpc" or "bigpc/api"; the next request there starts anew.
func (r *Router) ClearSticky(ctx context.Context, g handoff.Grant, server string) error {
	b := r.caller(g.Caller)
	if err := r.loadStickies(ctx, g.Caller, b); err != nil {
		return handoff.AsError(err)
	}
	name, project, _ := strings.Cut(server, "/")
	key := stickyKey{name, project}
	if _, ok := b.sticky(key); !ok || !g.AllowsServer(name) {
		return handoff.Fault(handoff.CodeNotFound, "sticky session there", "")
	}
	b.dropSticky(key)
	r.stick(g.Caller, b, stickyWrite{sticky: handoff.Sticky{Target: handoff.Target{Server: name, Project: project}}, clear: true})
	return nil
}

// Shown reports whether a page shows the caller what happens.
func (r *Router) Shown(g handoff.Grant) bool {
	pages, _ := r.caller(g.Caller).feed.Load()
	return pages > 0
}

// Feed returns the feed that a caller's pages follow.
func (r *Router) Feed(g handoff.Grant) *handoff.Feed { return &r.caller(g.Caller).feed }

// ServersChanged tells every page that the health of the fleet changed.
func (r *Router) ServersChanged() {
	for _, b := range r.known() {
		b.feed.Publish(handoff.PageEvent{Kind: handoff.EventServers})
	}
}

package router

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/work"
)

// Counts has the counters of all routers of a process, over its whole life, and the gauges of what they hold now. It is
// safe for concurrent use.
type Counts struct {
	audits atomic.Uint64 // decisions that could not be written to the audit
	slow   atomic.Uint64 // page listeners that were dropped, of routers that have ended

	asks     *handoff.Tally[handoff.QuestionKind] // Set once: questions, by kind
	answered *handoff.Tally[string]               // Set once: questions that were decided, by how
	store    *storeTimes                          // Set once
	known    func(server string) bool             // Set once: reports whether the fleet has a server of this name

	mu       sync.Mutex
	byServer map[string]*serverCounts // Guarded by mu
	routers  map[*Router]bool         // Guarded by mu: those that have not ended
}

// serverCounts counts the runs of one server.
type serverCounts struct {
	outcomes *handoff.Tally[handoff.Outcome]
	starts   *handoff.Times // from the request to its turn
	results  *handoff.Times // from the request to its outcome
}

// noServer is the label of runs that reached no server of the fleet. The words of a caller are never a label.
const noServer = "none"

// label returns the label of a server in metrics.
func (c *Counts) label(server string) string {
	if !c.known(server) {
		return noServer
	}
	return server
}

// of returns the counts of a server.
func (c *Counts) of(server string) *serverCounts {
	server = c.label(server)
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.byServer[server]
	if n == nil {
		n = &serverCounts{
			outcomes: handoff.NewTally(
				handoff.OutcomeResult, handoff.OutcomeFailed, handoff.OutcomeInterrupted, handoff.OutcomeCancelled,
				handoff.OutcomeUnknown),
			starts: handoff.NewTimes(startBounds...), results: handoff.NewTimes(resultBounds...),
		}
		c.byServer[server] = n
	}
	return n
}

// runs yields the metrics of runs, by server.
func (c *Counts) runs() iter.Seq[handoff.Metric] {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []iter.Seq[handoff.Metric]
	for _, server := range slices.Sorted(maps.Keys(c.byServer)) {
		n := c.byServer[server]
		all = append(all,
			n.outcomes.Metrics("switchboard_runs_total", "Runs that ended, by server and outcome.",
				"outcome", "server", server),
			n.starts.Metrics("switchboard_run_start_seconds", "Time from a request to the start of its turn, by server.",
				"server", server),
			n.results.Metrics("switchboard_run_seconds", "Time from a request to its outcome, by server.",
				"server", server))
	}
	return handoff.JoinMetrics(all...)
}

// Upper bounds of the distributions. Work takes seconds to hours; a start is a matter of milliseconds, unless it waits.
var (
	startBounds = []time.Duration{
		5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
		250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 10 * time.Second, time.Minute,
		10 * time.Minute,
	}
	resultBounds = []time.Duration{
		500 * time.Millisecond, 1500 * time.Millisecond, 5 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 4 * time.Hour,
	}
	storeBounds = []time.Duration{
		100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond,
		5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond,
		time.Second,
	}
)

// NewCounts returns zero counts. If the fleet is no [handoff.Registrar], all runs have the label [noServer].
func NewCounts(fleet handoff.Fleet) *Counts {
	registrar, ok := fleet.(handoff.Registrar)
	ops := []string{opState, opCommit}
	store := &storeTimes{took: map[string]*handoff.Times{}, failed: handoff.NewTally(ops...)}
	for _, op := range ops {
		store.took[op] = handoff.NewTimes(storeBounds...)
	}
	return &Counts{
		asks: handoff.NewTally(
			handoff.QuestionCommand, handoff.QuestionFileChange, handoff.QuestionPermissions, handoff.QuestionInput,
			handoff.QuestionElicitation, handoff.QuestionCopy, handoff.QuestionOther,
		),
		answered: handoff.NewTally(handoff.ByVoice, handoff.ByTyping, handoff.ByPage, handoff.ByTerminal,
			handoff.ByAPI, work.ByNobody),
		store:    store,
		known:    func(server string) bool { return ok && registrar.Registered(server).Known },
		byServer: map[string]*serverCounts{},
		routers:  map[*Router]bool{},
	}
}

// Moved implements [work.Counter]: it counts the start or the end of a handoff.
func (c *Counts) Moved(was handoff.Status, rec *handoff.Record, span handoff.Span, now time.Time) {
	switch {
	case rec.State == handoff.StatusStarted && (was == handoff.StatusAccepted || was == handoff.StatusDispatching):
		c.of(rec.Server).starts.ObserveIn(span.Parent(), now.Sub(rec.CreatedAt))
	case rec.State == handoff.StatusCompleted:
		n := c.of(rec.Server)
		n.outcomes.Add(rec.Outcome)
		n.results.ObserveIn(span.Parent(), now.Sub(rec.CreatedAt))
	}
}

// Asked implements [work.Counter].
func (c *Counts) Asked(kind handoff.QuestionKind) { c.asks.Add(kind) }

// Answered implements [work.Counter].
func (c *Counts) Answered(by string) { c.answered.Add(by) }

// add adds a router to the gauges.
func (c *Counts) add(r *Router) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.routers[r] = true
}

// remove removes a router that has ended from the gauges, and keeps its counters.
func (c *Counts) remove(r *Router) {
	c.mu.Lock()
	delete(c.routers, r)
	c.mu.Unlock()
	_, slow := r.pages.Load()
	c.slow.Add(slow)
}

// Metrics yields all metrics of the routers.
func (c *Counts) Metrics() iter.Seq[handoff.Metric] {
	audits := handoff.NewMetric("switchboard_audit_failures_total",
		"Decisions that could not be written to the audit.", c.audits.Load())
	return handoff.JoinMetrics(
		slices.Values(append(c.held(), audits)),
		c.runs(),
		c.asks.Metrics("switchboard_questions_total", "Questions of agents, by kind.", "kind"),
		c.answered.Metrics("switchboard_questions_answered_total",
			"Questions that were decided, by how; nobody: they were given up.", "by"),
		c.store.metrics(),
	)
}

// held returns the gauges of what the routers hold now.
func (c *Counts) held() []handoff.Metric {
	c.mu.Lock()
	routers := slices.Collect(maps.Keys(c.routers))
	c.mu.Unlock()
	states := map[handoff.Status]int{
		handoff.StatusAccepted: 0, handoff.StatusDispatching: 0, handoff.StatusStarted: 0, handoff.StatusCompleted: 0,
	}
	questions, listeners, slow := 0, 0, c.slow.Load()
	for _, r := range routers {
		sums := r.sums()
		questions += sums.Questions
		for state, n := range sums.States {
			states[state] += n
		}
		n, dropped := r.pages.Load()
		listeners += n
		slow += dropped
	}
	list := []handoff.Metric{
		handoff.NewMetric("switchboard_callers", "Callers who have a home here.", len(routers)),
		handoff.NewMetric("switchboard_questions_open", "Questions of agents that wait for an answer.", questions),
		handoff.NewMetric("switchboard_feed_listeners", "Listeners of callers' feeds.", listeners),
		handoff.NewMetric("switchboard_feed_listeners_dropped_total", "Listeners that were too slow for their feed.", slow),
	}
	for _, state := range slices.Sorted(maps.Keys(states)) {
		list = append(list, handoff.NewMetric("switchboard_runs",
			"Runs that are open, by state; completed: the outcome was not heard yet.", states[state], "state", string(state)))
	}
	return list
}

// storeTimes counts the round trips to the store, by operation.
type storeTimes struct {
	took   map[string]*handoff.Times // Set once
	failed *handoff.Tally[string]    // Set once
}

// The operations of a store.
const (
	opState  = "state"
	opCommit = "commit"
)

// done counts a round trip that began at a time. A batch that the store refuses is no failure.
func (s *storeTimes) done(op string, began time.Time, err error) {
	s.took[op].Observe(time.Since(began))
	if err == nil {
		return
	}
	switch handoff.AsError(err).Code {
	case handoff.CodeUnreachable, handoff.CodeStoreDown, handoff.CodeShutdown, handoff.CodeInternal:
		s.failed.Add(op)
	}
}

func (s *storeTimes) metrics() iter.Seq[handoff.Metric] {
	var all []iter.Seq[handoff.Metric]
	for _, op := range slices.Sorted(maps.Keys(s.took)) {
		all = append(all, s.took[op].Metrics("switchboard_store_seconds",
			"Time of round trips to the store, by operation.", "op", op))
	}
	all = append(all, s.failed.Metrics("switchboard_store_failures_total",
		"Round trips to the store that failed, by operation.", "op"))
	return handoff.JoinMetrics(all...)
}

// timedStore counts the round trips of a store.
type timedStore struct {
	Store
	times *storeTimes
}

// Timed returns a store whose round trips are counted.
func (c *Counts) Timed(s Store) Store { return timedStore{s, c.store} }

func (s timedStore) State(ctx context.Context, c handoff.Caller) (state ledger.State, err error) {
	defer func(began time.Time) { s.times.done(opState, began, err) }(time.Now())
	return s.Store.State(ctx, c)
}

func (s timedStore) Commit(
	ctx context.Context, c handoff.Caller, b ledger.Batch,
) (done ledger.Committed, err error) {
	defer func(began time.Time) { s.times.done(opCommit, began, err) }(time.Now())
	return s.Store.Commit(ctx, c, b)
}

package router

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
	starts   *prometheus.HistogramVec             // Set once: from the request to its turn, by server
	results  *prometheus.HistogramVec             // Set once: from the request to its outcome, by server
	store    *storeTimes                          // Set once
	known    func(server string) bool             // Set once: reports whether the fleet has a server of this name

	mu       sync.Mutex
	outcomes map[string]*handoff.Tally[handoff.Outcome] // Guarded by mu: by server
	routers  map[*Router]bool                           // Guarded by mu: those that have not ended
}

// noServer is the label of handoffs that reached no server of the fleet. The words of a caller are never a label.
const noServer = "none"

// label returns the label of a server in metrics.
func (c *Counts) label(server string) string {
	if !c.known(server) {
		return noServer
	}
	return server
}

// of returns the outcomes of a server, by its label.
func (c *Counts) of(label string) *handoff.Tally[handoff.Outcome] {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.outcomes[label]
	if n == nil {
		n = handoff.NewTally(handoff.OutcomeResult, handoff.OutcomeFailed, handoff.OutcomeInterrupted,
			handoff.OutcomeCancelled, handoff.OutcomeUnknown)
		c.outcomes[label] = n
	}
	return n
}

// runs yields the metrics of handoffs, by server.
func (c *Counts) runs() iter.Seq[handoff.Metric] {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []iter.Seq[handoff.Metric]
	for _, server := range slices.Sorted(maps.Keys(c.outcomes)) {
		all = append(all, c.outcomes[server].Metrics("switchboard_runs_total", "Runs that ended, by server and outcome.",
			"outcome", "server", server))
	}
	return handoff.JoinMetrics(all...)
}

// Upper bounds of the distributions, in seconds. Work takes seconds to hours; a start is a matter of milliseconds,
// unless it waits.
var (
	startBounds  = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 600}
	resultBounds = []float64{0.5, 1.5, 5, 15, 30, 60, 120, 300, 900, 1800, 3600, 14400}
	storeBounds  = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1}
)

func newTimes(name, help, label string, bounds []float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}, []string{label})
}

// observe adds a time, of which a negative one, from a clock that was set back, counts as 0. parent is the W3C
// traceparent of the span in which it was measured; if its trace is recorded, the time is an exemplar.
func observe(h prometheus.Observer, parent string, d time.Duration) {
	seconds := max(d, 0).Seconds()
	if parts := strings.Split(parent, "-"); len(parts) == 4 && parts[3] == "01" { // version, trace, span, flags
		h.(prometheus.ExemplarObserver).ObserveWithExemplar(seconds, prometheus.Labels{"trace_id": parts[1]})
		return
	}
	h.Observe(seconds)
}

// NewCounts returns zero counts. If the fleet is no [handoff.Registrar], all handoffs have the label [noServer].
func NewCounts(fleet handoff.Fleet) *Counts {
	registrar, ok := fleet.(handoff.Registrar)
	return &Counts{
		starts: newTimes("switchboard_run_start_seconds", "Time from a request to the start of its turn, by server.",
			"server", startBounds),
		results: newTimes("switchboard_run_seconds", "Time from a request to its outcome, by server.",
			"server", resultBounds),
		store: &storeTimes{
			took:   newTimes("switchboard_store_seconds", "Time of round trips to the store, by operation.", "op", storeBounds),
			failed: handoff.NewTally(opState, opCommit),
		},
		asks: handoff.NewTally(
			handoff.QuestionCommand, handoff.QuestionFileChange, handoff.QuestionPermissions, handoff.QuestionInput,
			handoff.QuestionElicitation, handoff.QuestionCopy, handoff.QuestionOther,
		),
		answered: handoff.NewTally(handoff.ByVoice, handoff.ByTyping, handoff.ByPage, handoff.ByTerminal,
			handoff.ByAPI, work.ByNobody),
		known:    func(server string) bool { return ok && registrar.Registered(server).Known },
		outcomes: map[string]*handoff.Tally[handoff.Outcome]{},
		routers:  map[*Router]bool{},
	}
}

// Moved implements [work.Counter]: it counts the start or the end of a handoff.
func (c *Counts) Moved(was handoff.Status, rec *handoff.Record, span handoff.Span, now time.Time) {
	server, took := c.label(rec.Server), now.Sub(rec.CreatedAt)
	switch {
	case rec.State == handoff.StatusStarted && (was == handoff.StatusAccepted || was == handoff.StatusDispatching):
		observe(c.starts.WithLabelValues(server), span.Parent(), took)
	case rec.State == handoff.StatusCompleted:
		c.of(server).Add(rec.Outcome)
		observe(c.results.WithLabelValues(server), span.Parent(), took)
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

// Collectors returns the distributions of times.
func (c *Counts) Collectors() []prometheus.Collector {
	return []prometheus.Collector{c.starts, c.results, c.store.took}
}

// Metrics yields the other metrics of the routers.
func (c *Counts) Metrics() iter.Seq[handoff.Metric] {
	audits := handoff.NewMetric("switchboard_audit_failures_total",
		"Decisions that could not be written to the audit.", c.audits.Load())
	return handoff.JoinMetrics(
		slices.Values(append(c.held(), audits)),
		c.runs(),
		c.asks.Metrics("switchboard_questions_total", "Questions of agents, by kind.", "kind"),
		c.answered.Metrics("switchboard_questions_answered_total",
			"Questions that were decided, by how; nobody: they were given up.", "by"),
		c.store.failed.Metrics("switchboard_store_failures_total",
			"Round trips to the store that failed, by operation.", "op"),
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
	took   *prometheus.HistogramVec // Set once
	failed *handoff.Tally[string]   // Set once
}

// The operations of a store.
const (
	opState  = "state"
	opCommit = "commit"
)

// done counts a round trip that began at a time. A batch that the store refuses is no failure.
func (s *storeTimes) done(op string, began time.Time, err error) {
	observe(s.took.WithLabelValues(op), "", time.Since(began))
	if err == nil {
		return
	}
	switch handoff.AsError(err).Code {
	case handoff.CodeUnreachable, handoff.CodeStoreDown, handoff.CodeShutdown, handoff.CodeInternal:
		s.failed.Add(op)
	}
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

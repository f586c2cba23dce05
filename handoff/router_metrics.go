package handoff

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync/atomic"
	"time"
)

// routerCounts is what a router counts over its whole life. It is safe for concurrent use.
type routerCounts struct {
	remarks atomic.Uint64 // speakable things that were never said
	reports atomic.Uint64 // reports to calls that found the inbox full
	audits  atomic.Uint64 // decisions that could not be written down

	outcomes *Tally[Outcome]      // Set once, like the others below
	asks     *Tally[QuestionKind] // questions, by kind
	answered *Tally[string]       // questions that somebody decided, by how
	refused  *Tally[Code]         // requests of the voice model that were not accepted
	said     *Tally[string]       // what calls were given to say, by kind
	unsaid   *Tally[string]       // what became of some of it
	starts   *Times               // from the request to its turn
	results  *Times               // from the request to its outcome
	store    *storeTimes
}

// Upper bounds of the distributions. Work takes seconds to hours; a start is a matter of milliseconds, unless it waits.
var (
	startBounds = []time.Duration{
		5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
		250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 10 * time.Second, time.Minute, 10 * time.Minute,
	}
	resultBounds = []time.Duration{
		500 * time.Millisecond, 1500 * time.Millisecond, 5 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 4 * time.Hour,
	}
	storeBounds = []time.Duration{
		100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond,
		5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, time.Second,
	}
)

func newRouterCounts() *routerCounts {
	return &routerCounts{
		outcomes: NewTally(OutcomeResult, OutcomeFailed, OutcomeInterrupted, OutcomeCancelled, OutcomeUnknown),
		asks:     NewTally(QuestionCommand, QuestionFileChange, QuestionPermissions, QuestionInput, QuestionElicitation, QuestionCopy, QuestionOther),
		answered: NewTally(ByVoice, ByTyping, ByPage, ByAPI, ByNobody),
		refused:  NewTally(slices.Collect(maps.Keys(vocabulary))...),
		said:     NewTally("note", "remark", "heartbeat", "filler", "question", "outcome"),
		unsaid:   NewTally("stale", "interrupted", "unconfirmed", "full"),
		starts:   NewTimes(startBounds...),
		results:  NewTimes(resultBounds...),
		store:    newStoreTimes(),
	}
}

// moved counts what a change of a record means. The caller holds the record.
func (c *routerCounts) moved(was Status, rec *Record) {
	if c == nil || was == rec.State {
		return
	}
	switch {
	case rec.State == StatusStarted && (was == StatusAccepted || was == StatusDispatching):
		c.starts.Observe(time.Since(rec.CreatedAt))
	case rec.State == StatusCompleted:
		c.outcomes.Add(rec.Outcome)
		c.results.Observe(time.Since(rec.CreatedAt))
	}
}

func (c *routerCounts) asked(kind QuestionKind) {
	if c != nil {
		c.asks.Add(kind)
	}
}

// paced counts what one step of a call's schedule did.
func (c *routerCounts) paced(was, now scheduleCounts) {
	if was == now {
		return
	}
	for _, x := range []struct {
		tally *Tally[string]
		word  string
		n     int
	}{
		{c.said, "note", now.notes - was.notes},
		{c.said, "remark", now.remarks - was.remarks},
		{c.said, "heartbeat", now.beats - was.beats},
		{c.said, "filler", now.fillers - was.fillers},
		{c.said, "question", now.questions - was.questions},
		{c.said, "outcome", now.finals - was.finals},
		{c.unsaid, "stale", now.stale - was.stale},
		{c.unsaid, "interrupted", now.cut - was.cut},
		{c.unsaid, "unconfirmed", now.lost - was.lost},
		{c.unsaid, "full", now.overflow - was.overflow},
	} {
		for range x.n {
			x.tally.Add(x.word)
		}
	}
}

// Metrics yields what the router counts.
func (r *Router) Metrics() iter.Seq[Metric] {
	c := r.counts
	return func(yield func(Metric) bool) {
		each(yield,
			slices.Values(r.held()),
			c.outcomes.Metrics("switchboard_runs_total", "Runs that ended, by outcome.", "outcome"),
			slices.Values([]Metric{
				c.starts.Metric("switchboard_run_start_seconds", "Time from a request to the start of its turn."),
				c.results.Metric("switchboard_run_seconds", "Time from a request to its outcome."),
				NewMetric("switchboard_router_calls_total", "Calls that the router served.", r.calls.Load()),
				NewMetric("switchboard_call_reports_dropped_total", "Reports of runs on the way that found a call's inbox full.", c.reports.Load()),
				NewMetric("switchboard_remarks_dropped_total", "Remarks of agents that were never said.", c.remarks.Load()),
				NewMetric("switchboard_audit_failures_total", "Decisions that could not be written to the audit.", c.audits.Load()),
			}),
			c.asks.Metrics("switchboard_questions_total", "Questions of agents, by kind.", "kind"),
			c.answered.Metrics("switchboard_questions_answered_total", "Questions that were decided, by how; nobody: they were given up.", "by"),
			c.refused.Metrics("switchboard_requests_refused_total", "Requests of the voice model that were not accepted, by code.", "code"),
			c.said.Metrics("switchboard_utterances_total", "What calls were given to say, by kind.", "kind"),
			c.unsaid.Metrics("switchboard_utterances_lost_total", "What of that went wrong: outdated, interrupted, never confirmed, or beyond a bound.", "reason"),
			c.store.metrics(),
		)
	}
}

// each yields from one sequence after the other until yield has enough.
func each(yield func(Metric) bool, all ...iter.Seq[Metric]) {
	for _, seq := range all {
		for m := range seq {
			if !yield(m) {
				return
			}
		}
	}
}

// held counts what the router holds now.
func (r *Router) held() []Metric {
	r.mu.Lock()
	books := slices.Collect(maps.Values(r.books))
	r.mu.Unlock()
	states := map[Status]int{StatusAccepted: 0, StatusDispatching: 0, StatusStarted: 0, StatusCompleted: 0}
	questions, listeners, slow := 0, 0, uint64(0)
	for _, b := range books {
		questions += b.countOpen(states)
		n, dropped := b.feed.load()
		listeners += n
		slow += dropped
	}
	list := []Metric{
		NewMetric("switchboard_callers", "Callers that the router knows of.", len(books)),
		NewMetric("switchboard_questions_open", "Questions of agents that wait for an answer.", questions),
		NewMetric("switchboard_feed_listeners", "Listeners of callers' feeds.", listeners),
		NewMetric("switchboard_feed_listeners_dropped_total", "Listeners that were too slow for their feed.", slow),
		NewMetric("switchboard_threads_busy", "Threads that a run holds or waits for.", r.lanes.count()),
	}
	for _, state := range slices.Sorted(maps.Keys(states)) {
		list = append(list, NewMetric("switchboard_runs", "Runs that are open, by state; completed: the outcome was not heard yet.", states[state], "state", string(state)))
	}
	return list
}

// countOpen adds the records that are open to those of their state, and returns how many questions are.
func (b *book) countOpen(states map[Status]int) (questions int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, rec := range b.records {
		if rec.State != StatusDelivered {
			states[rec.State]++
		}
	}
	return len(b.questions)
}

func (l *lanes) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

// storeTimes counts the round trips to the store, by operation. Set once.
type storeTimes struct {
	took   map[string]*Times
	failed *Tally[string]
}

// The operations of a store.
const (
	opAdvance = "ledger_advance"
	opOpen    = "ledger_open"
	opOpenAll = "ledger_open_all"
	opList    = "sticky_list"
	opSet     = "sticky_set"
	opClear   = "sticky_clear"
)

func newStoreTimes() *storeTimes {
	ops := []string{opAdvance, opOpen, opOpenAll, opList, opSet, opClear}
	s := &storeTimes{took: map[string]*Times{}, failed: NewTally(ops...)}
	for _, op := range ops {
		s.took[op] = NewTimes(storeBounds...)
	}
	return s
}

// done counts a round trip that began then. A step that the ledger refuses is an answer, not a failure.
func (s *storeTimes) done(op string, began time.Time, err error) {
	s.took[op].Observe(time.Since(began))
	if err == nil {
		return
	}
	switch AsError(err).Code {
	case CodeUnreachable, CodeStoreDown, CodeShutdown, CodeInternal:
		s.failed.Add(op)
	}
}

func (s *storeTimes) metrics() iter.Seq[Metric] {
	return func(yield func(Metric) bool) {
		var took []Metric
		for _, op := range slices.Sorted(maps.Keys(s.took)) {
			took = append(took, s.took[op].Metric("switchboard_store_seconds", "Time of round trips to the store, by operation.", "op", op))
		}
		each(yield, slices.Values(took), s.failed.Metrics("switchboard_store_failures_total", "Round trips to the store that failed, by operation.", "op"))
	}
}

// timedLedger is a ledger whose round trips are counted.
type timedLedger struct {
	Ledger
	times *storeTimes
}

func (l timedLedger) Advance(ctx context.Context, s LedgerStep) (e LedgerEntry, err error) {
	defer func(began time.Time) { l.times.done(opAdvance, began, err) }(time.Now())
	return l.Ledger.Advance(ctx, s)
}

func (l timedLedger) Open(ctx context.Context, c Caller) (list []LedgerEntry, err error) {
	defer func(began time.Time) { l.times.done(opOpen, began, err) }(time.Now())
	return l.Ledger.Open(ctx, c)
}

func (l timedLedger) OpenAll(ctx context.Context) (list []LedgerEntry, err error) {
	defer func(began time.Time) { l.times.done(opOpenAll, began, err) }(time.Now())
	return l.Ledger.OpenAll(ctx)
}

// timedStickies are stickies whose round trips are counted.
type timedStickies struct {
	Stickies
	times *storeTimes
}

func (s timedStickies) List(ctx context.Context, c Caller) (list []Sticky, err error) {
	defer func(began time.Time) { s.times.done(opList, began, err) }(time.Now())
	return s.Stickies.List(ctx, c)
}

func (s timedStickies) Set(ctx context.Context, c Caller, one Sticky) (err error) {
	defer func(began time.Time) { s.times.done(opSet, began, err) }(time.Now())
	return s.Stickies.Set(ctx, c, one)
}

func (s timedStickies) Clear(ctx context.Context, c Caller, t Target) (err error) {
	defer func(began time.Time) { s.times.done(opClear, began, err) }(time.Now())
	return s.Stickies.Clear(ctx, c, t)
}

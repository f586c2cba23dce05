package call

import (
	"iter"
	"maps"
	"slices"
	"sync/atomic"

	"switchboard/handoff"
	"switchboard/handoff/speech"
)

// counts is what all calls count together. It is safe for concurrent use.
type counts struct {
	calls   atomic.Uint64 // served
	reports atomic.Uint64 // reports that found the inbox of a call full

	refused *handoff.Tally[handoff.Code] // Set once, like the others below: function calls that were not accepted
	said    *handoff.Tally[string]       // what calls were given to say, by kind
	unsaid  *handoff.Tally[string]       // what became of some of it
}

func newCounts() *counts {
	return &counts{
		refused: handoff.NewTally(slices.Collect(maps.Keys(handoff.Vocabulary))...),
		said:    handoff.NewTally("note", "remark", "heartbeat", "filler", "question", "outcome"),
		unsaid:  handoff.NewTally("stale", "interrupted", "unconfirmed", "full"),
	}
}

// paced counts what one step of a call's schedule did.
func (c *counts) paced(was, now speech.ScheduleCounts) {
	if was == now {
		return
	}
	for _, x := range []struct {
		tally *handoff.Tally[string]
		word  string
		n     int
	}{
		{c.said, "note", now.Notes - was.Notes},
		{c.said, "remark", now.Remarks - was.Remarks},
		{c.said, "heartbeat", now.Heartbeats - was.Heartbeats},
		{c.said, "filler", now.Fillers - was.Fillers},
		{c.said, "question", now.Questions - was.Questions},
		{c.said, "outcome", now.Finals - was.Finals},
		{c.unsaid, "stale", now.Stale - was.Stale},
		{c.unsaid, "interrupted", now.Cut - was.Cut},
		{c.unsaid, "unconfirmed", now.Lost - was.Lost},
		{c.unsaid, "full", now.Overflow - was.Overflow},
	} {
		for range x.n {
			x.tally.Add(x.word)
		}
	}
}

// Metrics yields what the calls count.
func (c *Calls) Metrics() iter.Seq[handoff.Metric] {
	n := c.counts
	return handoff.JoinMetrics(
		slices.Values([]handoff.Metric{
			handoff.NewMetric("switchboard_router_calls_total", "Calls that the router served.", n.calls.Load()),
			handoff.NewMetric("switchboard_call_reports_dropped_total",
				"Reports of runs on the way that found a call's inbox full.", n.reports.Load()),
		}),
		n.refused.Metrics("switchboard_requests_refused_total",
			"Requests of the voice model that were not accepted, by code.", "code"),
		n.said.Metrics("switchboard_utterances_total", "What calls were given to say, by kind.", "kind"),
		n.unsaid.Metrics("switchboard_utterances_lost_total",
			"What of that went wrong: outdated, interrupted, never confirmed, or beyond a bound.", "reason"),
	)
}

package call

import (
	"iter"
	"maps"
	"slices"
	"sync/atomic"

	"switchboard/handoff"
	"switchboard/handoff/speech"
)

// counts has the counters of all calls. It is safe for concurrent use.
type counts struct {
	calls   atomic.Uint64 // calls that were served
	reports atomic.Uint64 // progress that an inbox dropped

	refused *handoff.Tally[handoff.Code] // Set once: function calls that were refused, by code
	said    *handoff.Tally[string]       // Set once: utterances, by kind
	unsaid  *handoff.Tally[string]       // Set once: utterances that were not heard as planned, by reason
}

func newCounts() *counts {
	return &counts{
		refused: handoff.NewTally(slices.Collect(maps.Keys(handoff.Vocabulary))...),
		said:    handoff.NewTally(speech.Given...),
		unsaid:  handoff.NewTally(speech.Unsaid...),
	}
}

// paced counts what the schedule of a call counts.
func (c *counts) paced(word string, n int) {
	tally := c.said
	if slices.Contains(speech.Unsaid, word) {
		tally = c.unsaid
	}
	for range n {
		tally.Add(word)
	}
}

// Metrics yields the metrics of all calls.
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

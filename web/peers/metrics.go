package peers

import (
	"iter"
	"slices"
	"sync/atomic"

	"switchboard/handoff"
)

// A forwardOutcome is the outcome of a request for another instance.
type forwardOutcome string

const (
	forwardedServed forwardOutcome = "served"
	forwardedHere   forwardOutcome = "here"   // it was served here in the end
	forwardedSilent forwardOutcome = "silent" // no instance took it in time
	forwardedLost   forwardOutcome = "lost"   // its instance was lost before it answered
	forwardedCut    forwardOutcome = "cut"    // its answer broke off
)

// A retryReason is why a request is sent again.
type retryReason string

const (
	againNotMine      retryReason = "not_mine"
	againNoConnection retryReason = "no_connection"
	againFingerprint  retryReason = "other_certificate"
)

// A takenOutcome is the outcome of a request from another instance.
type takenOutcome string

const (
	takenServed    takenOutcome = "served"
	takenLine      takenOutcome = "line" // it became a connection to an agent
	takenNotMine   takenOutcome = "not_mine"
	takenStranger  takenOutcome = "stranger"  // the sender is no known instance
	takenMalformed takenOutcome = "malformed" // without a valid hop
)

// A lineOutcome is the outcome of dialling an agent whose machine keeps no line here.
type lineOutcome string

const (
	lineOpened lineOutcome = "opened"
	lineNone   lineOutcome = "none" // no other instance opened it
)

// counts has counters for metrics.
type counts struct {
	forwarded *handoff.Tally[forwardOutcome]
	again     *handoff.Tally[retryReason]
	taken     *handoff.Tally[takenOutcome]
	lines     *handoff.Tally[lineOutcome]
	dials     atomic.Uint64
	stripped  atomic.Uint64
}

// Metrics yields the metrics of a forwarder.
func (f *Forwarder) Metrics() iter.Seq[handoff.Metric] {
	f.mu.Lock()
	open := len(f.flights)
	f.mu.Unlock()
	return handoff.JoinMetrics(
		f.counts.forwarded.Metrics("switchboard_peer_forwarded_total", "Requests whose caller was at another instance, by what became of them.", "outcome"),
		f.counts.again.Metrics("switchboard_peer_again_total", "Times that a request was sent again, by why the instance before did not take it.", "reason"),
		f.counts.taken.Metrics("switchboard_peer_taken_total", "Requests that came from other instances, by what became of them.", "outcome"),
		f.counts.lines.Metrics("switchboard_peer_lines_total", "Connections to agents whose machines keep no line here, by what became of them.", "outcome"),
		slices.Values([]handoff.Metric{
			handoff.NewMetric("switchboard_peer_open", "Requests, streams and sockets that other instances serve now, and connections to agents that they use here.", open),
			handoff.NewMetric("switchboard_peer_dials_total", "Connections that were made to other instances.",
				f.counts.dials.Load()),
			handoff.NewMetric("switchboard_peer_hops_stripped_total", "Requests from outside that claimed to have been forwarded.", f.counts.stripped.Load()),
		}),
	)
}

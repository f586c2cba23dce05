package peers

import (
	"iter"
	"slices"
	"sync/atomic"

	"switchboard/handoff"
)

// forwarded is what became of a request that another instance was to serve.
type forwarded string

// What becomes of requests.
const (
	forwardedServed forwarded = "served"
	forwardedHere   forwarded = "here"   // it was served here in the end
	forwardedSilent forwarded = "silent" // no instance took it in time
	forwardedLost   forwarded = "lost"   // its instance was lost before it answered
	forwardedCut    forwarded = "cut"    // its answer broke off
)

// again is why a request is sent again.
type again string

// Why requests are sent again.
const (
	againNotMine      again = "not_mine"
	againNoConnection again = "no_connection"
	againFingerprint  again = "other_certificate"
)

// taken is what became of a request that came from another instance.
type taken string

// What becomes of requests from other instances.
const (
	takenServed    taken = "served"
	takenLine      taken = "line" // it became a connection to an agent
	takenNotMine   taken = "not_mine"
	takenStranger  taken = "stranger"  // from none of the instances
	takenMalformed taken = "malformed" // without its hop
)

// line is what became of a connection to an agent whose machine keeps no line here.
type line string

// What becomes of such connections.
const (
	lineOpened line = "opened"
	lineNone   line = "none" // no other instance opened it
)

// counts are for operators.
type counts struct {
	forwarded *handoff.Tally[forwarded]
	again     *handoff.Tally[again]
	taken     *handoff.Tally[taken]
	lines     *handoff.Tally[line]
	dials     atomic.Uint64
	stripped  atomic.Uint64
}

// Metrics yields what a forwarder counts.
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

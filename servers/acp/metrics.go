package acp

import (
	"sync/atomic"

	"switchboard/handoff"
	"switchboard/servers/jsonrpc"
	"switchboard/servers/turns"
)

// tally are the counters of a connection's sessions.
type tally struct {
	turns.Tally
	unowned atomic.Uint64 // updates outside prompts of ours
	unasked atomic.Uint64 // questions that were refused at once
}

// Counters are the counters of all connections to one agent. They are safe for concurrent use.
type Counters struct {
	*jsonrpc.Counters[*connection] // Set once

	server string                    // Set once: its name in the fleet
	kept   atomic.Pointer[keptCount] // the mux's newest counts; nil: none
}

// newCounters returns the counters of an agent by its name in the fleet.
func newCounters(server string) *Counters {
	type row = jsonrpc.Counter[*connection]
	return &Counters{server: server, Counters: jsonrpc.NewCounters(server, []row{
		{Name: "switchboard_acp_frames_malformed_total", Help: "Lines of an agent that could not be read.",
			Of: func(c *connection) uint64 { return c.peer.Malformed.Load() }},
		{Name: "switchboard_acp_responses_late_total", Help: "Responses of an agent that nobody waited for any more.",
			Of: func(c *connection) uint64 { return c.peer.Late.Load() }},
		{Name: "switchboard_acp_frames_left_out_total",
			Help: "Lines of an agent that were left out: too long, too deep, or more than may be held.",
			Of:   func(c *connection) uint64 { return c.peer.LeftOut.Load() }},
		{Name: "switchboard_acp_frames_full_total", Help: "Frames to an agent that found no room.",
			Of: func(c *connection) uint64 { return c.peer.Full.Load() }},
		{Name: "switchboard_acp_turns_given_up_total",
			Help: "Turns whose updates were given up because nobody read them in time.",
			Of:   func(c *connection) uint64 { return c.tally.GivenUp.Load() }},
		{Name: "switchboard_acp_deltas_dropped_total",
			Help: "Pieces of text that were dropped because nobody read them in time; the finished item has the whole.",
			Of:   func(c *connection) uint64 { return c.tally.Deltas.Load() }},
		{Name: "switchboard_acp_unowned_updates_total", Help: "Pieces of work that an agent began by itself.",
			Of: func(c *connection) uint64 { return c.tally.unowned.Load() }},
		{Name: "switchboard_acp_questions_left_out_total",
			Help: "Questions of an agent that were refused at once, because no work of ours asked them or they were too long.",
			Of:   func(c *connection) uint64 { return c.tally.unasked.Load() }},
		{Name: "switchboard_acp_updates_bytes", Help: "Bytes of updates of an agent that nobody has read yet.",
			Of: func(c *connection) uint64 { return uint64(max(c.tally.Bytes.Load(), 0)) }, Now: true},
	})}
}

// Metrics yields the counts of all connections so far.
func (c *Counters) Metrics(yield func(handoff.Metric) bool) {
	var kept keptCount
	if newest := c.kept.Load(); newest != nil {
		kept = *newest
	}
	handoff.JoinMetrics(c.Counters.Metrics, func(yield func(handoff.Metric) bool) {
		_ = yield(handoff.NewMetric("switchboard_acp_kept_forgotten_total",
			"Prompts that the machine of an agent forgot after their end for want of room, as it told when it was reached last.",
			kept.Forgotten, "server", c.server)) &&
			yield(handoff.NewMetric("switchboard_acp_kept_gaps_total",
				"Prompts of which the machine of an agent could not keep all that was said, as it told when it was reached last.",
				kept.Gaps, "server", c.server))
	})(yield)
}

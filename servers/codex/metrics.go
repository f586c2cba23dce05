package codex

import "switchboard/servers/jsonrpc"

// Counters are the counters of all connections to one server.
type Counters = jsonrpc.Counters[*connection]

// newCounters returns the counters of a server by its name in the fleet.
func newCounters(server string) *Counters {
	type row = jsonrpc.Counter[*connection]
	return jsonrpc.NewCounters(server, []row{
		{Name: "switchboard_codex_frames_malformed_total", Help: "Frames of a server that could not be read.",
			Of: func(c *connection) uint64 { return c.peer.Malformed.Load() }},
		{Name: "switchboard_codex_responses_late_total", Help: "Responses of a server that nobody waited for any more.",
			Of: func(c *connection) uint64 { return c.peer.Late.Load() }},
		{Name: "switchboard_codex_frames_left_out_total",
			Help: "Frames of a server that were left out: too long, too deep, or more than may be held.",
			Of:   func(c *connection) uint64 { return c.peer.LeftOut.Load() }},
		{Name: "switchboard_codex_frames_full_total", Help: "Frames to a server that found no room.",
			Of: func(c *connection) uint64 { return c.peer.Full.Load() }},
		{Name: "switchboard_codex_turns_forgotten_total",
			Help: "Turns that were forgotten to make room for newer ones of their thread.",
			Of:   func(c *connection) uint64 { return c.tally.forgotten.Load() }},
		{Name: "switchboard_codex_turns_given_up_total",
			Help: "Turns whose updates were given up because nobody read them in time.",
			Of:   func(c *connection) uint64 { return c.tally.GivenUp.Load() }},
		{Name: "switchboard_codex_deltas_dropped_total",
			Help: "Pieces of text that were dropped because nobody read them in time; the finished item has the whole.",
			Of:   func(c *connection) uint64 { return c.tally.Deltas.Load() }},
		{Name: "switchboard_codex_questions_left_out_total", Help: "Questions of a server that were too long, or too many.",
			Of: func(c *connection) uint64 { return c.tally.unasked.Load() }},
		{Name: "switchboard_codex_resubscriptions_left_out_total",
			Help: "Subscriptions of subagents that were not changed because too many waited.",
			Of:   func(c *connection) uint64 { return c.tally.resubscriptions.Load() }},
		{Name: "switchboard_codex_updates_bytes", Help: "Bytes of updates of a server that nobody has read yet.",
			Of: func(c *connection) uint64 { return uint64(max(c.tally.Bytes.Load(), 0)) }, Now: true},
	})
}

package codex

import (
	"slices"
	"sync"

	"switchboard/handoff"
)

// Counters count what all connections to one server left out and hold. They are safe for concurrent use.
type Counters struct {
	Server string // Set once: its name in the fleet

	mu    sync.Mutex
	live  []*connection // Guarded by mu
	ended codexCount    // Guarded by mu: of connections that ended
}

// codexCount is what connections counted. It may be compared and added.
type codexCount struct{ malformed, late, leftOut, full, forgotten, givenUp, deltas, unasked, resubscriptions uint64 }

func (n *codexCount) add(c *connection) {
	n.malformed += c.peer.malformed.Load()
	n.late += c.peer.late.Load()
	n.leftOut += c.peer.tooLong.Load()
	n.full += c.peer.Full.Load()
	n.forgotten += c.tally.forgotten.Load()
	n.givenUp += c.tally.GivenUp.Load()
	n.deltas += c.tally.Deltas.Load()
	n.unasked += c.tally.unasked.Load()
	n.resubscriptions += c.tally.resubscriptions.Load()
}

// begin counts a connection in, until the function that it returns is called.
func (c *Counters) begin(conn *connection) (end func()) {
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live = append(c.live, conn)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.live = slices.DeleteFunc(c.live, func(other *connection) bool { return other == conn })
		c.ended.add(conn)
	}
}

// Metrics yields what all connections so far counted.
func (c *Counters) Metrics(yield func(handoff.Metric) bool) {
	c.mu.Lock()
	n, held := c.ended, int64(0)
	for _, conn := range c.live {
		n.add(conn)
		held += conn.tally.Bytes.Load()
	}
	c.mu.Unlock()
	count := func(name, help string, n uint64) handoff.Metric {
		return handoff.NewMetric("switchboard_codex_"+name, help, n, "server", c.Server)
	}
	slices.Values([]handoff.Metric{
		count("frames_malformed_total", "Frames of a server that could not be read.", n.malformed),
		count("responses_late_total", "Responses of a server that nobody waited for any more.", n.late),
		count("frames_left_out_total", "Frames of a server that were left out: too long, too deep, or more than may be held.",
			n.leftOut),
		count("frames_full_total", "Frames to a server that found no room.", n.full),
		count("turns_forgotten_total", "Turns that were forgotten to make room for newer ones of their thread.", n.forgotten),
		count("turns_given_up_total", "Turns whose updates were given up because nobody read them in time.", n.givenUp),
		count("deltas_dropped_total",
			"Pieces of text that were dropped because nobody read them in time; the finished item has the whole.", n.deltas),
		count("questions_left_out_total", "Questions of a server that were too long, or too many.", n.unasked),
		count("resubscriptions_left_out_total", "Subscriptions of subagents that were not changed because too many waited.",
			n.resubscriptions),
		handoff.NewMetric("switchboard_codex_updates_bytes", "Bytes of updates of a server that nobody has read yet.", held,
			"server", c.Server),
	})(yield)
}

package acp

import (
	"slices"
	"sync"
	"sync/atomic"

	"switchboard/handoff"
	"switchboard/servers/turns"
)

// tally counts what the sessions of a connection leave out and hold.
type tally struct {
	turns.Tally
	unowned atomic.Uint64 // pieces of work that no prompt of ours began
	unasked atomic.Uint64 // questions that nobody could be asked
}

// Counters count what all connections to one agent left out and hold. They are safe for concurrent use.
type Counters struct {
	Server string // Set once: its name in the fleet

	mu    sync.Mutex
	live  []*connection // Guarded by mu
	ended acpCount      // Guarded by mu: of connections that ended
	kept  keptCount     // Guarded by mu: what the keeper told last
}

// told takes what a keeper tells.
func (c *Counters) told(n keptCount) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = n
}

// acpCount is what connections counted. It may be compared and added.
type acpCount struct{ malformed, late, leftOut, full, givenUp, deltas, unowned, unasked uint64 }

func (n *acpCount) add(c *connection) {
	n.malformed += c.peer.malformed.Load()
	n.late += c.peer.late.Load()
	n.leftOut += c.peer.tooLong.Load()
	n.full += c.peer.Full.Load()
	n.givenUp += c.tally.GivenUp.Load()
	n.deltas += c.tally.Deltas.Load()
	n.unowned += c.tally.unowned.Load()
	n.unasked += c.tally.unasked.Load()
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
	n, held, kept := c.ended, int64(0), c.kept
	for _, conn := range c.live {
		n.add(conn)
		held += conn.tally.Bytes.Load()
	}
	c.mu.Unlock()
	count := func(name, help string, n uint64) handoff.Metric {
		return handoff.NewMetric("switchboard_acp_"+name, help, n, "server", c.Server)
	}
	slices.Values([]handoff.Metric{
		count("frames_malformed_total", "Lines of an agent that could not be read.", n.malformed),
		count("responses_late_total", "Responses of an agent that nobody waited for any more.", n.late),
		count("frames_left_out_total", "Lines of an agent that were left out because they were too long.", n.leftOut),
		count("frames_full_total", "Frames to an agent that found no room.", n.full),
		count("turns_given_up_total", "Turns whose updates were given up because nobody read them in time.", n.givenUp),
		count("deltas_dropped_total",
			"Pieces of text that were dropped because nobody read them in time; the finished item has the whole.", n.deltas),
		count("unowned_updates_total", "Pieces of work that an agent began by itself.", n.unowned),
		count("questions_left_out_total",
			"Questions of an agent that were refused at once, because no work of ours asked them or they were too long.",
			n.unasked),
		count("kept_forgotten_total",
			"Prompts that the keeper of an agent forgot after their end for want of room, as it told when it was reached last.",
			kept.Forgotten),
		count("kept_gaps_total",
			"Prompts of which the keeper of an agent could not keep all that was said, as it told when it was reached last.",
			kept.Gaps),
		handoff.NewMetric("switchboard_acp_updates_bytes", "Bytes of updates of an agent that nobody has read yet.", held,
			"server", c.Server),
	})(yield)
}

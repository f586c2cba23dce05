package codex

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers/jsonrpc"
)

// An agent may start subagents (multi_agent of Codex). Each works in a thread of its own. All connections that were
// there when it began get the messages of that thread, without a subscription. While a subagent waits for permission,
// the turn that started it waits too: so the subagent's questions are reported as questions of that turn. What it does
// is reported as items of that turn, and an interrupt of the turn interrupts it, too.
//
// A subagent may go on when that turn has ended: nothing else in Codex waits for it then. The end of the turn is held
// until none of its subagents works any more, so that what they ask is asked, and what they say is told. More words
// wait for that, since no turn runs that could take them.
//
// A subagent is named by an item of its parent's thread: collabAgentToolCall with receiverThreadIds, or with
// multi_agent_v2, as nearly every model has it, subAgentActivity with agentThreadId (recorded from 0.171).

const (
	// maxSubagents is how many subagents of a connection are known. One more drops the oldest, whose questions are then
	// left to other clients.
	maxSubagents = 64
	// maxCalled is how many subagents of a turn are subscribed to again when the turn is followed anew.
	maxCalled = 8
)

// A subagent is a thread that the agent of a turn started.
type subagent struct {
	id        string         // Set once: of its thread
	name      string         // Set once: the end of its path; "": not known
	thread    *thread        // Guarded by connection.mu: of the turn that it works for
	turn      handoff.TurnID // Guarded by connection.mu: that turn, or the one with whose goal it goes on
	dismissed bool           // Guarded by connection.mu: that turn has ended, and we have unsubscribed
	runs      handoff.TurnID // Guarded by connection.mu: the turn of its own that runs; "": none is known
	edit      string         // Owned by the reader: the item of its newest edit
	paths     []string       // Owned by the reader: the paths of that edit
}

// subagentOf returns a known subagent, and the thread and turn for which it works.
func (c *connection) subagentOf(id string) (*subagent, *thread, handoff.TurnID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.subagents, func(h *subagent) bool { return h.id == id && !h.dismissed }); i >= 0 {
		h := c.subagents[i]
		return h, h.thread, h.thread.current(h.turn)
	}
	return nil, nil, ""
}

// noteSubagents adds the subagents that an item of a turn names.
func (c *connection) noteSubagents(t *thread, turn handoff.TurnID, w *wireItem) {
	if w == nil || turn == "" {
		return
	}
	turn = t.work(turn)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range w.agents() {
		i := slices.IndexFunc(c.subagents, func(h *subagent) bool { return h.id == id })
		switch {
		case id == t.id: // a subagent that reports to the agent that started it
		case i >= 0: // a known subagent, perhaps for another turn
			h := c.subagents[i]
			if h.dismissed {
				c.resubscribeLocked(resubscription{h.id, true})
			}
			h.thread, h.turn, h.dismissed = t, turn, false
		default:
			c.subagents = append(c.subagents, &subagent{id: id, name: agentName(w.AgentPath), thread: t, turn: turn})
			c.subagents = slices.Delete(c.subagents, 0, max(len(c.subagents)-maxSubagents, 0))
		}
	}
}

// handleSubagent handles a message of a subagent's thread. It runs in the reader.
func (c *connection) handleSubagent(m jsonrpc.Message, n *note) {
	h, t, turn := c.subagentOf(n.ThreadID)
	switch {
	case h == nil: // a thread of somebody else
	case m.ID != nil:
		c.handleQuestion(t, m, func(p *askParams, q *handoff.Question) {
			q.Turn = turn
			if p.ItemID == h.edit {
				q.Changes = h.paths
			}
		})
		if _, _, now := c.subagentOf(n.ThreadID); now != turn { // it went on with its goal meanwhile
			t.moveQuestions(turn, now)
		}
	case m.Method == noteRequestResolved:
		t.handle(m.Method, n)
	case m.Method == noteTurnStarted && n.Turn != nil:
		c.subagentRuns(h, handoff.TurnID(n.Turn.ID))
	case m.Method == noteTurnCompleted && n.Turn != nil:
		c.subagentRuns(h, "")
		for _, w := range n.Turn.Items {
			if w.Type == typeAgentMessage && t.holds(turn) {
				h.report(t, turn, noteItemCompleted, w)
			}
		}
		c.letEnd(t, turn)
	case n.Item != nil:
		if n.Item.Type == typeFileChange {
			h.edit, h.paths = n.Item.ID, n.Item.paths()
		}
		c.noteSubagents(t, turn, n.Item)
		switch n.Item.shown().Kind {
		case handoff.ItemCommand, handoff.ItemFileChange, handoff.ItemToolCall:
			h.report(t, turn, m.Method, *n.Item)
		}
	}
}

// subagentRuns notes which turn of its own a subagent runs; "": none.
func (c *connection) subagentRuns(h *subagent, turn handoff.TurnID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.runs = turn
}

// report reports what a subagent does as an item of the turn for which it works. While that turn runs, its messages are
// for its parent, which says what came of them.
func (h *subagent) report(t *thread, turn handoff.TurnID, method string, w wireItem) {
	w.ID, w.by = h.id+"/"+w.ID, cmp.Or(h.name, "subagent") // ids are unique in a thread
	if w.fit() {
		t.handle(method, &note{ThreadID: t.id, TurnID: string(turn), Item: &w})
	}
}

// running returns the subagents of a turn that run.
func (c *connection) running(t *thread, turn handoff.TurnID) (all []subagent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.subagents {
		if h.thread == t && h.runs != "" && t.current(h.turn) == turn {
			all = append(all, subagent{id: h.id, runs: h.runs})
		}
	}
	return all
}

// letEnd ends a turn whose end was held, if none of its subagents runs any more.
func (c *connection) letEnd(t *thread, turn handoff.TurnID) {
	if t.holds(turn) && len(c.running(t, turn)) == 0 {
		t.release(turn)
		c.dismiss(t, turn, true)
	}
}

// interruptSubagents interrupts the turns of the subagents of a turn that was interrupted. Those that Codex has ended
// itself are refused, which is as good.
func (c *connection) interruptSubagents(ctx context.Context, t *thread, turn handoff.TurnID) {
	for _, h := range c.running(t, turn) {
		if err := c.client.turnInterrupt(ctx, h.id, string(h.runs)); err != nil {
			c.log.Debug("a subagent was not interrupted", zap.String("thread", h.id), zap.Error(err))
		}
	}
}

// maxResubscriptions bounds the resubscriptions that wait.
const maxResubscriptions = 2 * maxSubagents

// A resubscription is a change of the subscription to a subagent's thread. The reader, which must not wait, queues it
// for resubscribe.
type resubscription struct {
	thread string
	listen bool
}

// resubscribeLocked queues a resubscription, or leaves it out if too many wait: the server is too slow then.
func (c *connection) resubscribeLocked(e resubscription) {
	select {
	case c.resubscriptions <- e:
	default:
		c.tally.resubscriptions.Add(1)
		c.log.Debug("subscription of a subagent not changed", zap.String("thread", e.thread))
	}
}

// resubscribe makes the queued resubscriptions until the connection is lost.
func (c *connection) resubscribe() {
	for {
		select {
		case <-c.peer.Done():
			return
		case e := <-c.resubscriptions:
			var err error
			if e.listen {
				_, err = c.client.threadResume(context.Background(), e.thread, 1, nil)
			} else {
				err = c.client.threadUnsubscribe(context.Background(), e.thread)
			}
			if err != nil {
				c.log.Debug("subscription of a subagent not changed", zap.String("thread", e.thread), zap.Error(err))
			}
		}
	}
}

// dismiss unsubscribes from the subagents of a turn that has ended, so that others can open their threads; of a turn of
// ours, only from those that do not run. If a subagent goes on for another turn, noteSubagents subscribes again.
func (c *connection) dismiss(t *thread, turn handoff.TurnID, ours bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dismissLocked(func(h *subagent) bool {
		return h.thread == t && t.current(h.turn) == turn && (h.runs == "" || !ours)
	})
}

func (c *connection) dismissLocked(which func(*subagent) bool) {
	for _, h := range c.subagents {
		if _, attached := c.threads[h.id]; which(h) && !h.dismissed && !attached {
			h.dismissed = true
			c.resubscribeLocked(resubscription{h.id, false})
		}
	}
}

// callSubagents finds out which subagents of a turn work, and subscribes to them, so that the server sends their
// questions again.
func (c *connection) callSubagents(ctx context.Context, t *thread, turn handoff.TurnID, items []wireItem) {
	called := 0
	for i := range items {
		c.noteSubagents(t, turn, &items[i])
	}
	c.mu.Lock()
	known := slices.Clone(c.subagents)
	c.mu.Unlock()
	for _, h := range slices.Backward(known) {
		if _, of, works := c.subagentOf(h.id); of != t || works != turn {
			continue
		}
		if called++; called > maxCalled {
			return
		}
		if err := c.callSubagent(ctx, h); err != nil {
			c.log.Debug("a subagent was not heard", zap.String("thread", h.id), zap.Error(err))
		}
	}
}

// callSubagent subscribes to a subagent, if it works.
func (c *connection) callSubagent(ctx context.Context, h *subagent) error {
	w, err := c.client.threadRead(ctx, h.id)
	if _, refused := errors.AsType[*jsonrpc.Error](err); refused || err == nil && w.Status.Type != "active" {
		c.subagentRuns(h, "")
		return err
	}
	if err != nil {
		return err
	}
	r, err := c.client.threadResume(ctx, h.id, 1, nil)
	if err != nil || r.InitialTurnsPage == nil {
		return err
	}
	for _, w := range r.InitialTurnsPage.Data {
		if w.Status == statusInProgress {
			c.subagentRuns(h, handoff.TurnID(w.ID))
		}
	}
	return nil
}

// holdLocked holds the end of a turn whose subagents still work, and reports the items that came with it. The follower
// looks from time to time whether they do.
func (t *thread) holdLocked(k *turn, end handoff.TurnEnded, items []wireItem) {
	t.closeLocked(func(q *openQuestion) bool { return q.Turn == k.id && q.Wire.params.ThreadID == t.id })
	for _, it := range reported(items) {
		k.report(k.reducer.ItemDone(it))
	}
	k.held, k.resting = &end, true
	k.updates.Wake()
}

// holds reports whether the end of a turn is held.
func (t *thread) holds(id handoff.TurnID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.findLocked(id)
	return k != nil && k.held != nil
}

// release ends a turn whose end was held.
func (t *thread) release(id handoff.TurnID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.findLocked(id); k != nil && k.held != nil {
		t.endLocked(k, *k.held, nil)
	}
}

// stopHeld notes that the work of a turn whose end is held was stopped; false: it is not held.
func (t *thread) stopHeld(id handoff.TurnID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.findLocked(id)
	if k == nil || k.held == nil {
		return false
	}
	k.held.Status = handoff.TurnInterrupted
	return true
}

// isOurs reports whether the questions of a turn are reported here.
func (t *thread) isOurs(id handoff.TurnID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.findLocked(id)
	return k != nil && k.ours
}

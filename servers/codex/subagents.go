package codex

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers/jsonrpc"
)

// An agent may start subagents (multi_agent of Codex). Each works in a thread of its own. All connections that were
// there when it began get the messages of that thread, without a subscription. While a subagent waits for permission,
// the turn that started it waits too: so the subagent's questions are reported as questions of that turn.

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
	thread    *thread        // Guarded by connection.mu: of the turn that it works for
	turn      handoff.TurnID // Guarded by connection.mu: that turn
	dismissed bool           // Guarded by connection.mu: that turn has ended, and we have unsubscribed
	edit      string         // Owned by the reader: the item of its newest edit
	paths     []string       // Owned by the reader: the paths of that edit
}

// subagentOf returns a known subagent, and the thread and turn for which it works.
func (c *connection) subagentOf(id string) (*subagent, *thread, handoff.TurnID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.subagents, func(h *subagent) bool { return h.id == id && !h.dismissed }); i >= 0 {
		return c.subagents[i], c.subagents[i].thread, c.subagents[i].turn
	}
	return nil, nil, ""
}

// noteSubagents adds the subagents that an item of a turn names.
func (c *connection) noteSubagents(t *thread, turn handoff.TurnID, w *wireItem) {
	if w == nil || w.Type != typeCollab || turn == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range w.Receivers {
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
			c.subagents = append(c.subagents, &subagent{id: id, thread: t, turn: turn})
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
	case m.Method == noteRequestResolved:
		t.handle(m.Method, n)
	case n.Item != nil && n.Item.Type == typeFileChange:
		h.edit, h.paths = n.Item.ID, n.Item.paths()
	default:
		c.noteSubagents(t, turn, n.Item)
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

// dismiss unsubscribes from the subagents of a turn that has ended, so that others can open their threads. If a
// subagent goes on for another turn, noteSubagents subscribes again.
func (c *connection) dismiss(t *thread, turn handoff.TurnID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dismissLocked(func(h *subagent) bool { return h.thread == t && h.turn == turn })
}

func (c *connection) dismissLocked(which func(*subagent) bool) {
	for _, h := range c.subagents {
		if _, attached := c.threads[h.id]; which(h) && !h.dismissed && !attached {
			h.dismissed = true
			c.resubscribeLocked(resubscription{h.id, false})
		}
	}
}

// callSubagents subscribes to the working subagents of a turn, so that the server sends their questions again.
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
		w, err := c.client.threadRead(ctx, h.id)
		if err == nil && w.Status.Type == "active" {
			_, err = c.client.threadResume(ctx, h.id, 1, nil)
		}
		if err != nil {
			c.log.Debug("a subagent was not heard", zap.String("thread", h.id), zap.Error(err))
		}
	}
}

package codex

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers/jsonrpc"
)

// An agent may start subagents (multi_agent of codex): each works in a thread of its own, of which every
// connection that was there when it began hears, asked or not. While one waits for permission the turn that
// started it waits too, so that what a subagent asks is asked as a question of that turn.

const (
	// maxSubagents is how many subagents of a connection are known. When there are more, the oldest is forgotten:
	// what it asks is then left to the other clients.
	maxSubagents = 64
	// maxCalled is how many subagents of a turn are looked after again when it is followed anew.
	maxCalled = 8
)

// A subagent is a thread that the agent of a turn started.
type subagent struct {
	id     string         // Set once: of its thread
	thread *thread        // Guarded by the mu of Conn: where the turn runs for which it works
	turn   handoff.TurnID // Guarded by the mu of Conn: that turn
	left   bool           // Guarded by the mu of Conn: that turn has ended, and we listen to it no longer
	edit   string         // Owned by the reader: the item of its newest edit
	paths  []string       // Owned by the reader: what that touches
}

// subagentOf returns a known subagent, and the thread and turn for which it works.
func (c *connection) subagentOf(id string) (*subagent, *thread, handoff.TurnID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.subagents, func(h *subagent) bool { return h.id == id && !h.left }); i >= 0 {
		return c.subagents[i], c.subagents[i].thread, c.subagents[i].turn
	}
	return nil, nil, ""
}

// meet notes the subagents that an item of a turn names.
func (c *connection) meet(t *thread, turn handoff.TurnID, w *wireItem) {
	if w == nil || w.Type != typeCollab || turn == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range w.Receivers {
		i := slices.IndexFunc(c.subagents, func(h *subagent) bool { return h.id == id })
		switch {
		case id == t.id: // one that answers to the agent that started it
		case i >= 0: // it goes on for another turn
			h := c.subagents[i]
			if h.left {
				c.sendLocked(resubscription{h.id, true})
			}
			h.thread, h.turn, h.left = t, turn, false
		default:
			c.subagents = append(c.subagents, &subagent{id: id, thread: t, turn: turn})
			c.subagents = slices.Delete(c.subagents, 0, max(len(c.subagents)-maxSubagents, 0))
		}
	}
}

// hearSubagent takes what is said about a subagent. It runs in the reader.
func (c *connection) hearSubagent(m jsonrpc.Message, n *note) {
	h, t, turn := c.subagentOf(n.ThreadID)
	switch {
	case h == nil: // somebody else's
	case m.ID != nil:
		c.asks(t, m, func(p *askParams, q *handoff.Question) {
			q.Turn = turn
			if p.ItemID == h.edit {
				q.Changes = h.paths
			}
		})
	case m.Method == noteRequestResolved:
		t.hear(m.Method, n)
	case n.Item != nil && n.Item.Type == typeFileChange:
		h.edit, h.paths = n.Item.ID, n.Item.paths()
	default:
		c.meet(t, turn, n.Item)
	}
}

// maxResubscriptions bounds what waits to be told the server about subagents.
const maxResubscriptions = 2 * maxSubagents

// A resubscription changes the subscription of a subagent's thread. The reader, which must not wait, sends it.
type resubscription struct {
	thread string
	listen bool
}

// sendLocked leaves a resubscription out when there are too many: a server that is so slow has other troubles.
func (c *connection) sendLocked(e resubscription) {
	select {
	case c.resubscriptions <- e:
	default:
		c.tally.resubscriptions.Add(1)
		c.log.Debug("subscription of a subagent not changed", zap.String("thread", e.thread))
	}
}

// resubscribe sends them until the connection is lost.
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

// dismiss stops listening to the subagents of a turn that has ended: somebody else may want to open their
// threads. One that goes on for another turn is listened to again.
func (c *connection) dismiss(t *thread, turn handoff.TurnID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dismissLocked(func(h *subagent) bool { return h.thread == t && h.turn == turn })
}

func (c *connection) dismissLocked(which func(*subagent) bool) {
	for _, h := range c.subagents {
		if _, attached := c.threads[h.id]; which(h) && !h.left && !attached {
			h.left = true
			c.sendLocked(resubscription{h.id, false})
		}
	}
}

// callSubagents subscribes to the subagents of a turn that work, so that what they ask is asked again here.
func (c *connection) callSubagents(ctx context.Context, t *thread, turn handoff.TurnID, items []wireItem) {
	called := 0
	for i := range items {
		c.meet(t, turn, &items[i])
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

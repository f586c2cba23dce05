package simulator

import (
	"slices"
	"time"
)

// A queued message begins a turn of its own when the running turn has completed. The queue outlives a
// crash; after an interrupt it is held back until another turn completes or the thread is loaded again.
type queued struct {
	id string
	in input
}

func (q queued) wire() map[string]any {
	return map[string]any{
		"id": q.id, "input": []any{map[string]any{"type": "text", "text": q.in.text, "text_elements": []any{}}},
		"clientUserMessageId": *q.in.client, "responsesapiClientMetadata": nil,
	}
}

func (m *machine) queueAdd(r asked) *refusal {
	var p turnParams
	t, no := m.loadedThread(r, &p)
	switch {
	case no != nil:
		return no
	case p.ClientID == nil:
		return refuse("Invalid request: missing field `clientUserMessageId`")
	}
	in, no := p.input()
	if no != nil {
		return no
	}
	fault := m.startFault()
	if fault == StartLost {
		r.conn.cut()
		return nil
	}
	q := queued{newID(time.Now()), in}
	acknowledge := func() {
		if fault == StartCut {
			r.conn.cut()
			return
		}
		r.conn.reply(r.id, map[string]any{"queuedSubmission": q.wire()})
	}
	held := t.turn != nil || len(t.queue) > 0
	t.queue = append(t.queue, q)
	if held {
		acknowledge()
		m.queueChanged(t)
		return nil
	}
	m.queueChanged(t) // recorded: it leaves the queue before the turn is told
	t.queue = nil
	m.queueChanged(t)
	acknowledge()
	m.work(m.beginQueued(t, q), q.in)
	return nil
}

func (m *machine) queueChanged(t *thread) { m.publish(t, "thread/queue/changed", map[string]any{}) }

// beginQueued begins the turn of a message that has left the queue.
func (m *machine) beginQueued(t *thread, q queued) *turn {
	u := &turn{id: newID(time.Now()), thread: t, status: turnRunning}
	m.starts = append(m.starts, Start{Thread: t.id, Turn: u.id, Prompt: q.in.text, ClientID: *q.in.client, Queued: true, At: time.Now()})
	m.begun(u)
	return u
}

// dequeue begins the next queued message of a thread that rests.
func (m *machine) dequeue(t *thread) *turn {
	if len(t.queue) == 0 || t.turn != nil || !t.loaded {
		return nil
	}
	q := t.queue[0]
	t.queue = t.queue[1:]
	u := m.beginQueued(t, q)
	m.queueChanged(t)
	m.work(u, q.in)
	return u
}

func (m *machine) queueList(r asked) *refusal {
	t, no := m.threadOf(r, absentRead)
	switch {
	case no != nil:
		return no
	case t.archived:
		return refuseArchived(t)
	}
	data := []any{}
	for _, q := range t.queue {
		data = append(data, q.wire())
	}
	r.conn.reply(r.id, map[string]any{"data": data, "nextCursor": nil})
	return nil
}

// entry finds a queued message of a request.
func (m *machine) entry(r asked) (*thread, int, *refusal) {
	var p struct {
		ThreadID *string `json:"threadId"`
		Entry    *string `json:"queuedSubmissionId"`
	}
	if no := decode(r, &p); no != nil {
		return nil, 0, no
	}
	t, no := m.find(p.ThreadID, absentTurn)
	switch {
	case no != nil:
		return nil, 0, no
	case t.archived:
		return nil, 0, refuseArchived(t)
	case !t.loaded:
		return nil, 0, refuse("%s%s", absentTurn, t.id)
	case p.Entry == nil:
		return nil, 0, refuse("Invalid request: missing field `queuedSubmissionId`")
	}
	i := slices.IndexFunc(t.queue, func(q queued) bool { return q.id == *p.Entry })
	if i < 0 {
		return nil, 0, refuse("queued submission not found: %s", *p.Entry)
	}
	return t, i, nil
}

func (m *machine) queueDelete(r asked) *refusal {
	t, i, no := m.entry(r)
	if no != nil {
		return no
	}
	t.queue = slices.Delete(t.queue, i, i+1)
	r.conn.reply(r.id, map[string]any{})
	m.queueChanged(t)
	return nil
}

func (m *machine) queueStart(r asked) *refusal {
	t, i, no := m.entry(r)
	switch {
	case no != nil:
		return no
	case t.turn != nil:
		return refuse("a turn is already active")
	}
	q := t.queue[i]
	t.queue = slices.Insert(slices.Delete(t.queue, i, i+1), 0, q)
	u := m.dequeue(t)
	r.conn.reply(r.id, map[string]any{"turn": u.wire(viewNone)})
	return nil
}

package mux

import "encoding/json"

// A turn is a prompt and what the agent says in it.
type turn struct {
	session  string
	clients  map[uint64]bool // attached ones that have sent or adopted it: they get it, and may answer and stop it
	prompt   json.RawMessage // its text blocks
	began    int             // its position in the log
	end      []byte          // the message that tells adopters how it ended; nil: it runs
	stopped  bool            // it was told to stop
	reported bool            // a client knows the end
}

// runs reports whether there is a turn that has not ended.
func (t *turn) runs() bool { return t != nil && t.end == nil }

// An end is the outcome of a prompt.
type end struct {
	Session string          `json:"sessionId"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
	Ended   string          `json:"ended,omitempty"` // why the agent ended before it answered
}

// begin begins a turn of a client, in place of the session's last one.
func (b *broker) begin(name string, s *session, client uint64, prompt json.RawMessage) {
	s.lastClient = client
	s.turn = &turn{
		session: name, clients: map[uint64]bool{client: true}, prompt: prompt, began: b.log.lost + len(b.log.entries),
	}
	b.record(entry{s.turn, asked, prompt})
}

// record puts an entry into the log. A turn whose beginning is lost by that has a gap. One whose end is lost is
// forgotten.
func (b *broker) record(e entry) {
	for _, lost := range b.log.add(e) {
		s := b.sessions[lost.turn.session]
		switch {
		case s == nil || s.turn != lost.turn: // another turn took its place
		case lost.what == asked:
			b.gaps++
		case lost.what == answered:
			b.forgotten++
			s.turn = nil
			b.forget(lost.turn.session)
		}
	}
}

// finish ends a running turn.
func (b *broker) finish(t *turn, e end) {
	e.Session = t.session
	t.end = frame{Method: onAnswered, Params: raw(e)}.line()
	for _, q := range b.asked(t.session) {
		b.refuse(q)
	}
	b.record(entry{t, answered, t.end})
}

// adopt gives the newest turn of a session to a client, unless the client has it. Its other clients keep it: they may
// be dead without a sign, or work beside this one.
func (b *broker) adopt(r *request) {
	s := b.sessions[r.session]
	if s == nil || s.turn == nil || s.turn.clients[r.client] {
		b.answer(r, frame{Result: raw(map[string]bool{"found": false})})
		return
	}
	t := s.turn
	t.clients[r.client] = true
	lines, gap := b.log.of(t)
	b.send(r.client, frame{Method: onPrompted, Params: raw(map[string]any{
		"sessionId": r.session, "cwd": s.cwd, "prompt": t.prompt, "gap": gap,
	})}.line())
	for _, line := range lines {
		b.send(r.client, line)
	}
	for _, q := range b.asked(r.session) {
		b.send(r.client, q.line)
	}
	if t.end != nil {
		t.reported = true
		b.send(r.client, t.end)
	}
	b.answer(r, frame{Result: raw(map[string]bool{"found": true})})
}

// tellAdopters tells the clients that have adopted a turn how it ended. The client that sent it, with the request by,
// gets the answer to that request instead.
func (b *broker) tellAdopters(t *turn, by *request) {
	for to := range t.clients {
		if to != by.client {
			b.send(to, t.end)
		}
	}
}

// works reports whether a prompt runs that was not told to stop. Such a prompt may be silent for any time.
func (b *broker) works() bool {
	for _, s := range b.sessions {
		if s.turn.runs() && !s.turn.stopped {
			return true
		}
	}
	return false
}

// owesOutcome reports whether a prompt has ended, without being told to stop, and no client knows its outcome.
func (b *broker) owesOutcome() bool {
	for _, s := range b.sessions {
		if t := s.turn; t != nil && t.end != nil && !t.reported && !t.stopped {
			return true
		}
	}
	return false
}

// stop returns the messages that tell the agent to stop all running prompts.
func (b *broker) stop() (lines [][]byte) {
	for name, s := range b.sessions {
		if s.turn.runs() {
			lines = append(lines, frame{Method: doCancel, Params: raw(map[string]string{"sessionId": name})}.line())
		}
	}
	return lines
}

package keeper

import "encoding/json"

// A turn is a prompt and the agent's messages of it.
type turn struct {
	clients  map[uint64]bool // attached ones that have sent or adopted it: they get it, and may answer and stop it
	prompt   json.RawMessage // its text blocks
	messages []recorded
	size     int    // bytes of prompt, messages and end
	gap      bool   // messages were dropped
	stopped  bool   // it was told to stop
	reported bool   // a client knows the end
	ended    uint64 // its place in the order of ends, from 1; 0: it runs
	end      end
}

// An end is the outcome of a prompt.
type end struct {
	Session string          `json:"sessionId"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
	Ended   string          `json:"ended,omitempty"` // why the agent ended before it answered
}

// recorded is a message of the agent.
type recorded struct {
	line      []byte
	requestID string // "": it is no request
}

// adopt gives the newest turn of a session to a client, unless the client has it. Its other clients keep it: they may
// be dead without a sign, or work beside this one.
func (b *book) adopt(r request) {
	s := b.sessions.all[r.session]
	if s == nil || s.turn == nil || s.turn.clients[r.client] {
		b.answer(r, frame{Result: raw(map[string]bool{"found": false})})
		return
	}
	t := s.turn
	t.clients[r.client] = true
	b.send(r.client, frame{Method: onPrompted, Params: raw(map[string]any{
		"sessionId": r.session, "cwd": s.cwd, "prompt": t.prompt, "gap": t.gap,
	})}.line())
	for _, one := range t.messages {
		b.send(r.client, one.line)
	}
	if t.ended != 0 {
		t.reported = true
		b.send(r.client, frame{Method: onAnswered, Params: raw(t.end)}.line())
	}
	b.answer(r, frame{Result: raw(map[string]bool{"found": true})})
}

// tellAdopters tells the clients that have adopted a turn how it ended. The client that sent it, with the request by,
// gets the answer to that request instead.
func (b *book) tellAdopters(t *turn, by request) {
	for to := range t.clients {
		if to != by.client {
			b.send(to, frame{Method: onAnswered, Params: raw(t.end)}.line())
		}
	}
}

// closeQuestion forgets a request of the agent that was answered or withdrawn.
func (b *book) closeQuestion(id string) {
	s := b.sessions.all[b.questions[id].session]
	delete(b.questions, id)
	if s == nil || s.turn == nil {
		return
	}
	for i, one := range s.turn.messages {
		if one.requestID == id {
			b.sessions.grow(s, -len(one.line))
			s.turn.messages = append(s.turn.messages[:i:i], s.turn.messages[i+1:]...)
			return
		}
	}
}

// finish ends the turn of a session.
func (b *book) finish(name string, s *session, e end) {
	e.Session = name
	b.sessions.ends++
	s.turn.ended, s.turn.end = b.sessions.ends, e
	b.sessions.grow(s, len(e.Result)+len(e.Error))
	for id, a := range b.questions {
		if a.session == name {
			b.closeQuestion(id)
			b.refuse(json.RawMessage(id), a.method)
		}
	}
	b.sessions.makeRoom()
}

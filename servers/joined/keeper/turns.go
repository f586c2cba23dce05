package keeper

import "encoding/json"

// A turn is a prompt and what the agent said of it.
type turn struct {
	clients map[uint64]bool // that are attached and have given or adopted it: they hear it, and may answer and stop it
	prompt  json.RawMessage // its texts
	said    []said
	size    int
	gap     bool   // what was said is not all here
	stopped bool   // it was told to stop
	told    bool   // a client was told the end
	ended   uint64 // which of the ends it was; 0: it runs
	end     end
}

// An end is what became of a prompt.
type end struct {
	Session string          `json:"sessionId"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
	Ended   string          `json:"ended,omitempty"` // why the agent ended before it answered
}

// said is a message of the agent; ask is its id when it is a request.
type said struct {
	line []byte
	ask  string
}

// adopt gives the newest turn of a session to a client, unless it has it. Who had it before keeps it: whether that one
// is dead, or works beside this one, is not known here.
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
	for _, one := range t.said {
		b.send(r.client, one.line)
	}
	if t.ended != 0 {
		t.told = true
		b.send(r.client, frame{Method: onAnswered, Params: raw(t.end)}.line())
	}
	b.answer(r, frame{Result: raw(map[string]bool{"found": true})})
}

// adopted tells those who have adopted a turn how it ended; who gave it gets the answer to its request.
func (b *book) adopted(t *turn, by request) {
	for to := range t.clients {
		if to != by.client {
			b.send(to, frame{Method: onAnswered, Params: raw(t.end)}.line())
		}
	}
}

// settle forgets a request of the agent that was answered or withdrawn.
func (b *book) settle(id string) {
	s := b.sessions.all[b.asked[id].session]
	delete(b.asked, id)
	if s == nil || s.turn == nil {
		return
	}
	for i, one := range s.turn.said {
		if one.ask == id {
			b.sessions.count(s, -len(one.line))
			s.turn.said = append(s.turn.said[:i:i], s.turn.said[i+1:]...)
			return
		}
	}
}

// finish ends the turn of a session.
func (b *book) finish(name string, s *session, e end) {
	e.Session = name
	b.sessions.ends++
	s.turn.ended, s.turn.end = b.sessions.ends, e
	b.sessions.count(s, len(e.Result)+len(e.Error))
	for id, a := range b.asked {
		if a.session == name {
			b.settle(id)
			b.refuse(json.RawMessage(id), a.method)
		}
	}
	b.sessions.room()
}

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
	s := b.sessions[r.session]
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
	s := b.sessions[b.asked[id].session]
	delete(b.asked, id)
	if s == nil || s.turn == nil {
		return
	}
	for i, one := range s.turn.said {
		if one.ask == id {
			b.count(s, -len(one.line))
			s.turn.said = append(s.turn.said[:i:i], s.turn.said[i+1:]...)
			return
		}
	}
}

// finish ends the turn of a session.
func (b *book) finish(name string, s *session, e end) {
	e.Session = name
	b.ends++
	s.turn.ended, s.turn.end = b.ends, e
	b.count(s, len(e.Result)+len(e.Error))
	for id, a := range b.asked {
		if a.session == name {
			b.settle(id)
			b.refuse(json.RawMessage(id), a.method)
		}
	}
	b.room()
}

// keep keeps what the agent said of the running turn of a session.
func (b *book) keep(s *session, what said) {
	if s.turn.gap && what.ask == "" {
		return
	}
	s.turn.said = append(s.turn.said, what)
	if b.count(s, len(what.line)); b.kept > b.most {
		b.room()
	}
	if b.kept <= b.most || s.turn.gap {
		return
	}
	s.turn.gap = true
	b.gaps++
	var asks []said
	for _, one := range s.turn.said {
		if one.ask != "" {
			asks = append(asks, one)
		} else {
			b.count(s, -len(one.line))
		}
	}
	s.turn.said = asks
}

// room forgets turns that have ended until there is room.
func (b *book) room() {
	for {
		oldest, ended := "", 0
		for name, s := range b.sessions {
			if s.turn == nil || s.turn.ended == 0 {
				continue
			}
			if ended++; oldest == "" || s.turn.ended < b.sessions[oldest].turn.ended {
				oldest = name
			}
		}
		if oldest == "" || b.kept <= b.most && ended <= maxEnded {
			return
		}
		b.forgotten++
		b.drop(b.sessions[oldest])
		b.forget(oldest)
	}
}

// drop forgets the turn of a session.
func (b *book) drop(s *session) {
	if s.turn != nil {
		b.kept -= s.turn.size
		s.turn = nil
	}
}

func (b *book) count(s *session, n int) {
	s.turn.size += n
	b.kept += n
}

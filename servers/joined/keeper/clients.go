package keeper

import (
	"encoding/json"
	"slices"
	"strconv"
)

// attach begins a client.
func (b *book) attach(client uint64) { b.clients[client] = true }

// detach ends a client: its sessions in which nothing runs are closed, and what nobody works on is refused.
func (b *book) detach(client uint64) {
	delete(b.clients, client)
	b.greeted = slices.DeleteFunc(b.greeted, func(r request) bool { return r.client == client })
	b.held = slices.DeleteFunc(b.held, func(h held) bool {
		if h.client == client {
			b.unsend(h)
		}
		return h.client == client
	})
	for id, a := range b.asked {
		if s := b.sessions[a.session]; s == nil || !s.runs() && !b.clients[s.by] {
			b.refuse(json.RawMessage(id), a.method)
			delete(b.asked, id)
		}
	}
	for id := range b.sessions {
		b.tidy(id)
	}
}

// taken reports whether another client that is attached works in a session.
func (b *book) taken(s *session, client uint64) bool {
	return s != nil && s.runs() && s.turn.client != client && b.clients[s.turn.client]
}

// elsewhere reports whether another client that is attached has a session open.
func (b *book) elsewhere(s *session, client uint64) bool {
	return b.taken(s, client) || s != nil && s.open && s.by != client && b.clients[s.by]
}

// fromClient takes a message of a client that is attached. It reports whether that uses the agent.
func (b *book) fromClient(client uint64, line []byte) (uses bool) {
	f, ok := read(line)
	if !ok {
		return false
	}
	p := placeOf(f.Params)
	r, s := request{client: client, id: f.ID, method: f.Method, session: p.Session, cwd: p.Cwd}, b.sessions[p.Session]
	switch {
	case f.Method == "":
		if _, open := b.asked[string(f.ID)]; open {
			b.settle(string(f.ID))
			b.toAgent = append(b.toAgent, f.line())
		}
	case f.ID == nil:
		b.note(r, f, s)
	case f.Method == doInitialize:
		b.hello = f.Params
		if b.welcome != nil {
			b.answer(r, frame{Result: b.welcomed()})
		} else {
			b.greeted = append(b.greeted, r)
		}
		return false
	case f.Method == doAdopt:
		b.adopt(r)
		return false
	case f.Method == doPrompt:
		s := b.session(p.Session)
		if s.runs() {
			b.answer(r, frame{Error: failure(codeBusy, "a prompt runs in this session already")})
			return true
		}
		b.drop(s)
		s.turn = &turn{client: client, prompt: words(f.Params)}
		b.count(s, len(s.turn.prompt))
		b.forward(r, f)
	case (f.Method == doLoad || f.Method == doResume) && b.taken(s, client): // its words would be taken for old ones
		b.answer(r, frame{Error: failure(codeBusy, "another client works in this session")})
	case f.Method == doClose && b.elsewhere(s, client): // the agent would close it for that one too
		b.answer(r, frame{Result: raw(struct{}{})})
	default:
		b.forward(r, f)
	}
	return f.Method != doList
}

// note takes a message of a client that nobody answers.
func (b *book) note(r request, f frame, s *session) {
	if f.Method == doCancel {
		if b.taken(s, r.client) {
			return
		}
		if s != nil && s.runs() {
			s.turn.stopped = true
		}
	}
	if b.ready {
		b.toAgent = append(b.toAgent, f.line())
	} else if len(b.held) > 0 {
		b.hold(held{request{client: r.client}, 0, f.line()})
	}
}

// forward sends a request of a client to the agent, with an id of the keeper's.
func (b *book) forward(r request, f frame) {
	b.last++
	if r.session != "" && r.cwd != "" {
		b.session(r.session).cwd = r.cwd
	}
	b.waiting[b.last] = r
	f.ID = strconv.AppendInt(nil, b.last, 10)
	if b.ready {
		b.toAgent = append(b.toAgent, f.line())
		return
	}
	b.hold(held{r, b.last, f.line()})
}

// hold keeps a message for an agent that is not ready.
func (b *book) hold(h held) {
	b.held = append(b.held, h)
	if len(b.held) > maxHeld {
		b.fail("too much waits for the agent to start")
	}
}

// answer answers a request of a client, if that is still there.
func (b *book) answer(r request, f frame) {
	f.ID = r.id
	b.send(r.client, f.line())
}

// send sends a message to a client, if that is still there.
func (b *book) send(to uint64, line []byte) {
	if b.clients[to] {
		b.toClients = append(b.toClients, letter{to, line})
	}
}

// tell sends what the agent says outside any prompt to those whom it is for: who opens the session hears what was said
// in it, else who has it open hears what is new, else everybody does.
func (b *book) tell(session string, line []byte) {
	opens := map[uint64]bool{}
	for _, r := range b.waiting {
		if session != "" && r.session == session && (r.method == doLoad || r.method == doResume) && b.clients[r.client] {
			opens[r.client] = true
		}
	}
	if s := b.sessions[session]; len(opens) == 0 && s != nil && b.clients[s.by] {
		opens[s.by] = true
	}
	if len(opens) == 0 {
		opens = b.clients
	}
	for to := range opens {
		b.send(to, line)
	}
}

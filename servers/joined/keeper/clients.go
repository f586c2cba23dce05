package keeper

import (
	"encoding/json"
	"slices"
	"strconv"
)

// attach begins a client.
func (b *book) attach(client uint64) { b.clients[client] = true }

// detach ends a client: sessions that it alone had open and in which nothing runs are closed, and what nobody works on
// is refused.
func (b *book) detach(client uint64) {
	delete(b.clients, client)
	for _, s := range b.sessions.all {
		delete(s.by, client)
		if s.turn != nil {
			delete(s.turn.clients, client)
		}
	}
	b.greeted = slices.DeleteFunc(b.greeted, func(r request) bool { return r.client == client })
	b.held = slices.DeleteFunc(b.held, func(h held) bool {
		if h.client != client || h.method == doPrompt && b.sessions.named(h.session).heard() { // another waits for its end
			return false
		}
		b.unsend(h)
		return true
	})
	for id, a := range b.asked {
		if s := b.sessions.all[a.session]; s == nil || !s.runs() && len(s.by) == 0 {
			b.refuse(json.RawMessage(id), a.method)
			delete(b.asked, id)
		}
	}
	for id := range b.sessions.all {
		b.tidy(id)
	}
	b.release()
}

// taken reports whether a prompt runs in a session that other clients hear, and this one does not.
func (s *session) taken(client uint64) bool {
	return s != nil && s.runs() && s.heard() && !s.turn.clients[client]
}

// elsewhere reports whether another client works in a session, has it open or is about to.
func (b *book) elsewhere(name string, client uint64) bool {
	s := b.sessions.all[name]
	return s != nil && (s.runs() && others(s.turn.clients, client) || s.open && others(s.by, client)) ||
		others(b.opening(name), client)
}

// others reports whether there are more clients than this one.
func others(clients map[uint64]bool, client uint64) bool {
	return len(clients) > 1 || len(clients) == 1 && !clients[client]
}

// opening returns the clients that have asked the agent to open a session, and may still get an answer.
func (b *book) opening(name string) map[uint64]bool {
	all := map[uint64]bool{}
	for _, r := range b.waiting {
		if r.reopens(name) && !r.late && !r.replays && b.clients[r.client] {
			all[r.client] = true
		}
	}
	return all
}

// fromClient takes a message of a client that is attached. It reports whether that uses the agent.
func (b *book) fromClient(client uint64, line []byte) (uses bool) {
	f, ok := read(line)
	if !ok {
		return false
	}
	p := placeOf(f.Params)
	r, s := request{client: client, id: f.ID, method: f.Method, session: p.Session, cwd: p.Cwd}, b.sessions.all[p.Session]
	switch {
	case f.Method == "":
		b.reply(client, f)
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
		s := b.sessions.named(p.Session)
		if s.runs() {
			b.answer(r, frame{Error: busy("a prompt runs in this session already")})
			return true
		}
		if others(b.opening(p.Session), client) { // its history would be taken for what is said of the prompt
			b.answer(r, frame{Error: busy("another client opens this session")})
			return true
		}
		b.sessions.drop(s)
		if opener := b.opener(p.Session); b.waiting[opener].replays && b.waiting[opener].client == client {
			delete(b.waiting, opener) // it has heard enough
		}
		s.last = client
		s.turn = &turn{clients: map[uint64]bool{client: true}, prompt: words(f.Params)}
		b.sessions.count(s, len(s.turn.prompt))
		b.forward(r, f)
	case f.Method == doClose && b.elsewhere(p.Session, client): // the agent would close it for that one too
		if s != nil {
			delete(s.by, client)
		}
		b.answer(r, frame{Result: raw(struct{}{})})
	case f.Method != doFork && s.taken(client),
		(f.Method == doLoad || f.Method == doResume) && s != nil && s.runs() && others(s.turn.clients, client):
		// What it opens is told again, which the others would take for new; else it has to adopt the prompt first.
		b.answer(r, frame{Error: busy("another client works in this session")})
	default:
		b.forward(r, f)
	}
	return f.Method != doList
}

// reply takes a client's answer to a request of the agent. Of a prompt, those who hear it may answer; the first does,
// and the others are told that the request is withdrawn.
func (b *book) reply(client uint64, f frame) {
	a, open := b.asked[string(f.ID)]
	s := b.sessions.all[a.session]
	if !open || s != nil && s.runs() && !s.turn.clients[client] {
		return
	}
	b.settle(string(f.ID))
	b.toAgent = append(b.toAgent, f.line())
	if s == nil || !s.runs() {
		return
	}
	for to := range s.turn.clients {
		if to != client {
			b.send(to, frame{Method: onWithdraw, Params: raw(map[string]any{"requestId": f.ID})}.line())
		}
	}
}

// note takes a message of a client that nobody answers.
func (b *book) note(r request, f frame, s *session) {
	if s.taken(r.client) {
		return
	}
	if f.Method == doCancel && s != nil && s.runs() {
		s.turn.stopped = true
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
		b.sessions.named(r.session).cwd = r.cwd
	}
	b.waiting[b.last] = r
	f.ID = strconv.AppendInt(nil, b.last, 10)
	h := held{r, b.last, f.line()}
	if b.takes(h) {
		b.give(h)
		return
	}
	b.hold(h)
}

// give sends a request to the agent.
func (b *book) give(h held) {
	b.toAgent = append(b.toAgent, h.line)
	if h.reopens(h.session) {
		b.alarms = append(b.alarms, alarm{h.own, openedBy})
	}
}

// takes reports whether the agent can be given a message now. What opens a session waits while one is being closed, and
// while another request opens that one, up to the end of its history: who opens it would take the history that both are
// told for its own twice. A prompt waits for that end too, or the history would be taken for what is said of it.
func (b *book) takes(h held) bool {
	if !b.ready || opens(h.method) && b.closing() {
		return false
	}
	opener := b.opener(h.session)
	return h.own == opener || !h.reopens(h.session) && (h.method != doPrompt || !b.waiting[opener].replays)
}

// opener returns the id of the request that opens a session, or does next; 0: none. Its client may be gone: the agent
// answers it all the same. One that is late counts only where there is no other.
func (b *book) opener(session string) (first int64) {
	for id, r := range b.waiting {
		late := b.waiting[first].late
		if r.reopens(session) && (first == 0 || late && !r.late || late == r.late && id < first) {
			first = id
		}
	}
	return first
}

// reopens reports whether a request opens a session that there is already.
func (r request) reopens(session string) bool {
	return session != "" && r.session == session && (r.method == doLoad || r.method == doResume)
}

// opens reports whether a method opens a session.
func opens(method string) bool {
	return method == doNew || method == doLoad || method == doResume || method == doFork
}

// hold keeps a message that the agent cannot be given yet.
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
// in it, and nobody else does; else who worked in it last hears what is new, also where that comes after the answer,
// else all who have it open do, else everybody does.
func (b *book) tell(session string, line []byte) {
	to, s := b.clients, b.sessions.all[session]
	switch opener := b.opener(session); {
	case opener != 0:
		r := b.waiting[opener]
		r.heard = r.replays
		b.waiting[opener] = r
		b.send(r.client, line)
		return
	case s != nil && s.by[s.last]:
		to = map[uint64]bool{s.last: true}
	case s != nil && len(s.by) > 0:
		to = s.by
	}
	for client := range to {
		b.send(client, line)
	}
}

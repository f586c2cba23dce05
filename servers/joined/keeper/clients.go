package keeper

import (
	"encoding/json"
	"slices"
	"strconv"
)

// attach adds a client.
func (b *book) attach(client uint64) { b.clients[client] = true }

// detach removes a client. Sessions that only it had open are closed unless a prompt runs in them, and requests of the
// agent that no client can answer any more are refused.
func (b *book) detach(client uint64) {
	delete(b.clients, client)
	for _, s := range b.sessions.all {
		delete(s.openBy, client)
		if s.turn != nil {
			delete(s.turn.clients, client)
		}
	}
	b.queued = slices.DeleteFunc(b.queued, func(h queued) bool {
		if h.client != client || h.method == doPrompt && b.sessions.ensure(h.session).hasClient() {
			return false // another client waits for the prompt
		}
		b.unsend(h)
		return true
	})
	for id, a := range b.questions {
		if s := b.sessions.all[a.session]; s == nil || !s.runs() && len(s.openBy) == 0 {
			b.refuse(json.RawMessage(id), a.method)
			delete(b.questions, id)
		}
	}
	for id := range b.sessions.all {
		b.closeUnused(id)
	}
	b.release()
}

// heardByOthers reports whether a prompt runs in a session whose messages other clients get, and this one does not.
func (s *session) heardByOthers(client uint64) bool {
	return s != nil && s.runs() && s.hasClient() && !s.turn.clients[client]
}

// usedByOthers reports whether another client works in a session, has it open or is opening it.
func (b *book) usedByOthers(name string, client uint64) bool {
	s := b.sessions.all[name]
	return s != nil && (s.runs() && others(s.turn.clients, client) || s.open && others(s.openBy, client)) ||
		others(b.opening(name), client)
}

// others reports whether there are other clients than this one.
func others(clients map[uint64]bool, client uint64) bool {
	return len(clients) > 1 || len(clients) == 1 && !clients[client]
}

// opening returns the clients whose request to open a session is neither answered nor late.
func (b *book) opening(name string) map[uint64]bool {
	all := map[uint64]bool{}
	for _, r := range b.waiting {
		if r.reopens(name) && !r.late && !r.replaying && b.clients[r.client] {
			all[r.client] = true
		}
	}
	return all
}

// fromClient takes a message of an attached client. It reports whether the message counts as use of the agent.
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
		b.initParams = f.Params
		if b.initResult != nil {
			b.answer(r, frame{Result: b.initAnswer()})
		} else {
			b.enqueue(queued{request: r})
		}
		return false
	case f.Method == doAdopt:
		b.adopt(r)
		return false
	case f.Method == doPrompt:
		s := b.sessions.ensure(p.Session)
		if s.runs() {
			b.answer(r, frame{Error: busy("a prompt runs in this session already")})
			return true
		}
		if others(b.opening(p.Session), client) { // the history would be taken for messages of the prompt
			b.answer(r, frame{Error: busy("another client opens this session")})
			return true
		}
		b.sessions.drop(s)
		if opener := b.opener(p.Session); b.waiting[opener].replaying && b.waiting[opener].client == client {
			delete(b.waiting, opener) // the client does not wait for the rest of the history
		}
		s.lastClient = client
		s.turn = &turn{clients: map[uint64]bool{client: true}, prompt: promptTexts(f.Params)}
		b.sessions.grow(s, len(s.turn.prompt))
		b.forward(r, f)
	case f.Method == doClose && b.usedByOthers(p.Session, client): // the agent would close it for the others too
		if s != nil {
			delete(s.openBy, client)
		}
		b.answer(r, frame{Result: raw(struct{}{})})
	case f.Method != doFork && s.heardByOthers(client),
		(f.Method == doLoad || f.Method == doResume) && s != nil && s.runs() && others(s.turn.clients, client):
		// Opening replays the history, which the others would take for new. To act in a prompt, a client adopts it.
		b.answer(r, frame{Error: busy("another client works in this session")})
	default:
		b.forward(r, f)
	}
	return f.Method != doList
}

// reply handles a client's answer to a request of the agent. In a prompt, only its clients may answer; the first answer
// counts, and the other clients are told that the request is withdrawn.
func (b *book) reply(client uint64, f frame) {
	a, open := b.questions[string(f.ID)]
	s := b.sessions.all[a.session]
	if !open || s != nil && s.runs() && !s.turn.clients[client] {
		return
	}
	b.closeQuestion(string(f.ID))
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

// note handles a notification of a client.
func (b *book) note(r request, f frame, s *session) {
	if s.heardByOthers(r.client) {
		return
	}
	if f.Method == doCancel && s != nil && s.runs() {
		s.turn.stopped = true
	}
	if b.ready {
		b.toAgent = append(b.toAgent, f.line())
	} else if len(b.queued) > 0 {
		b.enqueue(queued{request{client: r.client}, 0, f.line()})
	}
}

// forward sends or queues a request of a client to the agent, with an id of the keeper's.
func (b *book) forward(r request, f frame) {
	b.lastID++
	if r.session != "" && r.cwd != "" {
		b.sessions.ensure(r.session).cwd = r.cwd
	}
	b.waiting[b.lastID] = r
	f.ID = strconv.AppendInt(nil, b.lastID, 10)
	h := queued{r, b.lastID, f.line()}
	if b.accepts(h) {
		b.sendAgent(h)
		return
	}
	b.enqueue(h)
}

// sendAgent sends a message to the agent, and answers initialize in its place.
func (b *book) sendAgent(h queued) {
	if h.method == doInitialize {
		b.answer(h.request, frame{Result: b.initAnswer()})
		return
	}
	b.toAgent = append(b.toAgent, h.line)
	if h.reopens(h.session) {
		b.alarms = append(b.alarms, alarm{h.agentID, openedBy})
	}
}

// accepts reports whether the agent can take a message now. A request that opens a session waits while any session is
// being closed, and while another request opens the same session, up to the end of its history: else both clients would
// get both histories. A prompt waits for that end too, or the history would be taken for messages of the prompt.
func (b *book) accepts(h queued) bool {
	if !b.ready || opens(h.method) && b.closing() {
		return false
	}
	opener := b.opener(h.session)
	return h.agentID == opener || !h.reopens(h.session) && (h.method != doPrompt || !b.waiting[opener].replaying)
}

// opener returns the id of the request that is opening a session, or will be the next to; 0: none. Its client may be
// gone: the agent answers all the same. A late request is returned only if there is no other.
func (b *book) opener(session string) (first int64) {
	for id, r := range b.waiting {
		late := b.waiting[first].late
		if r.reopens(session) && (first == 0 || late && !r.late || late == r.late && id < first) {
			first = id
		}
	}
	return first
}

// reopens reports whether a request opens an existing session.
func (r request) reopens(session string) bool {
	return session != "" && r.session == session && (r.method == doLoad || r.method == doResume)
}

// opens reports whether a method opens a session.
func opens(method string) bool {
	return method == doNew || method == doLoad || method == doResume || method == doFork
}

// enqueue keeps a message that the agent cannot take yet. If the queue is full, all that wait get an error.
func (b *book) enqueue(h queued) {
	b.queued = append(b.queued, h)
	if len(b.queued) > maxQueuedMessages {
		b.fail("too much waits for the agent to start")
	}
}

// answer answers a request of a client, if the client is still attached.
func (b *book) answer(r request, f frame) {
	f.ID = r.id
	b.send(r.client, f.line())
}

// send sends a message to a client, if it is still attached.
func (b *book) send(to uint64, line []byte) {
	if b.clients[to] {
		b.toClients = append(b.toClients, clientMessage{to, line})
	}
}

// route sends a message of the agent outside any prompt to the clients that it is for. While a client opens the
// session, the message is of the history, and only that client gets it. Else the client that worked in the session last
// gets it, if it has the session open; else all clients that have it open; else all clients.
func (b *book) route(session string, line []byte) {
	to, s := b.clients, b.sessions.all[session]
	switch opener := b.opener(session); {
	case opener != 0:
		r := b.waiting[opener]
		r.replayed = r.replaying
		b.waiting[opener] = r
		b.send(r.client, line)
		return
	case s != nil && s.openBy[s.lastClient]:
		to = map[uint64]bool{s.lastClient: true}
	case s != nil && len(s.openBy) > 0:
		to = s.openBy
	}
	for client := range to {
		b.send(client, line)
	}
}

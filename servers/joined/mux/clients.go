package mux

import (
	"encoding/json"
	"slices"
	"strconv"
)

// attach adds a client.
func (b *broker) attach(client uint64) { b.clients[client] = true }

// detach removes a client. Sessions that only it had open are closed unless a prompt runs in them, and questions of the
// agent that no client can answer any more are refused.
func (b *broker) detach(client uint64) {
	delete(b.clients, client)
	for _, s := range b.sessions {
		delete(s.openBy, client)
		if s.turn != nil {
			delete(s.turn.clients, client)
		}
	}
	b.queue = slices.DeleteFunc(b.queue, func(r *request) bool {
		if r.client != client || r.method == doPrompt && len(b.sessions[r.session].turn.clients) > 0 {
			return false // another client waits for the prompt
		}
		b.unsend(r)
		return true
	})
	for _, q := range slices.Clone(b.questions) {
		if s := b.sessions[q.session]; s == nil || !s.turn.runs() && len(s.openBy) == 0 {
			b.refuse(q)
		}
	}
	for name := range b.sessions {
		b.closeUnused(name)
	}
	b.release()
}

// others reports whether there are other clients than this one.
func others(clients map[uint64]bool, client uint64) bool {
	return len(clients) > 1 || len(clients) == 1 && !clients[client]
}

// opensElsewhere reports whether the agent has not yet answered another client's request to open a session.
func (b *broker) opensElsewhere(name string, client uint64) bool {
	for _, r := range b.requests {
		if r.reopens(name) && !r.replaying && b.clients[r.client] && r.client != client {
			return true
		}
	}
	return false
}

// fromClient takes a message of an attached client. It reports whether the message counts as use of the agent.
func (b *broker) fromClient(client uint64, line []byte) (uses bool) {
	f, ok := read(line)
	if !ok {
		return false
	}
	p := placeOf(f.Params)
	r, s := &request{client: client, id: f.ID, method: f.Method, session: p.Session, cwd: p.Cwd}, b.sessions[p.Session]
	switch {
	case f.Method == "":
		b.reply(client, f)
	case f.ID == nil:
		b.note(r, f, s)
	case f.Method == doInitialize:
		b.hello = f.Params
		if b.greeting != nil {
			b.answer(r, frame{Result: b.greetingNow()})
		} else {
			b.pass(r)
		}
		return false
	case f.Method == doAdopt:
		b.adopt(r)
		return false
	case f.Method == doPrompt:
		b.prompt(r, f)
	case f.Method == doClose && b.usedElsewhere(p.Session, client): // the agent would close it for the others too
		if s != nil {
			delete(s.openBy, client)
		}
		b.answer(r, frame{Result: raw(struct{}{})})
	case f.Method != doFork && s.heardElsewhere(client),
		(f.Method == doLoad || f.Method == doResume) && s != nil && s.turn.runs() && others(s.turn.clients, client):
		// Opening replays the history, which the others would take for new. To act in a prompt, a client adopts it.
		b.answer(r, frame{Error: busy("another client works in this session")})
	default:
		b.forward(r, f)
	}
	return f.Method != doList
}

// heardElsewhere reports whether a prompt runs in a session whose messages other clients get, and this one does not.
func (s *session) heardElsewhere(client uint64) bool {
	return s != nil && s.turn.runs() && len(s.turn.clients) > 0 && !s.turn.clients[client]
}

// usedElsewhere reports whether another client works in a session, has it open or is opening it.
func (b *broker) usedElsewhere(name string, client uint64) bool {
	s := b.sessions[name]
	return s != nil && (s.turn.runs() && others(s.turn.clients, client) || s.open && others(s.openBy, client)) ||
		b.opensElsewhere(name, client)
}

// prompt handles a client's prompt.
func (b *broker) prompt(r *request, f frame) {
	s := b.ensure(r.session)
	switch {
	case s.turn.runs():
		b.answer(r, frame{Error: busy("a prompt runs in this session already")})
		return
	case b.opensElsewhere(r.session, r.client): // the history would be taken for messages of the prompt
		b.answer(r, frame{Error: busy("another client opens this session")})
		return
	}
	if opener := b.opener(r.session); opener != nil && opener.replaying && opener.client == r.client {
		delete(b.requests, opener.agentID) // the client does not wait for the rest of the history
	}
	b.begin(r.session, s, r.client, promptTexts(f.Params))
	b.forward(r, f)
}

// reply handles a client's answer to a question of the agent. In a prompt, only its clients may answer; the first
// answer counts, and the other clients are told that the question is withdrawn.
func (b *broker) reply(client uint64, f frame) {
	i := slices.IndexFunc(b.questions, func(q question) bool { return string(q.id) == string(f.ID) })
	if i < 0 {
		return
	}
	s := b.sessions[b.questions[i].session]
	amid := s != nil && s.turn.runs()
	if amid && !s.turn.clients[client] {
		return
	}
	b.withdraw(f.ID)
	b.toAgent = append(b.toAgent, f.line())
	if !amid {
		return
	}
	for to := range s.turn.clients {
		if to != client {
			b.send(to, frame{Method: onWithdraw, Params: raw(map[string]any{"requestId": f.ID})}.line())
		}
	}
}

// note handles a notification of a client. What is a request otherwise would work without an outcome: it is dropped. A
// prompt that the agent has not got is stopped here.
func (b *broker) note(r *request, f frame, s *session) {
	asks := slices.Contains([]string{doInitialize, doPrompt, doLoad, doResume}, f.Method)
	if asks || s.heardElsewhere(r.client) {
		return
	}
	if f.Method == doCancel && s != nil && s.turn.runs() {
		s.turn.stopped = true
		waits := func(q *request) bool { return q.method == doPrompt && q.session == r.session }
		if i := slices.IndexFunc(b.queue, waits); i >= 0 {
			id := strconv.AppendInt(nil, b.queue[i].agentID, 10)
			b.queue = slices.Delete(b.queue, i, i+1)
			b.response(frame{ID: id, Result: json.RawMessage(`{"stopReason":"cancelled"}`)})
			return
		}
	}
	if r.line = f.line(); b.ready || len(b.queue) > 0 { // else there is nothing that it could be about
		b.pass(r)
	}
}

// forward sends or queues a request of a client to the agent, with an id of the mux's.
func (b *broker) forward(r *request, f frame) {
	b.lastID++
	r.agentID = b.lastID
	if r.session != "" && r.cwd != "" {
		b.ensure(r.session).cwd = r.cwd
	}
	b.requests[r.agentID] = r
	f.ID = strconv.AppendInt(nil, r.agentID, 10)
	r.line = f.line()
	b.pass(r)
}

// pass sends a message to the agent, or queues it until the agent can take it. If the queue is full, all that wait get
// an error.
func (b *broker) pass(r *request) {
	if b.accepts(r) {
		b.sendAgent(r)
		return
	}
	b.queue = append(b.queue, r)
	if len(b.queue) > maxQueued {
		b.fail("too much waits for the agent to start")
	}
}

// release sends the agent the queued messages that it can take now.
func (b *broker) release() {
	b.queue = slices.DeleteFunc(b.queue, func(r *request) bool {
		accepts := b.accepts(r)
		if accepts {
			b.sendAgent(r)
		}
		return accepts
	})
}

// sendAgent sends a message to the agent, and answers initialize in its place.
func (b *broker) sendAgent(r *request) {
	if r.method == doInitialize {
		b.answer(r, frame{Result: b.greetingNow()})
		return
	}
	b.toAgent = append(b.toAgent, r.line)
	if r.reopens(r.session) {
		b.alarms = append(b.alarms, alarm{r.agentID, openedBy})
	}
}

// accepts reports whether the agent can take a message now. A request that opens a session waits while the mux
// closes it, and while another request opens it, up to the end of its history: else both clients would get both
// histories. A prompt waits for that end too, or the history would be taken for messages of the prompt.
func (b *broker) accepts(r *request) bool {
	switch opener := b.opener(r.session); {
	case !b.ready:
		return false
	case r.reopens(r.session):
		return r == opener
	default:
		return r.method != doPrompt || opener == nil || !opener.replaying
	}
}

// opener returns the request that is opening a session, or will be the next to, or by which the mux closes it.
// nil: there is none. Its client may be gone: the agent answers all the same.
func (b *broker) opener(session string) (first *request) {
	for _, r := range b.requests {
		opens := r.reopens(session) || r.client == 0 && r.method == doClose && r.session == session
		if opens && (first == nil || r.agentID < first.agentID) {
			first = r
		}
	}
	return first
}

// reopens reports whether a request opens an existing session.
func (r *request) reopens(session string) bool {
	return session != "" && r.session == session && (r.method == doLoad || r.method == doResume)
}

// answer answers a request of a client, if the client is still attached.
func (b *broker) answer(r *request, f frame) {
	f.ID = r.id
	b.send(r.client, f.line())
}

// send sends a message to a client, if it is still attached.
func (b *broker) send(to uint64, line []byte) {
	if b.clients[to] {
		b.toClients = append(b.toClients, clientMessage{to, line})
	}
}

// route sends a message of the agent outside any prompt to the clients that it is for. While a client opens the
// session, the message is of the history, and only that client gets it. Else the client that worked in the session last
// gets it, if it has the session open; else all clients that have it open; else all clients.
func (b *broker) route(session string, line []byte) {
	to, s := b.clients, b.sessions[session]
	switch opener := b.opener(session); {
	case opener != nil:
		opener.replayed = opener.replaying
		b.send(opener.client, line)
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

package keeper

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
)

// How long other requests wait for one that the agent has not answered.
const (
	closedBy   = 5 * time.Second        // to close a session that no client has open
	openedBy   = 2 * time.Minute        // to open a session
	replayedBy = 500 * time.Millisecond // for each pause in a history that comes after the answer
)

// Bounds of the book.
const (
	maxRecorded       = 16 << 20 // bytes of the agent's messages of prompts
	maxEnded          = 64       // prompts that have ended
	maxQuestions      = 64       // requests of the agent that are not answered
	maxQueuedMessages = 256      // messages to an agent that is being started
)

// A book is the state of a keeper. Its methods take one message or event each. They put into toAgent, toClients and
// alarms what the keeper has to do. Calls must not overlap.
type book struct {
	clients    map[uint64]bool            // that are attached
	initParams json.RawMessage            // of the newest client's initialize: the agent is initialized with these
	initResult map[string]json.RawMessage // the agent's answer to initialize; nil: it has not answered yet
	closes     bool                       // the agent can close sessions
	running    bool                       // the agent was started and sent initialize
	ready      bool                       // the agent has answered initialize
	initFailed bool                       // the agent has answered initialize with an error
	leaving    bool                       // the agent is ended unused: new messages are for the next one
	lastID     int64                      // of the newest request to the agent
	waiting    map[int64]request          // requests to the agent that it has not answered
	sessions   sessions
	questions  map[string]agentRequest // requests of the agent that are not answered, by id
	queued     []queued                // messages that the agent cannot take yet

	toAgent   [][]byte
	toClients []clientMessage
	alarms    []alarm
}

// An alarm asks the keeper to call [book.due] for a request to the agent after a time.
type alarm struct {
	id    int64
	after time.Duration
}

// A clientMessage is a message to or from a client.
type clientMessage struct {
	client uint64
	line   []byte
}

// A request is one that the agent has not answered, or a session/load whose history may still come.
type request struct {
	client    uint64          // 0: the keeper's own
	id        json.RawMessage // the client's
	method    string
	session   string // ""
	cwd       string // ""
	late      bool   // it opens a session, and others wait for it no longer
	replaying bool   // it was answered, and the agent may go on with the history
	replayed  bool   // some of the history came since the last alarm
}

// An agentRequest is a request of the agent to its client.
type agentRequest struct{ method, session string }

// queued is a message that waits until the agent can take it.
type queued struct {
	request

	agentID int64 // its id to the agent; 0: it has none, as a notification
	line    []byte
}

func newBook(room int) *book {
	return &book{
		clients: map[uint64]bool{}, waiting: map[int64]request{}, questions: map[string]agentRequest{},
		sessions: sessions{limit: room, all: map[string]*session{}},
	}
}

// opened notes that the agent has the session open, and so has the client if it is attached.
func (b *book) opened(s *session, client uint64) {
	s.open = true
	if b.clients[client] {
		s.openBy[client], s.lastClient = true, client
	}
}

// unsend forgets a queued request that the agent never got.
func (b *book) unsend(h queued) {
	delete(b.waiting, h.agentID)
	if s := b.sessions.all[h.session]; s != nil && h.method == doPrompt {
		b.sessions.drop(s)
	}
}

// needsAgent reports whether the agent is needed and does not run.
func (b *book) needsAgent() bool { return !b.running && len(b.queued) > 0 }

// owesAnswer reports whether a client waits for an answer that the agent should give soon. Prompts do not count, since
// they take long, nor late requests, nor lists: these are polled, also from an agent that answers no more.
func (b *book) owesAnswer() bool {
	for _, r := range b.waiting {
		if b.clients[r.client] && r.method != doPrompt && r.method != doList && !r.late && !r.replaying {
			return true
		}
	}
	return slices.ContainsFunc(b.queued, func(h queued) bool { return h.method == doInitialize })
}

// started notes that the agent was started, and sends it initialize.
func (b *book) started() {
	b.running = true
	b.lastID++
	b.waiting[b.lastID] = request{method: doInitialize}
	b.toAgent = append(b.toAgent, frame{
		ID: strconv.AppendInt(nil, b.lastID, 10), Method: doInitialize, Params: b.initParams,
	}.line())
}

// fail answers all requests that wait for the agent to start with an error.
func (b *book) fail(why string) {
	for _, h := range b.queued {
		f := frame{Error: failure(codeFailed, why)}
		if s := b.sessions.all[h.session]; s != nil && s.turn != nil && h.method == doPrompt {
			s.turn.end = end{Session: h.session, Error: f.Error}
			b.tellAdopters(s.turn, h.request)
		}
		b.unsend(h)
		if h.id != nil {
			b.answer(h.request, f)
		}
	}
	b.queued = nil
}

// leave notes that the agent is being ended, since nobody used it. From here on it gets no requests.
func (b *book) leave() { b.ready, b.leaving = false, true }

// ended notes that the agent has ended, and with it all that ran in it. Requests queued for an agent that was ended
// unused are forgotten without an answer: the client loses its connection, finds no such prompt when it is back, and
// begins it again.
func (b *book) ended(why string) {
	if b.leaving {
		for _, h := range b.queued {
			b.unsend(h)
		}
		b.queued = nil
	}
	b.fail(why)
	for id, s := range b.sessions.all {
		s.open = false
		clear(s.openBy)
		if s.runs() {
			b.finish(id, s, end{Ended: why})
		}
		b.sessions.forget(id)
	}
	b.running, b.ready, b.initFailed, b.leaving = false, false, false, false
	clear(b.waiting)
	clear(b.questions)
}

// fromAgent takes a message of the agent. It reports whether the message counts as use of the agent.
func (b *book) fromAgent(line []byte) (works bool) {
	f, ok := read(line)
	if !ok {
		return false
	}
	if f.Method == "" {
		b.response(f)
		return true
	}
	p := placeOf(f.Params)
	s := b.sessions.all[p.Session]
	runs := s != nil && s.runs() && !b.waiting[b.opener(p.Session)].replaying // a prompt waits for the history's end
	switch {
	case f.ID != nil && (len(b.questions) >= maxQuestions || !runs && len(b.clients) == 0):
		b.refuse(f.ID, f.Method)
		return runs
	case f.ID != nil:
		b.questions[string(f.ID)] = agentRequest{f.Method, p.Session}
	case f.Method == onWithdraw:
		var w struct {
			ID json.RawMessage `json:"requestId"`
		}
		_ = json.Unmarshal(f.Params, &w) // without an id it withdraws nothing
		b.closeQuestion(string(w.ID))
		for to := range b.clients {
			b.send(to, line)
		}
		return false
	}
	if !runs {
		b.route(p.Session, line)
		return false
	}
	b.sessions.record(s, recorded{line: line, requestID: string(f.ID)})
	for to := range s.turn.clients {
		b.send(to, line)
	}
	return true
}

// tooLong handles an answer of the agent that was too long to be read: the client gets an error.
func (b *book) tooLong(id []byte) {
	b.response(frame{ID: id, Error: failure(codeFailed, servers.ErrLongFrame.Error())})
}

// response handles the agent's answer to a request.
func (b *book) response(f frame) {
	id, err := strconv.ParseInt(string(f.ID), 10, 64)
	r, known := b.waiting[id]
	if err != nil || !known || r.replaying {
		return
	}
	delete(b.waiting, id)
	name := r.session
	switch r.method {
	case doInitialize:
		b.greet(f)
		return
	case doNew, doFork:
		if name = placeOf(f.Result).Session; name != "" {
			s := b.sessions.ensure(name)
			s.cwd = r.cwd
			b.opened(s, r.client)
		}
	case doLoad, doResume:
		if f.Error == nil {
			s := b.sessions.ensure(name)
			b.opened(s, r.client)
			if r.method == doLoad && !s.runs() {
				r.replaying, r.late = true, false
				b.waiting[id] = r
				b.alarms = append(b.alarms, alarm{id, replayedBy})
			}
		}
		b.release()
	case doClose:
		if s := b.sessions.all[name]; s != nil {
			s.open = false
			clear(s.openBy)
		}
		b.release()
	case doPrompt:
		if s := b.sessions.all[name]; s != nil && s.runs() {
			t := s.turn
			t.reported = s.hasClient()
			b.finish(name, s, end{Result: f.Result, Error: f.Error}) // it may forget s.turn
			b.tellAdopters(t, r)
		}
	}
	if r.id != nil {
		b.answer(r, f)
	}
	b.closeUnused(name)
	b.sessions.forget(name)
}

// greet handles the agent's answer to initialize.
func (b *book) greet(f frame) {
	var result map[string]json.RawMessage
	if f.Error != nil || json.Unmarshal(f.Result, &result) != nil || result == nil {
		b.initFailed = true
		b.fail("its agent does not initialize: " + handoff.Clip(string(f.Error), 300))
		return
	}
	b.initResult, b.ready = result, true
	var can struct {
		Agent struct {
			Sessions struct {
				Close json.RawMessage `json:"close"`
			} `json:"sessionCapabilities"`
		} `json:"agentCapabilities"`
	}
	_ = json.Unmarshal(f.Result, &can) // without the capability it closes none
	does := string(can.Agent.Sessions.Close)
	b.closes = does != "" && does != "null" && does != "false"
	b.release()
}

// release sends the agent the queued messages that it can take now.
func (b *book) release() {
	b.queued = slices.DeleteFunc(b.queued, func(h queued) bool {
		accepts := b.accepts(h)
		if accepts {
			b.sendAgent(h)
		}
		return accepts
	})
}

// initAnswer returns the agent's answer to initialize as clients get it. Its _meta says that there is a keeper, and how
// many prompts and records the keeper has dropped.
func (b *book) initAnswer() json.RawMessage {
	var meta map[string]json.RawMessage
	_ = json.Unmarshal(b.initResult["_meta"], &meta) // it may be missing
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	meta["switchboard"] = raw(map[string]any{"keeps": true, "forgotten": b.sessions.forgotten, "gaps": b.sessions.gaps})
	result := maps.Clone(b.initResult)
	result["_meta"] = raw(meta)
	return raw(result)
}

// refuse answers a request of the agent that no client can answer.
func (b *book) refuse(id json.RawMessage, method string) {
	f := frame{ID: id}
	switch method {
	case onPermission:
		f.Result = json.RawMessage(`{"outcome":{"outcome":"cancelled"}}`)
	case onElicit:
		f.Result = json.RawMessage(`{"action":"cancel"}`)
	default:
		f.Error = failure(codeNoMethod, "not offered")
	}
	b.toAgent = append(b.toAgent, f.line())
}

// closeUnused closes a session in the agent if no client has it open, no prompt runs in it and no client waits for an
// answer about it: the agent would close it for that client too.
func (b *book) closeUnused(name string) {
	s := b.sessions.all[name]
	if s == nil || !s.open || s.runs() || len(s.openBy) > 0 || !b.closes || !b.ready || b.waitsFor(name) {
		return
	}
	s.open = false
	b.lastID++
	b.waiting[b.lastID] = request{method: doClose, session: name}
	b.alarms = append(b.alarms, alarm{b.lastID, closedBy})
	b.toAgent = append(b.toAgent, frame{
		ID: strconv.AppendInt(nil, b.lastID, 10), Method: doClose, Params: raw(map[string]string{"sessionId": name}),
	}.line())
}

// waitsFor reports whether a client waits for an answer about a session.
func (b *book) waitsFor(name string) bool {
	for _, r := range b.waiting {
		if b.clients[r.client] && r.session == name {
			return true
		}
	}
	return false
}

// closing reports whether the agent is closing a session for the keeper.
func (b *book) closing() bool {
	for _, r := range b.waiting {
		if r.client == 0 && r.method == doClose {
			return true
		}
	}
	return false
}

// due handles the end of a request's time: other requests wait for it no longer. A history that still came gets more
// time.
func (b *book) due(id int64) {
	r, waits := b.waiting[id]
	switch {
	case !waits:
		return
	case r.replayed:
		r.replayed = false
		b.waiting[id] = r
		b.alarms = append(b.alarms, alarm{id, replayedBy})
	case r.replaying:
		delete(b.waiting, id)
		b.closeUnused(r.session)
	case r.method == doClose:
		delete(b.waiting, id)
	default:
		r.late = true
		b.waiting[id] = r
	}
	b.release()
}

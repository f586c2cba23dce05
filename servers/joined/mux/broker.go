package mux

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

// Bounds of the broker.
const (
	maxRecorded  = 16 << 20 // bytes of the log
	maxQuestions = 64       // requests of the agent that are not answered
	maxQueued    = 256      // messages that the agent cannot take yet
)

// A broker is the state of a mux. Its methods take one message or event each. They put into toAgent, toClients and
// alarms what the mux has to do. Calls must not overlap.
type broker struct {
	clients   map[uint64]bool            // that are attached
	hello     json.RawMessage            // params of the newest client's initialize: the agent is initialized with these
	greeting  map[string]json.RawMessage // the agent's first answer to initialize; nil: it has not answered yet
	closes    bool                       // the agent can close sessions
	running   bool                       // the agent was started and sent initialize
	ready     bool                       // the agent has answered initialize
	unfit     bool                       // the agent has answered initialize with an error
	lastID    int64                      // of the newest request to the agent
	requests  map[int64]*request         // to the agent that it has not answered, by the id that it gets
	queue     []*request                 // messages that the agent cannot take yet, in order
	sessions  map[string]*session        // that the agent has open or that have a turn
	questions []question                 // requests of the agent that are not answered, in order
	log       log
	forgotten uint64 // turns that were forgotten for want of room
	gaps      uint64 // turns whose beginning was forgotten for want of room

	toAgent   [][]byte
	toClients []clientMessage
	alarms    []alarm
}

// An alarm asks the mux to call [broker.due] for a request to the agent after a time.
type alarm struct {
	id    int64
	after time.Duration
}

// A clientMessage is a message to a client.
type clientMessage struct {
	client uint64
	line   []byte
}

// A request is a message to the agent that it cannot take yet or has not answered, or a session/load whose history may
// still come.
type request struct {
	agentID int64           // its id to the agent; 0: it has none, as a notification and an initialize
	client  uint64          // 0: it is the mux's own
	id      json.RawMessage // the client's; nil: it is a notification
	method  string
	session string // ""
	cwd     string // ""
	line    []byte // what the agent gets

	replaying bool // it was answered, and the agent may go on with the history
	replayed  bool // some of the history came since the last alarm
}

// A question is a request of the agent to its client.
type question struct {
	id              json.RawMessage
	method, session string
	line            []byte
}

// A session is one that the agent has open or that has a turn.
type session struct {
	cwd        string
	open       bool            // in the agent
	openBy     map[uint64]bool // the attached clients that have it open
	lastClient uint64          // that opened it or sent it a prompt
	turn       *turn           // the newest one; nil: none is recorded
}

func newBroker(room int) *broker {
	return &broker{
		clients: map[uint64]bool{}, requests: map[int64]*request{}, sessions: map[string]*session{}, log: log{limit: room},
	}
}

// ensure returns the session of an id, and adds it if it is not known.
func (b *broker) ensure(name string) *session {
	s := b.sessions[name]
	if s == nil {
		s = &session{openBy: map[uint64]bool{}}
		b.sessions[name] = s
	}
	return s
}

// forget removes a session that is neither open nor has a turn.
func (b *broker) forget(name string) {
	if s := b.sessions[name]; s != nil && !s.open && s.turn == nil {
		delete(b.sessions, name)
	}
}

// opened notes that the agent has the session open, and so has the client if it is attached.
func (b *broker) opened(s *session, client uint64) {
	s.open = true
	if b.clients[client] {
		s.openBy[client], s.lastClient = true, client
	}
}

// asked returns the questions of the agent in a session.
func (b *broker) asked(session string) (all []question) {
	for _, q := range b.questions {
		if q.session == session {
			all = append(all, q)
		}
	}
	return all
}

// withdraw forgets the question of an id.
func (b *broker) withdraw(id json.RawMessage) {
	b.questions = slices.DeleteFunc(b.questions, func(q question) bool { return string(q.id) == string(id) })
}

// needsAgent reports whether the agent is needed and does not run.
func (b *broker) needsAgent() bool { return !b.running && len(b.queue) > 0 }

// owesAnswer reports whether a client waits for an answer that the agent should give soon. Prompts do not count, since
// they take long, nor lists: these are polled, also from an agent that answers no more.
func (b *broker) owesAnswer() bool {
	for _, r := range b.requests {
		if b.clients[r.client] && r.method != doPrompt && r.method != doList && !r.replaying {
			return true
		}
	}
	return slices.ContainsFunc(b.queue, func(r *request) bool { return r.method == doInitialize })
}

// started notes that the agent was started, and sends it initialize.
func (b *broker) started() {
	b.running = true
	b.own(&request{method: doInitialize}, b.hello)
}

// own sends the agent a request of the mux's own.
func (b *broker) own(r *request, params json.RawMessage) {
	b.lastID++
	r.agentID = b.lastID
	b.requests[r.agentID] = r
	b.toAgent = append(b.toAgent, frame{ID: strconv.AppendInt(nil, r.agentID, 10), Method: r.method, Params: params}.line())
}

// fail answers all requests that wait for the agent to start with an error.
func (b *broker) fail(why string) {
	queue := b.queue
	b.queue = nil
	f := frame{Error: failure(codeFailed, why)}
	for _, r := range queue {
		if s := b.sessions[r.session]; s != nil && r.method == doPrompt && s.turn.runs() {
			b.finish(s.turn, end{Error: f.Error})
			b.tellAdopters(s.turn, r)
		}
		b.unsend(r)
		if r.id != nil {
			b.answer(r, f)
		}
	}
}

// unsend forgets a message that the agent never got.
func (b *broker) unsend(r *request) {
	delete(b.requests, r.agentID)
	if s := b.sessions[r.session]; s != nil && r.method == doPrompt {
		s.turn = nil
		b.forget(r.session)
	}
}

// ended notes that the agent has ended or is being ended, and with it all that ran in it.
func (b *broker) ended(why string) {
	b.fail(why)
	for name, s := range b.sessions {
		s.open = false
		clear(s.openBy)
		if s.turn.runs() {
			b.finish(s.turn, end{Ended: why})
		}
		b.forget(name)
	}
	b.running, b.ready, b.unfit = false, false, false
	clear(b.requests)
	b.questions = nil
}

// fromAgent takes a message of the agent. It reports whether the message counts as use of the agent.
func (b *broker) fromAgent(line []byte) (works bool) {
	f, ok := read(line)
	if !ok {
		return false
	}
	if f.Method == "" {
		b.response(f)
		return true
	}
	name := placeOf(f.Params).Session
	s := b.sessions[name]
	opener := b.opener(name)
	runs := s != nil && s.turn.runs() && (opener == nil || !opener.replaying) // a prompt waits for the history's end
	if f.ID != nil {
		q := question{f.ID, f.Method, name, line}
		if len(b.questions) >= maxQuestions || !runs && len(b.clients) == 0 {
			b.refuse(q)
			return runs
		}
		b.withdraw(f.ID) // the newest of an id counts
		b.questions = append(b.questions, q)
	}
	switch {
	case f.ID == nil && f.Method == onWithdraw:
		var w struct {
			ID json.RawMessage `json:"requestId"`
		}
		_ = json.Unmarshal(f.Params, &w) // without an id it withdraws nothing
		b.withdraw(w.ID)
		for to := range b.clients {
			b.send(to, line)
		}
		return false
	case !runs:
		b.route(name, line)
		return false
	case f.ID == nil:
		b.record(entry{s.turn, said, line})
	}
	for to := range s.turn.clients {
		b.send(to, line)
	}
	return true
}

// tooLong handles an answer of the agent that was too long to be read: the client gets an error.
func (b *broker) tooLong(id []byte) {
	b.response(frame{ID: id, Error: failure(codeFailed, servers.ErrLongFrame.Error())})
}

// response handles the agent's answer to a request.
func (b *broker) response(f frame) {
	id, err := strconv.ParseInt(string(f.ID), 10, 64)
	r := b.requests[id]
	if err != nil || r == nil || r.replaying {
		return
	}
	delete(b.requests, id)
	switch r.method {
	case doInitialize:
		b.greet(f)
		return
	case doNew, doFork:
		if r.session = placeOf(f.Result).Session; r.session != "" {
			s := b.ensure(r.session)
			s.cwd = r.cwd
			b.opened(s, r.client)
		}
	case doLoad, doResume:
		if f.Error == nil {
			s := b.ensure(r.session)
			b.opened(s, r.client)
			if r.method == doLoad && !s.turn.runs() {
				r.replaying = true
				b.requests[id] = r
				b.alarms = append(b.alarms, alarm{id, replayedBy})
			}
		}
		b.release()
	case doClose:
		if s := b.sessions[r.session]; s != nil {
			s.open = false
			clear(s.openBy)
		}
		b.release()
	case doPrompt:
		if s := b.sessions[r.session]; s != nil && s.turn.runs() {
			t := s.turn
			t.reported = len(t.clients) > 0
			b.finish(t, end{Result: f.Result, Error: f.Error})
			b.tellAdopters(t, r)
		}
	}
	if r.id != nil {
		b.answer(r, f)
	}
	b.closeUnused(r.session)
	b.forget(r.session)
}

// greet handles the agent's answer to initialize.
func (b *broker) greet(f frame) {
	var greeting map[string]json.RawMessage
	if f.Error != nil || json.Unmarshal(f.Result, &greeting) != nil || greeting == nil {
		b.unfit = true
		b.fail("its agent does not initialize: " + handoff.Clip(string(f.Error), 300))
		return
	}
	b.greeting, b.ready = greeting, true
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

// greetingNow returns the agent's answer to initialize as clients get it. Its _meta says that there is a mux, and
// how many prompts the mux has forgotten, whole and in part.
func (b *broker) greetingNow() json.RawMessage {
	var meta map[string]json.RawMessage
	_ = json.Unmarshal(b.greeting["_meta"], &meta) // it may be missing
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	meta["switchboard"] = raw(map[string]any{"keeps": true, "forgotten": b.forgotten, "gaps": b.gaps})
	result := maps.Clone(b.greeting)
	result["_meta"] = raw(meta)
	return raw(result)
}

// refuse answers a question of the agent that no client can answer, and forgets it.
func (b *broker) refuse(q question) {
	b.withdraw(q.id)
	f := frame{ID: q.id}
	switch q.method {
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
func (b *broker) closeUnused(name string) {
	s := b.sessions[name]
	if s == nil || !s.open || s.turn.runs() || len(s.openBy) > 0 || !b.closes || !b.ready {
		return
	}
	for _, r := range b.requests {
		if b.clients[r.client] && r.session == name {
			return
		}
	}
	s.open = false
	b.own(&request{method: doClose, session: name}, raw(map[string]string{"sessionId": name}))
	b.alarms = append(b.alarms, alarm{b.lastID, closedBy})
}

// due handles the end of a request's time. A history that still came gets more; another request that opens a session
// fails, whatever the agent still answers.
func (b *broker) due(id int64) {
	r := b.requests[id]
	switch {
	case r == nil:
		return
	case r.replayed:
		r.replayed = false
		b.alarms = append(b.alarms, alarm{id, replayedBy})
		return
	}
	delete(b.requests, id)
	if !r.replaying && r.client != 0 {
		b.answer(r, frame{Error: failure(codeFailed, "its agent does not open the session")})
	}
	b.closeUnused(r.session)
	b.release()
}

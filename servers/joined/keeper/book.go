package keeper

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"switchboard/handoff"
)

// How long the agent may take for what others wait for; then they wait no longer.
const (
	closedBy   = 5 * time.Second        // to close a session that nobody has open
	openedBy   = 2 * time.Minute        // to open a session
	replayedBy = 500 * time.Millisecond // to go on with the history of a session once it is open: one agent answers first
)

// Bounds of what waits.
const (
	maxKept  = 16 << 20 // bytes of what the agent said of prompts
	maxEnded = 64       // prompts that were answered
	maxAsked = 64       // requests of the agent that nobody has answered
	maxHeld  = 256      // messages to an agent that is being started
)

// A book is what is known of the agent and of whoever is attached. Its methods take one message or event each, and
// leave in toAgent, toClients and alarms what is to be done then. It is owned by one goroutine.
type book struct {
	clients  map[uint64]bool            // who is attached
	hello    json.RawMessage            // what the agent is initialized with: the params of the newest initialize
	welcome  map[string]json.RawMessage // its answer; nil: it was not asked yet
	closes   bool                       // it can close sessions
	running  bool                       // it was started, and asked to initialize
	ready    bool                       // it has answered that
	unfit    bool                       // it has answered that with an error
	leaving  bool                       // it ends since nobody used it: what comes meanwhile is for the next one
	last     int64                      // id of the newest request to the agent
	waiting  map[int64]request
	sessions sessions
	asked    map[string]asked // requests of the agent that nobody has answered, by id
	greeted  []request        // those that ask to initialize, while there is no answer
	held     []held           // what the agent cannot be given yet

	toAgent   [][]byte
	toClients []letter
	alarms    []alarm
}

// An alarm asks for [book.due] of a request to the agent after a time.
type alarm struct {
	id    int64
	after time.Duration
}

// A letter is a message for a client.
type letter struct {
	to   uint64
	line []byte
}

// A request is one that the agent has not answered, or one to load a session whose history may still come.
type request struct {
	client  uint64 // 0: the keeper's own
	id      json.RawMessage
	method  string
	session string // that it is about; ""
	cwd     string // that it names; ""
	late    bool   // it opens a session, and the agent may never answer it
	replays bool   // it was answered
	heard   bool   // something of the history came since the last alarm
}

type asked struct{ method, session string }

type held struct {
	request

	own  int64 // its id to the agent
	line []byte
}

func newBook(room int) *book {
	return &book{
		clients: map[uint64]bool{}, waiting: map[int64]request{}, asked: map[string]asked{},
		sessions: sessions{most: room, all: map[string]*session{}},
	}
}

// opened notes that a client has the session open; 0: none of those that are attached.
func (b *book) opened(s *session, client uint64) {
	s.open = true
	if b.clients[client] {
		s.by[client], s.last = true, client
	}
}

// unsend takes back a request that the agent never got.
func (b *book) unsend(h held) {
	delete(b.waiting, h.own)
	if s := b.sessions.all[h.session]; s != nil && h.method == doPrompt {
		b.sessions.drop(s)
	}
}

// needs reports whether the agent is needed and does not run.
func (b *book) needs() bool { return !b.running && len(b.greeted)+len(b.held) > 0 }

// asks reports whether a client waits for an answer of the agent that comes at once, as those to prompts do not. A
// list does not count: it is asked for again and again, also of an agent that answers no more. Nor does what is late.
func (b *book) asks() bool {
	for _, r := range b.waiting {
		if b.clients[r.client] && r.method != doPrompt && r.method != doList && !r.late && !r.replays {
			return true
		}
	}
	return len(b.greeted) > 0
}

// began says that the agent was started.
func (b *book) began() {
	b.running = true
	b.last++
	b.waiting[b.last] = request{method: doInitialize}
	b.toAgent = append(b.toAgent, frame{
		ID: strconv.AppendInt(nil, b.last, 10), Method: doInitialize, Params: b.hello,
	}.line())
}

// fail says that the agent cannot be started: whoever waits for it is told so.
func (b *book) fail(why string) {
	for _, r := range b.greeted {
		b.answer(r, frame{Error: failure(codeFailed, why)})
	}
	for _, h := range b.held {
		f := frame{Error: failure(codeFailed, why)}
		if s := b.sessions.all[h.session]; s != nil && s.turn != nil && h.method == doPrompt {
			s.turn.end = end{Session: h.session, Error: f.Error}
			b.adopted(s.turn, h.request)
		}
		b.unsend(h)
		if h.id != nil {
			b.answer(h.request, f)
		}
	}
	b.greeted, b.held = nil, nil
}

// leave says that the agent is told to end, since nobody used it. What comes for it from here on it must not get.
func (b *book) leave() { b.ready, b.leaving = false, true }

// ended says that the agent has ended, and with it all that ran in it. What it never got is nowhere told as ended: the
// client loses its connection without an answer, finds no such prompt when it is back, and begins it in the next one.
func (b *book) ended(why string) {
	if b.leaving {
		for _, h := range b.held {
			b.unsend(h)
		}
		b.held = nil
	}
	b.fail(why)
	for id, s := range b.sessions.all {
		s.open = false
		clear(s.by)
		if s.runs() {
			b.finish(id, s, end{Ended: why})
		}
		b.sessions.forget(id)
	}
	b.running, b.ready, b.unfit, b.leaving = false, false, false, false
	clear(b.waiting)
	clear(b.asked)
}

// fromAgent takes a message of the agent. It reports whether that is work.
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
	runs := s != nil && s.runs() && !b.waiting[b.opener(p.Session)].replays // else its prompt waits
	switch {
	case f.ID != nil && (len(b.asked) >= maxAsked || !runs && len(b.clients) == 0):
		b.refuse(f.ID, f.Method)
		return runs
	case f.ID != nil:
		b.asked[string(f.ID)] = asked{f.Method, p.Session}
	case f.Method == onWithdraw:
		var w struct {
			ID json.RawMessage `json:"requestId"`
		}
		_ = json.Unmarshal(f.Params, &w) // without one it withdraws nothing
		b.settle(string(w.ID))
		for to := range b.clients {
			b.send(to, line)
		}
		return false
	}
	if !runs {
		b.tell(p.Session, line)
		return false
	}
	b.sessions.keep(s, said{line: line, ask: string(f.ID)})
	for to := range s.turn.clients {
		b.send(to, line)
	}
	return true
}

// tooLong takes that the agent's answer to a request was left out.
func (b *book) tooLong(id []byte) {
	b.response(frame{ID: id, Error: failure(codeFailed, "its answer was longer than 16 MiB")})
}

// response takes the agent's answer to a request.
func (b *book) response(f frame) {
	id, err := strconv.ParseInt(string(f.ID), 10, 64)
	r, known := b.waiting[id]
	if err != nil || !known || r.replays {
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
			s := b.sessions.named(name)
			s.cwd = r.cwd
			b.opened(s, r.client)
		}
	case doLoad, doResume:
		if f.Error == nil {
			s := b.sessions.named(name)
			b.opened(s, r.client)
			if r.method == doLoad && !s.runs() {
				r.replays, r.late = true, false
				b.waiting[id] = r
				b.alarms = append(b.alarms, alarm{id, replayedBy})
			}
		}
		b.release()
	case doClose:
		if s := b.sessions.all[name]; s != nil {
			s.open = false
			clear(s.by)
		}
		b.release()
	case doPrompt:
		if s := b.sessions.all[name]; s != nil && s.runs() {
			t := s.turn
			t.told = s.heard()
			b.finish(name, s, end{Result: f.Result, Error: f.Error}) // which may forget it
			b.adopted(t, r)
		}
	}
	if r.id != nil {
		b.answer(r, f)
	}
	b.tidy(name)
	b.sessions.forget(name)
}

// greet takes the agent's answer to initialize.
func (b *book) greet(f frame) {
	var result map[string]json.RawMessage
	if f.Error != nil || json.Unmarshal(f.Result, &result) != nil || result == nil {
		b.unfit = true
		b.fail("its agent does not initialize: " + handoff.Clip(string(f.Error), 300))
		return
	}
	b.welcome, b.ready = result, true
	var can struct {
		Agent struct {
			Sessions struct {
				Close json.RawMessage `json:"close"`
			} `json:"sessionCapabilities"`
		} `json:"agentCapabilities"`
	}
	_ = json.Unmarshal(f.Result, &can) // else it closes none
	does := string(can.Agent.Sessions.Close)
	b.closes = does != "" && does != "null" && does != "false"
	for _, r := range b.greeted {
		b.answer(r, frame{Result: b.welcomed()})
	}
	b.greeted = nil
	b.release()
}

// release sends what was held, as far as the agent can be given it now.
func (b *book) release() {
	b.held = slices.DeleteFunc(b.held, func(h held) bool {
		takes := b.takes(h)
		if takes {
			b.give(h)
		}
		return takes
	})
}

// welcomed is the agent's answer to initialize as clients get it: with what the keeper is, and has dropped so far.
func (b *book) welcomed() json.RawMessage {
	var meta map[string]json.RawMessage
	_ = json.Unmarshal(b.welcome["_meta"], &meta) // it may have none
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	meta["switchboard"] = raw(map[string]any{"keeps": true, "forgotten": b.sessions.forgotten, "gaps": b.sessions.gaps})
	result := maps.Clone(b.welcome)
	result["_meta"] = raw(meta)
	return raw(result)
}

// refuse says no to a request of the agent that nobody can answer.
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

// tidy closes a session in the agent that its clients have left open, once nothing runs in it and no other client is
// about to open it: the agent would close it for that one too.
func (b *book) tidy(name string) {
	s := b.sessions.all[name]
	if s == nil || !s.open || s.runs() || len(s.by) > 0 || !b.closes || !b.ready || b.wants(name) {
		return
	}
	s.open = false
	b.last++
	b.waiting[b.last] = request{method: doClose, session: name}
	b.alarms = append(b.alarms, alarm{b.last, closedBy})
	b.toAgent = append(b.toAgent, frame{
		ID: strconv.AppendInt(nil, b.last, 10), Method: doClose, Params: raw(map[string]string{"sessionId": name}),
	}.line())
}

// wants reports whether a client waits for an answer about a session.
func (b *book) wants(name string) bool {
	for _, r := range b.waiting {
		if b.clients[r.client] && r.session == name {
			return true
		}
	}
	return false
}

// closing reports whether the agent closes a session for the keeper.
func (b *book) closing() bool {
	for _, r := range b.waiting {
		if r.client == 0 && r.method == doClose {
			return true
		}
	}
	return false
}

// due says that the time of a request is over: others wait for it no longer.
func (b *book) due(id int64) {
	r, waits := b.waiting[id]
	switch {
	case !waits:
		return
	case r.heard:
		r.heard = false
		b.waiting[id] = r
		b.alarms = append(b.alarms, alarm{id, replayedBy})
	case r.replays:
		delete(b.waiting, id)
		b.tidy(r.session)
	case r.method == doClose:
		delete(b.waiting, id)
	default:
		r.late = true
		b.waiting[id] = r
	}
	b.release()
}

package host

import (
	"cmp"
	"encoding/json"
	"sync"
)

// places are the sessions of an agent, as far as this process has learnt of them. They are safe for concurrent use.
type places struct {
	mu  sync.Mutex
	all map[string]place // Guarded by mu: by session, at most maxThreads
}

func newPlaces() *places { return &places{all: map[string]place{}} }

// A place is what is known of a session.
type place struct {
	cwd    string
	away   error  // why it may be neither used nor read: its directory is not known, or not allowed; nil: it may
	mode   string // its mode, or of Codex its sandbox; "": not known
	option string // id of the config option that stands for the mode, of an agent without modes; "": none is known
	open   bool   // of Codex: this connection has opened it
	opens  bool   // it is being opened, and only the answer to that tells its mode
}

func (p *places) get(session string) place {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, known := p.all[session]
	if !known {
		one.away = errUnknown
	}
	return one
}

// learn changes what is known of a session. Beyond maxThreads sessions it learns of no other, and no work may begin in
// sessions that are not known.
func (p *places) learn(session string, change func(*place)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, known := p.all[session]
	if session == "" || !known && len(p.all) >= maxThreads {
		return
	}
	if !known {
		one.away = errUnknown
	}
	change(&one)
	p.all[session] = one
}

// bounded reports whether the owner allows certain directories only.
func (g *gate) bounded() bool { return len(g.policy.Dirs) > 0 }

// mayBeSeen returns why a session may be neither used nor read; nil: it may.
func (g *gate) mayBeSeen(session string) error {
	if !g.bounded() || session == "" {
		return nil
	}
	return g.sessions.get(session).away
}

// locate learns the directory of a session, and returns why it may be neither used nor read; nil: it may.
func (g *gate) locate(session, cwd string) error {
	why := g.policy.mayBeIn(cwd)
	g.sessions.learn(session, func(at *place) { at.cwd, at.away = cwd, why })
	return why
}

// begin remembers a request that was judged. An agent may do at once what it was asked, in any order.
func (g *gate) begin(id string, c call) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	opens := c.opens(g)
	for other, waits := range g.pending {
		if waits.session == c.session && (opens || waits.opens(g)) {
			waits.unsure, c.unsure = waits.unsure || opens, c.unsure || waits.opens(g)
			g.pending[other] = waits
		}
	}
	err := g.pending.add(id, c)
	if err == nil && opens {
		g.sessions.learn(c.session, func(at *place) { at.mode, at.option, at.opens = "", "", true })
	}
	return err
}

// take returns what is remembered of a request, and forgets it. The last of several openings of a session is the sure
// one.
func (g *gate) take(id string) (c call, waits bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, waits = g.pending.take(id)
	if !waits || !c.opens(g) {
		return c, waits
	}
	c.unsure = false
	for _, other := range g.pending {
		c.unsure = c.unsure || other.session == c.session && other.opens(g)
	}
	if !c.unsure {
		g.sessions.learn(c.session, func(at *place) { at.opens = false })
	}
	return c, true
}

// fromAgent judges a message of the agent, and learns from it about sessions and questions. It returns what the service
// gets, or the gate's own answer to the agent, or neither.
func (g *gate) fromAgent(data []byte) (passes, answer []byte) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(data, &m) != nil {
		return nil, nil // its session is not known
	}
	if m.Method != "" {
		return g.said(m.ID, m.Method, m.Params, data)
	}
	c, waits := g.take(string(m.ID))
	switch {
	case !waits:
		return nil, nil // its session is not known
	case m.Error != nil:
		return withHolder(m.ID, m.Error.Message, data), nil
	}
	return g.answered(c, m.ID, m.Result, data), nil
}

// said judges a notification or request of the agent.
func (g *gate) said(id json.RawMessage, method string, params json.RawMessage, data []byte) (passes, answer []byte) {
	var p struct {
		asking

		Session string          `json:"sessionId"`
		ID      string          `json:"threadId"`
		Thread  wireThread      `json:"thread"`
		Cwd     string          `json:"cwd"`
		Request json.RawMessage `json:"requestId"`
		Update  struct {
			Mode    string         `json:"currentModeId"`
			Options []configOption `json:"configOptions"`
		} `json:"update"`
	}
	_ = json.Unmarshal(params, &p) // missing params are zero
	session := cmp.Or(p.Thread.ID, p.ID, p.Session)
	switch {
	case p.Thread.ID != "":
		_ = g.locate(session, p.Thread.Cwd) // it is looked up below
	case method == "_switchboard/prompted" && p.Cwd != "":
		_ = g.locate(session, p.Cwd)
	case method == "serverRequest/resolved" || method == "$/cancel_request":
		g.mu.Lock()
		g.asked.take(string(p.Request))
		g.mu.Unlock()
	case !g.setting.listens() && !g.apart: // a session of a process apart has a mode of its own
		g.learnMode(session, p.Update.Mode, p.Update.Options)
	}
	sees := g.mayBeSeen(session) == nil
	if id == nil || string(id) == "null" {
		if !sees {
			return nil, nil
		}
		return data, nil
	}
	return g.question(id, method, p.asking, sees, data)
}

// question remembers a question of the agent that the service sees, and answers others itself.
func (g *gate) question(id json.RawMessage, method string, p asking, sees bool, data []byte) (passes, answer []byte) {
	q, shared := questionOf(method, p), g.setting.listens()
	if !sees && shared {
		return nil, nil // other programs have that session too
	}
	if q == nil && !shared { // the service offers the agent neither files nor terminals
		return nil, failed(id, codeNoMethod, "not offered")
	}
	g.mu.Lock()
	delete(g.asked, string(id))
	full := g.asked.add(string(id), q)
	g.mu.Unlock()
	switch {
	case !sees || full != nil:
		return nil, q.no(id)
	case q == nil:
		return data, nil
	case shared:
		return g.policy.marked(data, "_switchboard"), nil
	}
	return g.policy.marked(data, "_meta", "switchboard"), nil
}

// configOption is a setting of a session on the wire.
type configOption struct {
	ID       string          `json:"id"`
	Category string          `json:"category"`
	Current  json.RawMessage `json:"currentValue"`
}

// learnMode learns the mode of a session from what the agent sent of its modes and config options, unless the session
// is being opened.
func (g *gate) learnMode(session, mode string, options []configOption) {
	if mode == "" && len(options) == 0 {
		return
	}
	g.sessions.learn(session, func(at *place) {
		if at.opens {
			return
		}
		if mode != "" {
			at.mode = mode
		}
		for _, o := range options {
			if o.Category == "mode" && (at.option == "" || at.option == o.ID) {
				at.option, at.mode = o.ID, ""
				_ = json.Unmarshal(o.Current, &at.mode) // the mode is unknown if this fails
			}
		}
	})
}

// wireThread is a Codex thread and its directory on the wire.
type wireThread struct{ ID, Cwd string }

// answered learns about sessions from an answer of the agent, and returns what the service gets of it.
func (g *gate) answered(c call, id, is json.RawMessage, data []byte) []byte {
	var r struct {
		Thread  wireThread            `json:"thread"`
		Sandbox struct{ Type string } `json:"sandbox"`
		Session string                `json:"sessionId"`
		Cwd     string                `json:"cwd"`
		Modes   struct {
			Current string `json:"currentModeId"`
		} `json:"modes"`
		Options []configOption `json:"configOptions"`
	}
	_ = json.Unmarshal(is, &r) // missing fields are zero
	if r.Thread.ID != "" {
		if why := g.locate(r.Thread.ID, cmp.Or(r.Cwd, r.Thread.Cwd)); why != nil {
			return refusal(id, why)
		}
	}
	if r.Modes.Current != "" { // an agent that has modes has no option in their place
		r.Options = nil
	}
	switch c.method {
	case "initialize":
		g.process.keepGreeting(is)
	case "thread/list":
		return g.listed(id, is, "data", data)
	case "session/list":
		return g.listed(id, is, "sessions", data)
	case "thread/start", "thread/resume", "thread/fork":
		g.sessions.learn(r.Thread.ID, func(at *place) {
			if at.open = true; !at.opens {
				at.mode = r.Sandbox.Type
			}
		})
	case "session/new", "session/fork":
		_ = g.locate(r.Session, c.cwd) // it is allowed
		g.learnMode(r.Session, r.Modes.Current, r.Options)
	case "session/load", "session/resume":
		if !g.apart && !c.unsure {
			g.learnMode(c.session, r.Modes.Current, r.Options)
		}
	case "session/set_mode":
		if !c.unsure {
			g.learnMode(c.session, c.mode, nil)
		}
	case "session/set_config_option":
		if !c.unsure {
			g.learnMode(c.session, "", r.Options)
		}
	}
	return data
}

// listed returns the answer with a list of sessions, without those that may not be seen.
func (g *gate) listed(id, is json.RawMessage, field string, data []byte) []byte {
	var r object
	var all []json.RawMessage
	if !g.bounded() {
		return data
	}
	if json.Unmarshal(is, &r) != nil || r == nil {
		r = object{}
	}
	_ = json.Unmarshal(r[field], &all) // what is no list is left out
	visible := []json.RawMessage{}
	for _, one := range all {
		var s struct {
			Thread  string `json:"id"`
			Session string `json:"sessionId"`
			Cwd     string `json:"cwd"`
		}
		_ = json.Unmarshal(one, &s) // without a directory it is left out
		if g.locate(cmp.Or(s.Thread, s.Session), s.Cwd) == nil {
			visible = append(visible, one)
		}
	}
	r.set(field, visible)
	return result(id, r)
}

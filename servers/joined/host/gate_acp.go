package host

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"switchboard/servers"
)

// methodsACP are the methods of the Agent Client Protocol that may be called, with their parameters. Set once.
var methodsACP = map[string][]string{
	"initialize":                {"protocolVersion", "clientCapabilities", "clientInfo"},
	"session/new":               {"cwd", "mcpServers"},
	"session/load":              {"sessionId", "cwd", "mcpServers"},
	"session/resume":            {"sessionId", "cwd", "mcpServers"},
	"session/fork":              {"sessionId", "cwd", "mcpServers"},
	"session/list":              {"cwd", "cursor"},
	"session/close":             {"sessionId"},
	"session/set_mode":          {"sessionId", "modeId"},
	"session/set_config_option": {"sessionId", "configId", "value"},
	"session/prompt":            {"sessionId", "prompt", "_meta"},
	"session/cancel":            {"sessionId"},
	"_session/steering":         {"sessionId", "prompt", "_meta"},
	"_switchboard/adopt":        {"sessionId"},
}

// readingACP are the methods that a connection may call which only reads. Set once.
var readingACP = []string{"initialize", "session/list", "session/load"}

// cautious are the modes in which an agent only reads, or asks before it does anything else. In moderate modes it also
// changes files without asking. Set once.
var (
	cautious = []string{"default", "read-only", "ask", "plan"}
	moderate = []string{"acceptEdits", "workspace-write", "autoEdit"}
)

// steersIdle is the only _meta that a message to a running turn may have.
const steersIdle = `{"steering":{"idleBehavior":"promptRequired"}}`

var errQuestion = errors.New("nothing was asked")

// places are the directories and modes of an agent's sessions, as far as this process has learnt them. They are safe
// for concurrent use.
type places struct {
	mu  sync.Mutex
	all map[string]place // Guarded by mu: by session, at most maxThreads
}

// A place is the directory and the mode of a session.
type place struct {
	cwd, mode string // "": not known
	option    string // id of the config option that stands for the mode, of an agent without modes; "": none is known
}

func (p *places) get(session string) place {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[session]
}

// learn changes what is known of a session. Beyond maxThreads sessions it learns of no other, and gates refuse work in
// sessions that are not known.
func (p *places) learn(session string, change func(*place)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, known := p.all[session]
	if session == "" || !known && len(p.all) >= maxThreads {
		return
	}
	change(&one)
	p.all[session] = one
}

// acpGate stands between the service and an agent of the Agent Client Protocol, and passes only the listed methods.
type acpGate struct {
	policy  Policy  // Set once
	setting Setting // Set once
	apart   bool    // Set once: the connection only reads
	places  *places // Set once: of the agent, shared with its other connections

	mu        sync.Mutex
	pending   waiting[pendingCall] // Guarded by mu: requests of the service that are not answered, by id
	questions map[string]options   // Guarded by mu: requests of the agent that are not answered, by id
}

// pendingCall is a request that the agent has not answered.
type pendingCall struct{ method, session, cwd, mode string }

// options are the choices that a request for permission offers; nil: the request is another one.
type options []option

type option struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"` // allow_once, allow_always, reject_once, reject_always
}

// pick returns the id of the option that stands for the chosen one; "": the choice is not allowed. Every reject option
// is allowed, others only if yes is set. allow_always becomes allow_once, since it may also loosen the session's mode.
func (o options) pick(chosen string, yes bool) string {
	i := slices.IndexFunc(o, func(o option) bool { return o.ID == chosen })
	if i >= 0 && yes && o[i].Kind == "allow_always" {
		i = slices.IndexFunc(o, func(o option) bool { return o.Kind == "allow_once" })
	}
	if i >= 0 && (yes && o[i].Kind == "allow_once" || strings.HasPrefix(o[i].Kind, "reject_")) {
		return o[i].ID
	}
	return ""
}

// fromService judges a message to the agent, and returns what the agent gets. An error says why the message does not
// pass, and is the answer to the request id; nil: it is no request.
func (g *acpGate) fromService(data []byte) (passes []byte, id json.RawMessage, err error) {
	var message object
	if json.Unmarshal(data, &message) != nil {
		return nil, nil, errMethod
	}
	id = message["id"]
	for name := range message {
		if !slices.Contains(fields, name) {
			return nil, id, errMethod
		}
	}
	if _, calls := message["method"]; !calls {
		err = g.answers(string(id), message)
		id = nil // an answer is not answered
	} else {
		err = g.judge(message)
	}
	if err != nil {
		return nil, id, err
	}
	passes, _ = json.Marshal(message) // what was decoded can be encoded
	return passes, id, nil
}

// judge judges a request or notification of the service, and puts its params back as they were decoded.
func (g *acpGate) judge(message object) error {
	method := message.text("method")
	known, ok := methodsACP[method]
	if !ok || g.apart && !slices.Contains(readingACP, method) || message["result"] != nil || message["error"] != nil {
		return errMethod
	}
	var params object
	if json.Unmarshal(message["params"], &params) != nil {
		return errMethod
	}
	for name := range params {
		if !slices.Contains(known, name) {
			return errMethod
		}
	}
	c := pendingCall{method: method, session: params.text("sessionId"), cwd: params.text("cwd")}
	for _, name := range []string{"sessionId", "cwd", "modeId", "configId"} {
		if _, given := params[name]; given && params.text(name) == "" {
			return errMethod
		}
	}
	if err := g.mayCall(&c, params); err != nil {
		return err
	}
	message.set("params", params)
	g.mu.Lock()
	err := g.pending.add(string(message["id"]), c)
	g.mu.Unlock()
	if err != nil {
		return err
	}
	if (method == "session/load" || method == "session/resume") && !g.apart {
		g.places.learn(c.session, func(at *place) { *at = place{cwd: at.cwd} }) // the answer tells the new mode
	}
	return nil
}

// waiting are requests that are not answered, by id: at most maxWatched. V is what a gate remembers of each.
type waiting[V any] map[string]V

// add remembers a request. It ignores notifications, which have no id.
func (w waiting[V]) add(id string, about V) error {
	if id == "" || id == "null" {
		return nil
	}
	switch _, waits := w[id]; {
	case waits:
		return errTwice
	case len(w) >= maxWatched:
		return errFull
	}
	w[id] = about
	return nil
}

// mayCall judges the parameters of a method that may be called.
func (g *acpGate) mayCall(c *pendingCall, params object) error {
	at := g.places.get(c.session)
	switch c.method {
	case "session/new", "session/load", "session/resume", "session/fork":
		// An MCP server would start programs.
		if servers := strings.Join(strings.Fields(string(params["mcpServers"])), ""); servers != "[]" {
			return errMethod
		}
		if c.method != "session/new" {
			if err := g.mayBeIn(at); err != nil {
				return err
			}
		}
		return g.policy.mayBeIn(c.cwd)
	case "session/set_mode":
		c.mode = params.text("modeId")
		return g.mayRun(at, c.mode)
	case "session/set_config_option":
		if at.option == "" || params.text("configId") != at.option {
			return errMethod
		}
		return g.mayRun(at, params.text("value"))
	case "session/prompt", "_session/steering":
		if err := judgePrompt(c.method, params); err != nil {
			return err
		}
		return g.mayRun(at, at.mode)
	case "session/close", "session/cancel":
		return g.mayBeIn(at)
	}
	return nil
}

// judgePrompt judges the params of a message to the agent, and puts its blocks back as they were decoded.
func judgePrompt(method string, params object) error {
	if method == "session/prompt" {
		if err := params.judgeTrace("_meta"); err != nil {
			return err
		}
	} else if meta, given := params["_meta"]; given && string(meta) != steersIdle { // our encoder writes no spaces
		return errMethod
	}
	var prompt []object
	if json.Unmarshal(params["prompt"], &prompt) != nil {
		return errMethod
	}
	for _, block := range prompt {
		kind := block.text("type")
		want := map[string][]string{"text": {"type", "text"}, "image": {"type", "mimeType", "data"}}[kind]
		for name := range block {
			if !slices.Contains(want, name) { // other blocks and fields name files of this machine
				return errMethod
			}
		}
	}
	params.set("prompt", prompt)
	return nil
}

// mayBeIn returns why a session may be neither used nor read: its directory is not allowed, or not known. nil: it may.
func (g *acpGate) mayBeIn(at place) error {
	if len(g.policy.Dirs) == 0 {
		return nil
	}
	if at.cwd == "" {
		return errUnknown
	}
	return g.policy.mayBeIn(at.cwd)
}

// mayRun returns why a session may not work in a mode; nil: it may.
func (g *acpGate) mayRun(at place, mode string) error {
	if err := g.mayBeIn(at); err != nil {
		return err
	}
	switch {
	case g.policy.Ceiling == "", g.policy.Ceiling == "danger-full-access", mode != "" && mode == g.setting.Mode,
		slices.Contains(cautious, mode), g.policy.Ceiling == "workspace-write" && slices.Contains(moderate, mode):
		return nil
	}
	return errLooser
}

// answers judges an answer to a question of the agent. Each question is answered once. Where a yes may hold only once,
// one for good becomes that. Where none may pass, a yes becomes a no.
func (g *acpGate) answers(id string, message object) error {
	g.mu.Lock()
	may, known := g.questions[id]
	delete(g.questions, id)
	g.mu.Unlock()
	if !known {
		return errQuestion
	}
	raw, given := message["result"]
	most := g.policy.answers()
	if !given || most == servers.AnswersAll || most == servers.AnswersOnce && may == nil {
		return nil
	}
	var result, outcome object
	_ = json.Unmarshal(raw, &result) // an answer that cannot be read picks nothing
	_ = json.Unmarshal(result["outcome"], &outcome)
	picked := ""
	if outcome.text("outcome") == "selected" {
		picked = may.pick(outcome.text("optionId"), most == servers.AnswersOnce)
	}
	switch {
	case picked != "":
		message.set("result", map[string]any{"outcome": map[string]string{"outcome": "selected", "optionId": picked}})
	case may != nil:
		message.set("result", map[string]any{"outcome": map[string]string{"outcome": "cancelled"}})
	case result.text("action") == "decline":
		message.set("result", map[string]string{"action": "decline"})
	default:
		message.set("result", map[string]string{"action": "cancel"})
	}
	return nil
}

// fromAgent judges a message of the agent. It returns what the service gets, or the gate's own answer to the agent, or
// neither.
func (g *acpGate) fromAgent(data []byte) (passes, answer []byte) {
	var f struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &f) != nil {
		return nil, nil
	}
	if f.Method == "" {
		return g.response(string(f.ID), f.Result, data), nil
	}
	var p struct {
		Session string          `json:"sessionId"`
		Cwd     string          `json:"cwd"`
		Options options         `json:"options"`
		Request json.RawMessage `json:"requestId"`
		Update  struct {
			Mode    string         `json:"currentModeId"`
			Options []configOption `json:"configOptions"`
		} `json:"update"`
	}
	_ = json.Unmarshal(f.Params, &p) // missing params are zero
	if f.Method == "_switchboard/prompted" && p.Cwd != "" {
		g.places.learn(p.Session, func(at *place) { at.cwd = p.Cwd })
	}
	allowed := p.Session == "" || g.mayBeIn(g.places.get(p.Session)) == nil
	if f.ID == nil || string(f.ID) == "null" {
		if !g.apart { // a session of a process apart has a mode of its own
			g.places.learnMode(p.Session, p.Update.Mode, p.Update.Options)
		}
		if f.Method == "$/cancel_request" {
			g.mu.Lock()
			delete(g.questions, string(p.Request))
			g.mu.Unlock()
		}
		if !allowed {
			return nil, nil
		}
		return data, nil
	}
	var may options
	switch f.Method {
	case "session/request_permission":
		may = append(options{}, p.Options...)
	case "elicitation/create":
	default: // the client offers the agent neither files nor terminals
		answer, _ = json.Marshal(map[string]any{"jsonrpc": "2.0", "id": f.ID, "error": map[string]any{
			"code": -32601, "message": "not offered",
		}})
		return nil, answer
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !allowed || len(g.questions) >= maxWatched {
		result := map[string]any{"outcome": map[string]string{"outcome": "cancelled"}}
		if may == nil {
			result = map[string]any{"action": "cancel"}
		}
		answer, _ = json.Marshal(map[string]any{"jsonrpc": "2.0", "id": f.ID, "result": result})
		return nil, answer
	}
	g.questions[string(f.ID)] = may
	return g.policy.marked(data, "_meta", "switchboard"), nil
}

// configOption is a setting of a session on the wire.
type configOption struct {
	ID       string          `json:"id"`
	Category string          `json:"category"`
	Current  json.RawMessage `json:"currentValue"`
}

// learnMode stores the mode of a session from what the agent sent of its modes and config options.
func (p *places) learnMode(session, mode string, options []configOption) {
	if mode == "" && len(options) == 0 {
		return
	}
	p.learn(session, func(at *place) {
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

// response learns about sessions from an answer of the agent, and returns what the service gets of it; nil: nothing. A
// list loses the sessions that may not be seen.
func (g *acpGate) response(id string, result json.RawMessage, data []byte) []byte {
	g.mu.Lock()
	c, known := g.pending[id]
	delete(g.pending, id)
	g.mu.Unlock()
	switch {
	case !known:
		return nil // its session is not known
	case result == nil:
		return data
	}
	var r struct {
		Session string `json:"sessionId"`
		Modes   struct {
			Current string `json:"currentModeId"`
		} `json:"modes"`
		Options []configOption `json:"configOptions"`
	}
	_ = json.Unmarshal(result, &r) // missing fields are zero
	switch c.method {
	case "session/new", "session/fork":
		g.places.learn(r.Session, func(at *place) { *at = place{cwd: c.cwd} })
		g.places.learnMode(r.Session, r.Modes.Current, withoutModes(r.Modes.Current, r.Options))
	case "session/load", "session/resume":
		if g.apart { // a session of a process apart has a mode of its own
			break
		}
		g.places.learn(c.session, func(at *place) { *at = place{cwd: at.cwd} })
		g.places.learnMode(c.session, r.Modes.Current, withoutModes(r.Modes.Current, r.Options))
	case "session/set_mode":
		g.places.learn(c.session, func(at *place) { at.mode = c.mode })
	case "session/set_config_option":
		g.places.learnMode(c.session, "", r.Options)
	case "session/list":
		return g.listed(id, result)
	}
	return data
}

// withoutModes returns the config options, or none for an agent that has modes.
func withoutModes(mode string, options []configOption) []configOption {
	if mode != "" {
		return nil
	}
	return options
}

// listed returns the answer to session/list without the sessions that may not be seen.
func (g *acpGate) listed(id string, result json.RawMessage) []byte {
	var r object
	var all []json.RawMessage
	_ = json.Unmarshal(result, &r)
	_ = json.Unmarshal(r["sessions"], &all)
	seen := []json.RawMessage{}
	for _, one := range all {
		var s struct {
			Session string `json:"sessionId"`
			Cwd     string `json:"cwd"`
		}
		_ = json.Unmarshal(one, &s)
		if g.mayBeIn(place{cwd: s.Cwd}) != nil {
			continue
		}
		g.places.learn(s.Session, func(at *place) { at.cwd = s.Cwd })
		seen = append(seen, one)
	}
	r = maps.Clone(r)
	if r == nil {
		r = object{}
	}
	r.set("sessions", seen)
	data, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "result": r})
	return data
}

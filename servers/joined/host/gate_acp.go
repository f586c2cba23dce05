package host

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
)

// passesACP are the methods of the Agent Client Protocol that may be called, with their parameters. Set once.
var passesACP = map[string][]string{
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

// readsACP are those of them that a connection needs which only reads. Set once.
var readsACP = []string{"initialize", "session/list", "session/load"}

// cautious are the modes in which an agent asks before it does anything but read, or cannot do it, and moderate those
// in which it also changes files. Set once.
var (
	cautious = []string{"default", "read-only", "ask", "plan"}
	moderate = []string{"acceptEdits", "workspace-write", "autoEdit"}
)

// steersIdle is the only thing that may be said beside words for a turn that runs.
const steersIdle = `{"steering":{"idleBehavior":"promptRequired"}}`

var errQuestion = errors.New("nothing was asked")

// places are what is known of the sessions of an agent, for as long as this process lives. They are safe for concurrent
// use.
type places struct {
	mu  sync.Mutex
	all map[string]place // Guarded by mu: by session, at most maxThreads
}

// A place is where a session is, and what it may do there.
type place struct {
	cwd, mode string // "": not known
	option    string // the setting that is its mode, where it has no modes; ""
}

func (p *places) get(session string) place {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[session]
}

// learn changes what is known of a session. Beyond the bound nothing more is learned, and nothing may be done there.
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

// acpGate stands between the service and an agent of the Agent Client Protocol, and passes what is on a short list.
type acpGate struct {
	policy  Policy
	setting Setting
	apart   bool    // the connection only reads
	places  *places // of the agent

	mu      sync.Mutex
	watched waiting[called]    // Guarded by mu: requests whose answer tells something, by id
	asked   map[string]options // Guarded by mu: requests of the agent that were not answered, by id
}

// called is a request that the agent has not answered.
type called struct{ method, session, cwd, mode string }

// options are those of a request for permission; nil: it is another request.
type options []option

type option struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"` // allow_once, allow_always, reject_once, reject_always
}

// pick returns the option that counts where one was chosen; "": none does. A no always counts. A yes for good is one
// for this time, since options of that kind also put the session in a looser mode.
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

// fromService judges a message to the agent, and returns it as it passes; nil: it does not. An error says why not; then
// id is that of the request that is answered with it, if any.
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
		id = nil // nobody waits for what becomes of an answer
	} else {
		err = g.judge(message)
	}
	if err != nil {
		return nil, id, err
	}
	passes, _ = json.Marshal(message) // what was decoded can be encoded
	return passes, id, nil
}

// judge judges a request or notification of the service, and writes into it what it has read of its params.
func (g *acpGate) judge(message object) error {
	method := message.text("method")
	known, ok := passesACP[method]
	if !ok || g.apart && !slices.Contains(readsACP, method) || message["result"] != nil || message["error"] != nil {
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
	c := called{method: method, session: params.text("sessionId"), cwd: params.text("cwd")}
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
	err := g.watched.add(string(message["id"]), c)
	g.mu.Unlock()
	if err != nil {
		return err
	}
	if (method == "session/load" || method == "session/resume") && !g.apart {
		g.places.learn(c.session, func(at *place) { *at = place{cwd: at.cwd} }) // its answer tells in which mode it is then
	}
	return nil
}

// waiting are requests whose answer is waited for, by id, with what a gate knows of each: at most maxWatched.
type waiting[V any] map[string]V

// add remembers a request. A message without an id is none.
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
func (g *acpGate) mayCall(c *called, params object) error {
	at := g.places.get(c.session)
	switch c.method {
	case "session/new", "session/load", "session/resume", "session/fork":
		// Any server of MCP would start programs.
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

// judgePrompt judges words for an agent, and writes into params what it has read of them.
func judgePrompt(method string, params object) error {
	if method == "session/prompt" {
		if err := params.judgeTrace("_meta"); err != nil {
			return err
		}
	} else if meta, given := params["_meta"]; given && string(meta) != steersIdle { // which no encoder of ours spaces
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
			if !slices.Contains(want, name) { // others name files of this machine
				return errMethod
			}
		}
	}
	params.set("prompt", prompt)
	return nil
}

// mayBeIn reports why a session may not be worked with or read: it is where agents may not be, or nobody knows where.
func (g *acpGate) mayBeIn(at place) error {
	if len(g.policy.Dirs) == 0 {
		return nil
	}
	if at.cwd == "" {
		return errUnknown
	}
	return g.policy.mayBeIn(at.cwd)
}

// mayRun reports why no work may be done in a session that is, or will be, in a mode.
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

// answers judges an answer to what the agent asked, each of which is answered once. A yes becomes a no where the owner
// allows none from elsewhere, or nothing but reading, and counts once below any ceiling.
func (g *acpGate) answers(id string, message object) error {
	g.mu.Lock()
	may, known := g.asked[id]
	delete(g.asked, id)
	g.mu.Unlock()
	if !known {
		return errQuestion
	}
	raw, given := message["result"]
	yes := g.policy.Answers && g.policy.Ceiling != "read-only"
	if !given || yes && (may == nil || g.policy.Ceiling == "" || g.policy.Ceiling == "danger-full-access") {
		return nil
	}
	var result, outcome object
	_ = json.Unmarshal(raw, &result) // what cannot be read is no no
	_ = json.Unmarshal(result["outcome"], &outcome)
	picked := ""
	if outcome.text("outcome") == "selected" {
		picked = may.pick(outcome.text("optionId"), yes)
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

// fromAgent judges a message of the agent, and returns it as it passes, or what the agent is answered instead.
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
	_ = json.Unmarshal(f.Params, &p) // what is missing tells nothing
	if f.Method == "_switchboard/prompted" && p.Cwd != "" {
		g.places.learn(p.Session, func(at *place) { at.cwd = p.Cwd })
	}
	allowed := p.Session == "" || g.mayBeIn(g.places.get(p.Session)) == nil
	if f.ID == nil || string(f.ID) == "null" {
		if !g.apart { // else it is of another process
			g.places.learnMode(p.Session, p.Update.Mode, p.Update.Options)
		}
		if f.Method == "$/cancel_request" {
			g.mu.Lock()
			delete(g.asked, string(p.Request))
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
	default: // neither files nor terminals of the other side are used here
		answer, _ = json.Marshal(map[string]any{"jsonrpc": "2.0", "id": f.ID, "error": map[string]any{
			"code": -32601, "message": "not offered",
		}})
		return nil, answer
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !allowed || len(g.asked) >= maxWatched {
		result := map[string]any{"outcome": map[string]string{"outcome": "cancelled"}}
		if may == nil {
			result = map[string]any{"action": "cancel"}
		}
		answer, _ = json.Marshal(map[string]any{"jsonrpc": "2.0", "id": f.ID, "result": result})
		return nil, answer
	}
	g.asked[string(f.ID)] = may
	return data, nil
}

// configOption is a setting of a session, as an agent tells it.
type configOption struct {
	ID       string          `json:"id"`
	Category string          `json:"category"`
	Current  json.RawMessage `json:"currentValue"`
}

// learnMode takes over what an agent tells of the mode of a session that is known.
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
				_ = json.Unmarshal(o.Current, &at.mode) // else it is not known
			}
		}
	})
}

// response reads what an answer tells of sessions, and returns it without those that may not be seen.
func (g *acpGate) response(id string, result json.RawMessage, data []byte) []byte {
	g.mu.Lock()
	c, known := g.watched[id]
	delete(g.watched, id)
	g.mu.Unlock()
	switch {
	case !known:
		return nil // nobody knows of which session it tells
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
	_ = json.Unmarshal(result, &r) // what is missing tells nothing
	switch c.method {
	case "session/new", "session/fork":
		g.places.learn(r.Session, func(at *place) { *at = place{cwd: c.cwd} })
		g.places.learnMode(r.Session, r.Modes.Current, withoutModes(r.Modes.Current, r.Options))
	case "session/load", "session/resume":
		if g.apart { // it is open in another process
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

// withoutModes leaves out settings where an agent has modes.
func withoutModes(mode string, options []configOption) []configOption {
	if mode != "" {
		return nil
	}
	return options
}

// listed is a list of sessions without those that may not be seen.
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

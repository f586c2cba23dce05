package host

import (
	"encoding/json"
	"regexp"
	"slices"

	"switchboard/servers/acp"
	"switchboard/servers/codex"
	"switchboard/servers/trees"
)

// A call is a request of the service to the agent.
type call struct {
	method, session, cwd, mode string

	params object // while it is judged
	unsure bool   // an opening of its session waits too, or has waited: its answer says nothing of the mode
}

// opens reports whether the call opens a session where work may begin.
func (c *call) opens(g *gate) bool {
	return !g.apart && (c.method == "session/load" || c.method == "session/resume" || c.method == "thread/resume")
}

// A rule judges a parameter of a call, also one that is missing.
type rule func(g *gate, c *call, name string) error

// calls are all that the service may ask of an agent: the methods by the agent's kind, each with the parameters that it
// may have, and what they may be. A parameter without a rule may be anything. Set once.
var calls = map[string]map[string]map[string]rule{
	codex.Name: {
		"initialize":    {"clientInfo": nil, "capabilities": nil},
		"initialized":   {},
		"account/read":  {}, // whether somebody is signed in
		"thread/start":  {"cwd": directory, "model": nil, "approvalPolicy": nil, "sandbox": sandbox, "ephemeral": nil},
		"thread/resume": {"threadId": located, "excludeTurns": nil, "initialTurnsPage": nil},
		"thread/fork":   {"threadId": located, "lastTurnId": nil, "excludeTurns": nil, "ephemeral": nil},
		"thread/read":   {"threadId": located},
		"thread/list": {
			"limit": nil, "cursor": nil, "sourceKinds": nil, "useStateDbOnly": nil, "sortKey": nil, "sortDirection": nil,
			"modelProviders": nil,
		},
		"thread/turns/list":  {"threadId": seen, "cursor": nil, "limit": nil, "itemsView": nil},
		"thread/items/list":  {"threadId": seen, "turnId": nil, "limit": nil, "sortDirection": nil, "cursor": nil},
		"thread/unsubscribe": {"threadId": seen},
		"thread/archive":     {"threadId": seen},
		"thread/unarchive":   {"threadId": seen},
		"thread/name/set":    {"threadId": seen, "name": nil},
		"turn/start":         {"threadId": works, "input": blocks, "clientUserMessageId": nil, "additionalContext": nil},
		"turn/steer": {
			"threadId": works, "expectedTurnId": nil, "input": blocks, "clientUserMessageId": nil, "additionalContext": nil,
		},
		"turn/interrupt":  {"threadId": seen, "turnId": nil},
		"thread/goal/get": {"threadId": seen},
		"thread/goal/set": {"threadId": seen, "objective": text, "status": goal, "origin": text},
		trees.Method:      {"cwd": directory, "args": gitArgs},
	},
	acp.Name: {
		"initialize":                {"protocolVersion": nil, "clientCapabilities": nil, "clientInfo": nil},
		"session/new":               {"cwd": directory, "mcpServers": none},
		"session/load":              {"sessionId": seen, "cwd": directory, "mcpServers": none},
		"session/resume":            {"sessionId": seen, "cwd": directory, "mcpServers": none},
		"session/fork":              {"sessionId": seen, "cwd": directory, "mcpServers": none},
		"session/list":              {"cwd": text, "cursor": nil},
		"session/close":             {"sessionId": seen},
		"session/cancel":            {"sessionId": seen},
		"session/set_mode":          {"sessionId": seen, "modeId": mode},
		"session/set_config_option": {"sessionId": seen, "configId": option, "value": mode},
		"session/prompt":            {"sessionId": works, "prompt": blocks, "_meta": traced},
		"_session/steering":         {"sessionId": works, "prompt": blocks, "_meta": steers},
		"_switchboard/adopt":        {"sessionId": located},
		trees.Method:                {"cwd": directory, "args": gitArgs},
	},
}

// reading are the methods that a connection may call which only reads. Set once.
var reading = []string{"initialize", "session/list", "session/load"}

// notes are the methods that may be notifications: what begins work must be a request. Set once.
var notes = []string{"initialized", "session/cancel"}

// parts are the fields that a part of a prompt may have, by the agent's kind and the type of the part; nil: any. Other
// parts and fields name files of this machine. Set once.
var parts = map[string]map[string][]string{
	codex.Name: {"text": nil, "image": nil},
	acp.Name:   {"text": {"type", "text"}, "image": {"type", "mimeType", "data"}},
}

// steersIdle is the only _meta that a message to a running turn may have.
const steersIdle = `{"steering":{"idleBehavior":"promptRequired"}}`

// text allows a string, and nothing.
func text(_ *gate, c *call, name string) error {
	if raw, given := c.params[name]; given && json.Unmarshal(raw, new(string)) != nil {
		return errMethod
	}
	return nil
}

// directory allows a directory that the owner allows. Without one, an agent begins in the first of these.
func directory(g *gate, c *call, name string) error {
	if c.cwd = c.params.text(name); c.cwd == "" {
		return text(g, c, name)
	}
	return g.policy.mayBeIn(c.cwd)
}

// sandbox allows a sandbox within the ceiling, and sets that if there is none, whatever the agent's own is.
func sandbox(g *gate, c *call, name string) error {
	if _, given := c.params[name]; !given && c.params != nil && !g.mayRun("danger-full-access") {
		c.params.set(name, g.policy.Ceiling)
	}
	if is := c.params.text(name); is != "" && !g.mayRun(is) {
		return errLooser
	}
	return text(g, c, name)
}

// located allows a session that may be seen, or of which this is not known: the answer tells where it is.
func located(g *gate, c *call, name string) error {
	if why := g.mayBeSeen(c.session); why != errUnknown && why != nil {
		return why
	}
	return text(g, c, name)
}

// seen allows a session that may be seen.
func seen(g *gate, c *call, name string) error {
	if g.bounded() && c.session == "" {
		return errUnknown
	}
	if why := g.mayBeSeen(c.session); why != nil {
		return why
	}
	return text(g, c, name)
}

// works allows a session in which work may begin.
func works(g *gate, c *call, name string) error {
	if err := seen(g, c, name); err != nil {
		return err
	}
	switch at := g.sessions.get(c.session); {
	case g.setting.listens() && !at.open:
		return errUnknown
	case !g.mayRun(at.mode):
		return errLooser
	case g.bounded() && at.cwd != "":
		return g.policy.mayBeIn(at.cwd) // a link may lead elsewhere by now
	}
	return nil
}

// mode allows a mode within the ceiling.
func mode(g *gate, c *call, name string) error {
	if c.mode = c.params.text(name); !g.mayRun(c.mode) {
		return errLooser
	}
	return text(g, c, name)
}

// option allows the option that stands for the mode of the session.
func option(g *gate, c *call, name string) error {
	if is := g.sessions.get(c.session).option; is == "" || c.params.text(name) != is {
		return errMethod
	}
	return nil
}

// none allows an empty list: an MCP server would start programs.
func none(_ *gate, c *call, name string) error {
	var list []json.RawMessage
	if json.Unmarshal(c.params[name], &list) != nil || len(list) > 0 {
		return errMethod
	}
	return nil
}

// goal allows to pause a goal, and to set one in words where work may begin.
func goal(g *gate, c *call, name string) error {
	_, origin := c.params["origin"]
	switch words, is := c.params.text("objective"), c.params.text(name); {
	case is == "paused" && c.params["objective"] == nil && !origin:
		return nil
	case is == "active" && words != "":
		return works(g, c, "threadId")
	}
	return errMethod
}

// blocks allows the parts of a prompt, and puts them back as they were decoded.
func blocks(g *gate, c *call, name string) error {
	var all []object
	raw, given := c.params[name]
	if !given && g.setting.listens() {
		return nil
	}
	if json.Unmarshal(raw, &all) != nil {
		return errMethod
	}
	for _, part := range all {
		may, listed := parts[g.setting.Kind][part.text("type")]
		if !listed {
			return errMethod
		}
		for name := range part {
			if may != nil && !slices.Contains(may, name) {
				return errMethod
			}
		}
	}
	if all != nil {
		c.params.set(name, all)
	}
	return nil
}

// traced allows the parent span of the request, and nothing.
func traced(_ *gate, c *call, name string) error { return c.params.judgeTrace(name) }

// steers allows what has the agent say whether a turn runs, and nothing.
func steers(_ *gate, c *call, name string) error {
	if raw, given := c.params[name]; given && string(raw) != steersIdle { // our encoder writes no spaces
		return errMethod
	}
	return nil
}

// modes are the sandboxes of Codex, and the modes of agents of kind acp, by the ceiling that they keep to: its place in
// [Ceilings]. In a mode of the first place, an agent only reads, or asks before it does anything else; in one of the
// second, it also changes files. Others count as the loosest. Set once.
var modes = map[string]map[string]int{
	codex.Name: {
		"read-only": 0, "readOnly": 0, "workspace-write": 1, "workspaceWrite": 1, "danger-full-access": 2,
		"dangerFullAccess": 2,
	},
	acp.Name: {
		"default": 0, "read-only": 0, "ask": 0, "plan": 0, "acceptEdits": 1, "workspace-write": 1, "autoEdit": 1,
	},
}

// mayRun reports whether a sandbox or mode is within the ceiling, or the one that the owner has set for the agent.
func (g *gate) mayRun(mode string) bool {
	is, known := modes[g.setting.Kind][mode]
	if !known {
		is = len(Ceilings) - 1
	}
	return g.policy.Ceiling == "" || is <= slices.Index(Ceilings, g.policy.Ceiling) ||
		!g.setting.listens() && mode != "" && mode == g.setting.Mode
}

// An object is a JSON object by the exact names of its fields. Decoded into a struct, "CWD" would fill the field of
// "cwd" too; an app-server ignores it, and the gate would judge a value that does not count.
type object map[string]json.RawMessage

// text returns a field that is a string; "": it is missing or something else.
func (o object) text(name string) (text string) {
	_ = json.Unmarshal(o[name], &text) // "" if it fails
	return text
}

// set encodes a value into a field. The value must be one that can be encoded.
func (o object) set(name string, value any) { o[name], _ = json.Marshal(value) }

// setIn is like set for a field inside of other fields.
func (o object) setIn(path []string, value any) {
	if len(path) > 1 {
		in := object{}
		if _ = json.Unmarshal(o[path[0]], &in); in == nil { // what is no object is replaced
			in = object{}
		}
		in.setIn(path[1:], value)
		value = in
	}
	o.set(path[0], value)
}

// traceparent matches a traceparent of W3C Trace Context.
var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// judgeTrace judges a field with the parent span of a request, if it is there. The field may hold nothing else.
func (o object) judgeTrace(name string) error {
	value, traced := o[name]
	if !traced {
		return nil
	}
	var trace object
	if json.Unmarshal(value, &trace) != nil || len(trace) != 1 || !traceparent.MatchString(trace.text("traceparent")) {
		return errMethod
	}
	o.set(name, trace)
	return nil
}

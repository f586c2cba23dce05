package host

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"switchboard/servers"
)

// A gate stands between the service and a Codex app-server, and passes what is on a short list: the methods that give,
// follow and stop work, with the parameters that they have there. Who could call any method could run commands past
// every sandbox and question.
type gate struct {
	policy Policy
	of     *process        // Set once: the app-server, which learns here that it is used; nil: it need not
	rested json.RawMessage // Set once: the answer to initialize of an app-server that rests; nil: it runs

	mu      sync.Mutex
	watched waiting[string]  // Guarded by mu: requests whose answer tells of a session, by id; the value is the method
	threads map[string]error // Guarded by mu: why no work may begin in a session; nil: it may
	placed  map[string]error // Guarded by mu: why a session may not be read, where not every directory may be; nil: it may
}

// Bounds of what a gate remembers. Beyond them the connection ends, and its next one begins with nothing.
const (
	maxWatched = 1000
	maxThreads = 10_000
)

// passes are the methods that may be called, with their parameters. Set once.
var passes = map[string][]string{
	"initialize":         {"clientInfo", "capabilities"},
	"initialized":        {},
	"thread/start":       {"cwd", "model", "approvalPolicy", "sandbox", "ephemeral"},
	"thread/resume":      {"threadId", "excludeTurns", "initialTurnsPage"},
	"thread/fork":        {"threadId", "lastTurnId", "excludeTurns", "ephemeral"},
	"thread/unsubscribe": {"threadId"},
	"thread/list":        {"limit", "cursor", "sourceKinds", "useStateDbOnly", "sortKey", "sortDirection", "modelProviders"},
	"thread/read":        {"threadId"},
	"thread/turns/list":  {"threadId", "cursor", "limit", "itemsView"},
	"thread/items/list":  {"threadId", "turnId", "limit", "sortDirection", "cursor"},
	"thread/archive":     {"threadId"},
	"thread/unarchive":   {"threadId"},
	"thread/name/set":    {"threadId", "name"},
	"turn/start":         {"threadId", "input", "clientUserMessageId", "additionalContext"},
	"turn/steer":         {"threadId", "expectedTurnId", "input", "clientUserMessageId", "additionalContext"},
	"turn/interrupt":     {"threadId", "turnId"},
	"account/read":       {}, // whether somebody is signed in
}

// tells are the methods whose answer tells where a session is and what it may do. Set once.
var tells = []string{"thread/start", "thread/resume", "thread/fork"}

var (
	errMethod    = errors.New("this machine lets no such request through")
	errUnknown   = errors.New("the session is not open here")
	errLooser    = errors.New("the owner of this machine allows no sandbox so loose")
	errNoAnswers = errors.New("the owner of this machine answers agents there alone")
	errTwice     = errors.New("a request of this number waits for its answer")
	errFull      = errors.New("more requests wait for an answer than a gate remembers")
)

// A frame is a message of the service, as the gate has read it.
type frame struct {
	id     json.RawMessage
	method string // "": it is an answer
	passes []byte // the message that the app-server gets: written anew from what was judged
}

// fields are those that a message of the service may have. Set once.
var fields = []string{"jsonrpc", "id", "method", "params", "result", "error"}

// fromService judges a message to the app-server. An error says why it does not pass.
func (g *gate) fromService(data []byte) (frame, error) {
	var f frame
	var message object
	if json.Unmarshal(data, &message) != nil {
		return f, errMethod
	}
	f.id, f.method = message["id"], message.text("method")
	for name := range message {
		if name != "trace" && !slices.Contains(fields, name) {
			return f, errMethod
		}
	}
	if err := message.judgeTrace("trace"); err != nil {
		return f, err
	}
	if err := g.judge(f, message); err != nil {
		return f, err
	}
	f.passes, _ = json.Marshal(message) // what was decoded can be encoded
	return f, g.watch(string(f.id), f.method)
}

// watch remembers a request whose answer may tell of a session. Where not every directory may be read of, that is any.
func (g *gate) watch(id, method string) error {
	greets := method == "initialize" && g.of != nil
	if method == "" || !greets && !g.bounded() && !slices.Contains(tells, method) {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.watched.add(id, method)
}

// judge judges what a message says, and writes into it what it has read of its params.
func (g *gate) judge(f frame, message object) error {
	if _, called := message["method"]; !called {
		return g.answers(message)
	}
	known, ok := passes[f.method]
	if !ok || message["result"] != nil || message["error"] != nil {
		return errMethod
	}
	raw, given := message["params"]
	if !given {
		return g.mayCall(f.method, nil)
	}
	var params object
	if json.Unmarshal(raw, &params) != nil {
		return errMethod
	}
	for name := range params {
		if !slices.Contains(known, name) {
			return errMethod
		}
	}
	if err := g.mayCall(f.method, params); err != nil {
		return err
	}
	if params != nil {
		message.set("params", params)
	}
	return nil
}

// mayCall judges the parameters of a method that may be called.
func (g *gate) mayCall(method string, params object) error {
	for _, name := range []string{"cwd", "sandbox", "threadId"} {
		if raw, given := params[name]; given && params.text(name) == "" && string(raw) != `""` && string(raw) != "null" {
			return errMethod
		}
	}
	if err := g.mayRead(method, params.text("threadId")); err != nil {
		return err
	}
	switch method {
	case "thread/start":
		if sandbox := params.text("sandbox"); sandbox != "" && !g.policy.mayRun(sandbox) {
			return errLooser
		}
		if cwd := params.text("cwd"); cwd != "" {
			return g.policy.mayBeIn(cwd)
		}
	case "turn/start", "turn/steer":
		var input []object
		if raw, given := params["input"]; given && json.Unmarshal(raw, &input) != nil {
			return errMethod
		}
		for _, part := range input {
			if kind := part.text("type"); kind != "text" && kind != "image" { // others name files of this machine
				return errMethod
			}
		}
		if input != nil {
			params.set("input", input)
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		why, known := g.threads[params.text("threadId")]
		if !known {
			return errUnknown
		}
		return why
	}
	return nil
}

// noes are the answers that say no to whatever the app-server asks, and nothing beside it. Set once.
var noes = []map[string]string{
	{"decision": `"decline"`}, {"decision": `"cancel"`},
	{"action": `"decline"`, "content": "null"}, {"action": `"cancel"`, "content": "null"},
}

// answers judges an answer to what the app-server asked. A no always passes. Which question it is for is not known
// here: what is a no to one may be a yes to another.
func (g *gate) answers(message object) error {
	raw, given := message["result"]
	if g.policy.Answers || !given {
		return nil
	}
	var result object
	if json.Unmarshal(raw, &result) != nil {
		return errNoAnswers
	}
	said := map[string]string{}
	for name, value := range result {
		said[name] = string(value)
	}
	if !slices.ContainsFunc(noes, func(no map[string]string) bool { return maps.Equal(no, said) }) {
		return errNoAnswers
	}
	message.set("result", result)
	return nil
}

// watches reports whether an answer is waited for that tells of a session.
func (g *gate) watches() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.watched) > 0 || g.bounded()
}

// fromAgent reads what a message of the app-server tells of sessions, and returns it as it passes; nil: it does not.
func (g *gate) fromAgent(data []byte) []byte {
	var f struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(data, &f) != nil {
		if g.bounded() {
			return nil // nobody knows of which session it tells
		}
		return data
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.Method != "" {
		return g.aboutLocked(f.Params, data)
	}
	method, watched := g.watched[string(f.ID)]
	switch {
	case !watched && g.bounded():
		return nil // nobody knows of which session it tells
	case !watched:
		return data
	}
	delete(g.watched, string(f.ID))
	if f.Error != nil {
		return withHolder(f.ID, f.Error.Message, data)
	}
	switch {
	case method == "thread/list":
		return g.listedLocked(f.ID, f.Result, data)
	case method == "initialize" && g.of != nil:
		g.of.greets(f.Result)
		return data
	}
	var r struct {
		Thread  wireThread
		Cwd     string
		Sandbox struct{ Type string }
	}
	if json.Unmarshal(f.Result, &r) != nil || r.Thread.ID == "" {
		return data // it is refused, or of no use
	}
	if why := g.placeLocked(r.Thread.ID, cmp.Or(r.Cwd, r.Thread.Cwd)); why != nil {
		return refusal(f.ID, why)
	}
	if slices.Contains(tells, method) && len(g.threads) < maxThreads {
		var why error
		if !g.policy.mayRun(r.Sandbox.Type) {
			why = errLooser
		}
		g.threads[r.Thread.ID] = why
	}
	return data
}

// gated returns the service's end of a connection to an app-server through a gate. agent is nil where it rests.
func gated(agent net.Conn, g *gate) net.Conn {
	near, far := net.Pipe()
	go func() { // ends with either end
		defer func() { _ = far.Close() }() // it is gone either way
		if agent != nil {
			defer func() { _ = agent.Close() }() // likewise
		}
		serveOne(far, func(service *websocket.Conn) { g.between(service, agent) })
	}()
	return near
}

// between passes messages between the service and an app-server until either ends.
func (g *gate) between(service *websocket.Conn, conn net.Conn) {
	var agent *websocket.Conn
	var err error
	if conn != nil {
		agent, err = shake(conn)
	} else if agent, err = g.wake(service); err != nil {
		g.of.log.Info("app-server is not woken", zap.Error(err))
	}
	if err != nil {
		return
	}
	end := sync.OnceFunc(func() {
		_ = agent.Close() // they are gone either way
		_ = service.Close()
	})
	defer end()
	toService := make(chan struct{}, 1) // whose token is in it writes a message to the service
	toService <- struct{}{}
	var both sync.WaitGroup
	both.Go(func() {
		defer end()
		g.toAgent(service, agent, toService)
	})
	both.Go(func() {
		defer end()
		g.toService(agent, service, toService)
	})
	both.Wait()
}

// toAgent passes on what may pass of what the service sends, and answers the rest itself.
func (g *gate) toAgent(service, agent *websocket.Conn, toService chan struct{}) {
	service.SetReadLimit(servers.MaxFrame + 64<<10)
	for {
		kind, data, err := service.ReadMessage()
		if err != nil || kind != websocket.TextMessage {
			return
		}
		f, refused := g.fromService(data)
		switch {
		case errors.Is(refused, errFull):
			return
		case refused == nil:
			if !g.of.uses(f.method) || pass(agent, f.passes, strings.NewReader("")) != nil {
				return
			}
			continue
		case len(f.id) == 0:
			continue // nobody waits
		case errors.Is(refused, errNoAnswers): // the agent waits for an answer, and gets a no to whatever it asked
			no, _ := json.Marshal(map[string]any{"id": f.id, "result": map[string]any{
				"decision": "decline", "action": "decline", "answers": object{}, "permissions": object{}, "scope": "turn",
			}})
			if pass(agent, no, strings.NewReader("")) != nil {
				return
			}
			continue
		}
		<-toService
		err = pass(service, refusal(f.id, refused), strings.NewReader(""))
		toService <- struct{}{}
		if err != nil {
			return
		}
	}
}

// refusedCode is that of an invalid request in JSON-RPC.
const refusedCode = -32600

// toService passes on what the app-server sends. Only answers that tell of a session are looked at.
func (g *gate) toService(agent, service *websocket.Conn, turn chan struct{}) {
	for {
		kind, r, err := agent.NextReader()
		if err != nil {
			return
		}
		if kind != websocket.TextMessage {
			continue
		}
		data := make([]byte, headOf)
		n, err := io.ReadFull(r, data)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return
		}
		if data = data[:n]; tellsOfWork(data) {
			g.of.uses("")
		}
		if g.watches() {
			rest, err := io.ReadAll(io.LimitReader(r, servers.MaxFrame))
			if err != nil {
				return
			}
			data = append(data, rest...)
			more := int64(0)
			if g.bounded() {
				if more, err = io.Copy(io.Discard, r); err != nil {
					return
				}
			}
			if data = g.fromAgent(data); data == nil || more > 0 {
				continue // one that is longer tells nothing, and may not be heard
			}
		}
		<-turn
		err = pass(service, data, r)
		turn <- struct{}{}
		if err != nil {
			return
		}
	}
}

package host

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"switchboard/servers"
)

// A gate stands between the service and a Codex app-server, and passes only the methods that it lists: those that give,
// follow and stop work, with the listed parameters. A service that could call every method could run commands outside
// the sandbox and without approval.
type gate struct {
	policy   Policy          // Set once
	process  *process        // Set once: the app-server, whose use is noted; nil: it is not
	greeting json.RawMessage // Set once: the answer to initialize of an app-server that rests; nil: it runs

	mu      sync.Mutex
	pending waiting[string]  // Guarded by mu: methods of the requests whose answer is read, by id
	asked   waiting[string]  // Guarded by mu: open questions of the app-server, as in passing, by id
	threads map[string]error // Guarded by mu: why no work may begin in a thread; nil: it may
	places  map[string]error // Guarded by mu: only if bounded: why a thread may not be read; nil: it may
}

// Bounds of what a gate remembers. Beyond them the connection ends, and its next one begins with nothing.
const (
	maxWatched = 1000
	maxThreads = 10_000
)

// methods are those that may be called, with their parameters. Set once.
var methods = map[string][]string{
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

// opensThread are the methods whose answer names a thread, its directory and its sandbox. Set once.
var opensThread = []string{"thread/start", "thread/resume", "thread/fork"}

var (
	errMethod    = errors.New("this machine lets no such request through")
	errUnknown   = errors.New("the session is not open here")
	errLooser    = errors.New("the owner of this machine allows no sandbox so loose")
	errNoAnswers = errors.New("the owner of this machine lets no such answer through")
	errTwice     = errors.New("a request of this number waits for its answer")
	errFull      = errors.New("more requests wait for an answer than a gate remembers")
)

// A frame is a message of the service that the gate has read.
type frame struct {
	id     json.RawMessage
	method string // "": it is an answer
	passes []byte // what the app-server gets: encoded anew from what was judged
}

// fields are the names that the fields of a message of the service may have. Set once.
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

// watch remembers a request whose answer the gate has to read. Where the directories are bounded, that is every one.
func (g *gate) watch(id, method string) error {
	greets := method == "initialize" && g.process != nil
	if method == "" || !greets && !g.bounded() && !slices.Contains(opensThread, method) {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pending.add(id, method)
}

// judge judges the content of a message, and puts its params back as they were decoded.
func (g *gate) judge(f frame, message object) error {
	if _, called := message["method"]; !called {
		return g.answers(string(f.id), message)
	}
	known, ok := methods[f.method]
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
		if _, given := params["sandbox"]; !given && params != nil && !g.policy.mayRun("dangerFullAccess") {
			params.set("sandbox", g.policy.Ceiling) // as loose as is allowed, whatever the app-server's own is
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

// answers judges an answer to a question of the app-server. A question is answered once.
func (g *gate) answers(id string, message object) error {
	g.mu.Lock()
	question := g.asked[id]
	delete(g.asked, id)
	g.mu.Unlock()
	raw, given := message["result"]
	if !given {
		return nil // an error allows nothing
	}
	var result object
	if json.Unmarshal(raw, &result) != nil || !g.policy.mayAnswer(question, result) {
		return errNoAnswers
	}
	message.set("result", result)
	return nil
}

// watches reports whether messages of the app-server have to be read before they pass.
func (g *gate) watches() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.pending) > 0 || g.bounded()
}

// fromAgent learns about threads from a message of the app-server, and returns what the service gets; nil: nothing.
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
			return nil // its thread is not known
		}
		return data
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.Method != "" {
		return g.notificationLocked(f.Params, g.askedLocked(string(f.ID), f.Method, f.Params, data))
	}
	method, watched := g.pending[string(f.ID)]
	switch {
	case !watched && g.bounded():
		return nil // its thread is not known
	case !watched:
		return data
	}
	delete(g.pending, string(f.ID))
	if f.Error != nil {
		return withHolder(f.ID, f.Error.Message, data)
	}
	switch {
	case method == "thread/list":
		return g.listedLocked(f.ID, f.Result, data)
	case method == "initialize" && g.process != nil:
		g.process.keepGreeting(f.Result)
		return data
	}
	var r struct {
		Thread  wireThread
		Cwd     string
		Sandbox struct{ Type string }
	}
	if json.Unmarshal(f.Result, &r) != nil || r.Thread.ID == "" {
		return data // it names no thread
	}
	if why := g.locateLocked(r.Thread.ID, cmp.Or(r.Cwd, r.Thread.Cwd)); why != nil {
		return refusal(f.ID, why)
	}
	if slices.Contains(opensThread, method) && len(g.threads) < maxThreads {
		var why error
		if !g.policy.mayRun(r.Sandbox.Type) {
			why = errLooser
		}
		g.threads[r.Thread.ID] = why
	}
	return data
}

// gated returns the service's end of a connection to an app-server through a gate. agent is nil if the app-server
// rests.
func gated(agent net.Conn, g *gate) net.Conn {
	near, far := net.Pipe()
	go func() { // ends with either end
		defer func() { _ = far.Close() }()
		if agent != nil {
			defer func() { _ = agent.Close() }()
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
		agent, err = handshake(conn)
	} else if agent, err = g.wake(service); err != nil {
		g.process.log.Info("app-server is not woken", zap.Error(err))
	}
	if err != nil {
		return
	}
	end := sync.OnceFunc(func() {
		_ = agent.Close()
		_ = service.Close()
	})
	defer end()
	writing := make(chan struct{}, 1) // a semaphore: its holder writes a message to the service
	var both sync.WaitGroup
	both.Go(func() {
		defer end()
		g.toAgent(service, agent, writing)
	})
	both.Go(func() {
		defer end()
		g.toService(agent, service, writing)
	})
	both.Wait()
}

// toAgent passes on the messages of the service that may pass, and answers the other requests itself.
func (g *gate) toAgent(service, agent *websocket.Conn, writing chan struct{}) {
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
			if !g.process.noteUse(f.method) || writeMessage(agent, f.passes, strings.NewReader("")) != nil {
				return
			}
			continue
		case len(f.id) == 0:
			continue // a notification has no answer
		case errors.Is(refused, errNoAnswers): // the agent waits for an answer: it gets a no to any question
			no, _ := json.Marshal(map[string]any{"id": f.id, "result": map[string]any{
				"decision": "decline", "action": "decline", "answers": object{}, "permissions": object{}, "scope": "turn",
			}})
			if writeMessage(agent, no, strings.NewReader("")) != nil {
				return
			}
			continue
		}
		writing <- struct{}{}
		err = writeMessage(service, refusal(f.id, refused), strings.NewReader(""))
		<-writing
		if err != nil {
			return
		}
	}
}

// refusedCode is the code of JSON-RPC for an invalid request.
const refusedCode = -32600

// toService passes on what the app-server sends. Messages that need not be judged are copied without being decoded.
func (g *gate) toService(agent, service *websocket.Conn, writing chan struct{}) {
	for {
		kind, r, err := agent.NextReader()
		if err != nil {
			return
		}
		if kind != websocket.TextMessage {
			continue
		}
		data := make([]byte, headBytes)
		n, err := io.ReadFull(r, data)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return
		}
		if data = data[:n]; hasMethod(data) {
			g.process.noteUse("")
		}
		if g.watches() || mayAsk(data) {
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
				continue // a message that is too long to be judged does not pass
			}
		}
		writing <- struct{}{}
		err = writeMessage(service, data, r)
		<-writing
		if err != nil {
			return
		}
	}
}

package host

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"regexp"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/servers"
	"switchboard/servers/trees"
)

// A gate stands between the service and an agent, on one connection. Of what the service sends, it passes the requests
// that are listed in calls, and the answers that are listed in passing, as far as the machine's owner allows them, and
// encoded anew from what it has judged. Of what the agent sends, it passes what is of sessions that may be seen. A
// service that could call every method could run commands outside the sandbox and without approval.
type gate struct {
	policy   Policy          // Set once
	setting  Setting         // Set once: of the agent
	apart    bool            // Set once: the connection only reads
	sessions *places         // Set once: of an agent of kind acp, those of all its connections
	process  *process        // Set once: the app-server, whose use is noted; nil: its use is not
	greeting json.RawMessage // Set once: the answer to initialize of an app-server that rests; nil: it runs
	gits     chan struct{}   // Set once: has a token for each command of git that runs

	mu      sync.Mutex
	pending waiting[call]     // Guarded by mu: requests of the service that are not answered, by id
	asked   waiting[question] // Guarded by mu: requests of the agent that are not answered, by id
}

func newGate(policy Policy, setting Setting) *gate {
	return &gate{
		policy: policy, setting: setting, sessions: newPlaces(), pending: waiting[call]{}, asked: waiting[question]{},
		gits: make(chan struct{}, maxGits),
	}
}

// Bounds of what a gate remembers.
const (
	maxWatched = 1000   // requests of the service, beyond which the connection ends, and questions
	maxThreads = 10_000 // sessions: others are not known
	maxKept    = 16_384 // bytes of a request
)

var (
	errMethod   = errors.New(trees.RefusedMethod)
	errReads    = errors.New("the owner of this machine lets its agents only read")
	errGits     = errors.New("git is busy there")
	errUnknown  = errors.New("the session is not open here")
	errLooser   = errors.New("the owner of this machine allows no sandbox so loose")
	errNumber   = errors.New("a request has a number, or it is a notification")
	errTwice    = errors.New("a request of this number waits for its answer")
	errFull     = errors.New("more requests wait for an answer than a gate remembers")
	errQuestion = errors.New("nothing was asked")
)

// waiting are requests that are not answered, by id: at most maxWatched. V is what a gate remembers of each.
type waiting[V any] map[string]V

// add remembers a request. It ignores notifications, which have no id.
func (w waiting[V]) add(id string, about V) error {
	if id == "" {
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

// take returns what is remembered of a request, and forgets it.
func (w waiting[V]) take(id string) (about V, waits bool) {
	about, waits = w[id]
	delete(w, id)
	return about, waits
}

// A message is one of the service that the gate has read.
type message struct {
	id     json.RawMessage // nil: it needs no answer
	method string          // "": it is an answer
	passes []byte          // what the agent gets
}

// number matches the ids that our requests have. A gate compares ids by their bytes, and an agent may do so by their
// values: "a" is "\u0061" to all of them, and 1 is 1.0 to some. No two numbers of this form are one.
var number = regexp.MustCompile(`^[0-9]{1,15}$`)

// fields are the names that the fields of a message of the service may have. Set once.
var fields = []string{"jsonrpc", "id", "method", "params", "result", "error"}

// fromService judges a message to the agent. An error says why it does not pass.
func (g *gate) fromService(data []byte) (m message, err error) {
	var all object
	if json.Unmarshal(data, &all) != nil {
		return m, errMethod
	}
	m.id = all["id"]
	for name := range all {
		if !slices.Contains(fields, name) && (name != "trace" || !g.setting.listens()) {
			return m, errMethod
		}
	}
	if err := all.judgeTrace("trace"); err != nil {
		return m, err
	}
	if _, calls := all["method"]; calls {
		if m.id != nil && !number.Match(m.id) {
			return m, errNumber
		}
		m.method = all.text("method")
		err = g.judge(string(m.id), m.method, all)
		m.passes, _ = json.Marshal(all) // what was decoded can be encoded
	} else {
		m.passes, err = g.answers(m.id, all)
		m.id = nil // an answer is not answered
	}
	return m, err
}

// judge judges a request or notification, puts its params back as they were decoded, and remembers it.
func (g *gate) judge(id, method string, all object) error {
	rules, listed := calls[g.setting.Kind][method]
	reads := slices.Contains(reading, method)
	unasked := id == "" && !slices.Contains(notes, method)
	if !listed || unasked || g.apart && !reads || all["result"] != nil || all["error"] != nil {
		return errMethod
	}
	var params object
	raw, given := all["params"]
	if given && json.Unmarshal(raw, &params) != nil {
		return errMethod
	}
	for name := range params {
		if _, listed := rules[name]; !listed {
			return errMethod
		}
	}
	c := call{method: method, params: params}
	for _, name := range []string{"threadId", "sessionId"} {
		if _, listed := rules[name]; listed {
			c.session = params.text(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rules)) { // so that the same call is always refused for the same reason
		if rules[name] == nil {
			continue
		}
		if err := rules[name](g, &c, name); err != nil {
			return err
		}
	}
	if len(c.session)+len(c.cwd)+len(c.mode) > maxKept {
		return errMethod
	}
	if c.params = nil; params != nil {
		all.set("params", params)
	}
	return g.begin(id, c)
}

// A sender is an end of a gate to which both directions write.
type sender struct {
	servers.Wire
	writing chan struct{} // a semaphore of 1: its holder writes
}

func newSender(wire servers.Wire) *sender { return &sender{wire, make(chan struct{}, 1)} }

// Write writes a frame, unless it is nil.
func (s *sender) Write(frame []byte) error {
	if frame == nil {
		return nil
	}
	s.writing <- struct{}{}
	defer func() { <-s.writing }()
	return s.Wire.Write(frame)
}

// serve serves a connection of the service to an agent until either ends. agent is nil if the agent rests.
func (g *gate) serve(conn net.Conn, agent servers.Wire) {
	defer func() { _ = conn.Close() }()
	service, err := g.accept(conn)
	switch {
	case err == nil:
		g.between(newSender(service), agent)
	case agent != nil:
		_ = agent.Close()
	}
}

// between passes messages between the service and an agent until either ends.
func (g *gate) between(service *sender, wire servers.Wire) {
	var agent *sender
	var answering sync.WaitGroup
	defer answering.Wait()
	defer func() { _ = service.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel() // git undoes what it has half made
	reach := func(wire servers.Wire) {
		agent = newSender(wire)
		answering.Go(func() {
			defer func() { _ = service.Close() }() // ends the other direction
			g.toService(agent, service)
		})
	}
	if wire != nil {
		reach(wire)
	}
	defer func() {
		if agent != nil {
			_ = agent.Close()
		}
	}()
	var greets message // the service's initialize, while the agent rests
	for {
		data, err := service.Read()
		if _, long := errors.AsType[*servers.LongFrame](err); long {
			continue // a request of that size is never sent
		}
		if err != nil {
			return
		}
		m, refused := g.fromService(data)
		switch {
		case errors.Is(refused, errFull), errors.Is(refused, errNumber):
			return
		case refused != nil && m.id == nil: // it needs no answer
		case refused != nil:
			err = service.Write(refusal(m.id, refused))
		case m.method == trees.Method: // the agent has no part in it, and may rest
			err = g.answersGit(ctx, m, service, &answering)
		case agent == nil && m.method == "initialize":
			greets = m
			passes, _ := g.fromAgent(result(m.id, g.greeting))
			err = service.Write(passes)
		case agent == nil && (m.method == "initialized" || m.method == ""):
		case agent == nil:
			wire, why := g.wake(greets)
			if why != nil {
				g.process.log.Info("app-server is not woken", zap.Error(why))
				return
			}
			reach(wire)
			fallthrough
		default:
			if !g.process.noteUse(m.method) {
				return
			}
			err = agent.Write(m.passes)
		}
		if err != nil {
			return
		}
	}
}

// toService passes on what the agent sends.
func (g *gate) toService(agent, service *sender) {
	for {
		data, err := agent.Read()
		if long, is := errors.AsType[*servers.LongFrame](err); is {
			if g.leftOut(long, service) != nil {
				return
			}
			continue
		}
		if err != nil {
			return
		}
		passes, answer := g.fromAgent(data)
		if service.Write(passes) != nil || agent.Write(answer) != nil {
			return
		}
	}
}

// leftOut handles a message of the agent that is too long to be judged: the request that it answers fails, or the
// service is told that something is missing.
func (g *gate) leftOut(long *servers.LongFrame, service *sender) error {
	id := long.Answers()
	if id == nil {
		return service.Write([]byte(`{"method":"` + servers.LeftOut + `"}`))
	}
	g.take(string(id))
	return service.Write(refusal(id, long.Cause))
}

// wake starts an app-server that rests, and initializes it as the service did.
func (g *gate) wake(hello message) (servers.Wire, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*startWithin)
	defer cancel()
	conn, err := g.process.dial(ctx)
	if err != nil {
		return nil, err
	}
	agent, err := open(ctx, conn)
	if err != nil {
		return nil, err
	}
	if hello.id == nil { // the service did not initialize: the app-server refuses its first request
		return agent, nil
	}
	_ = agent.SetReadDeadline(time.Now().Add(startWithin)) // on a closed connection the read fails
	greeting, err := agent.call(hello.id, hello.passes)
	if err == nil && string(greeting) != string(g.greeting) {
		g.process.keepGreeting(greeting)
		err = errors.New("another app-server answers than before")
	}
	if err == nil {
		err = errors.Join(agent.Write([]byte(`{"method":"initialized"}`)), agent.SetReadDeadline(time.Time{}))
	}
	if err != nil {
		return nil, errors.Join(err, agent.Close())
	}
	return agent, nil
}

// Codes of errors of JSON-RPC.
const (
	codeRefused  = -32600 // an invalid request
	codeNoMethod = -32601
)

// refusal returns the answer to a request that does not pass.
func refusal(id json.RawMessage, why error) []byte { return failed(id, codeRefused, why.Error()) }

// failed returns the answer to a request that fails.
func failed(id json.RawMessage, code int, why string) []byte {
	line, _ := json.Marshal(map[string]any{ // an id that was decoded can be encoded
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": why},
	})
	return line
}

// result returns the answer to a request.
func result(id json.RawMessage, is any) []byte {
	line, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "result": is}) // it was decoded, or is ours
	return line
}

package simulator

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// A machine is one app-server with its threads. mu is held during each action; no action waits.
type machine struct {
	Config           // Set once
	about  Machine   // Set once
	born   time.Time // Set once: unknown turns with older ids are of an earlier world

	clients sync.WaitGroup // handlers of connections; added to with mu held, while the machine runs

	mu    sync.Mutex
	state // Guarded by mu
}

// state is the mutable state of a machine.
type state struct {
	running  bool
	lose     func() // ends Serve; nil while it is not served
	gone     bool   // a machine that leaves was given work
	threads  []*thread
	conns    []*conn
	asks     []*ask // open requests to clients, oldest first
	askSeq   int
	released bool // Release was called
	fixed    bool // the failing test of the shop was fixed
	faults   Faults
	starts   []Start
	trees    []string // directories of worktrees; more are made by people only, one at a time
	tooSlow  uint64   // connections cut because they did not read
}

// A request is a request from a connection.
type request struct {
	conn *conn
	id   json.RawMessage
	call string
	args json.RawMessage
}

// A timer runs a function later, unless it is cancelled. Guarded by the machine's mu.
type timer struct {
	clock *time.Timer
	off   bool
}

func newMachine(about Machine, c Config) *machine {
	c.Log = c.Log.With(zap.String("server", about.Name))
	return &machine{Config: c, about: about, born: time.Now()}
}

// do runs fn with mu held.
func (m *machine) do(fn func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fn()
}

// kill has the effect of a kill of the app-server: every connection is cut, running turns are interrupted, nothing is
// loaded. It returns when all handlers of connections have ended.
func (m *machine) kill() {
	m.do(func() {
		for _, t := range m.threads {
			if t.turn != nil {
				t.turn.status = turnInterrupted
				t.turn.work.Leave()
				t.turn.next.cancel()
				t.turn.open, t.turn.ask = nil, nil
				t.turn = nil
			}
			t.loaded, t.subscribers, t.status = false, nil, statusIdle
		}
		m.dropAll()
		m.conns, m.asks, m.askSeq, m.running, m.lose = nil, nil, 0, false, nil
	})
	m.clients.Wait()
}

// after runs fn after d divided by the speed of the world.
func (m *machine) after(d time.Duration, fn func()) *timer {
	t := &timer{}
	t.clock = time.AfterFunc(time.Duration(float64(d)/m.Speed), func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !t.off {
			fn()
		}
	})
	return t
}

// cancel cancels a timer, which may be nil.
func (t *timer) cancel() {
	if t != nil {
		t.off = true
		t.clock.Stop()
	}
}

func (m *machine) add(t *thread) {
	t.m = m
	m.threads = append(m.threads, t)
}

// notify sends a notification to those connections that are initialized and did not opt out.
func (m *machine) notify(to []*conn, method string, params any) {
	if len(to) == 0 {
		return
	}
	message := marshal(map[string]any{"method": method, "params": params, "emittedAtMs": time.Now().UnixMilli()})
	for _, c := range slices.Clone(to) {
		if c.initialized && !slices.Contains(c.optOut, method) {
			c.send(message)
		}
	}
}

// broadcast sends a notification to every connection.
func (m *machine) broadcast(method string, params any) { m.notify(m.conns, method, params) }

// publish sends a notification to the subscribers of a thread.
func (t *thread) publish(method string, params map[string]any) {
	if params["threadId"] == nil {
		params["threadId"] = t.id
	}
	t.m.notify(t.subscribers, method, params)
}

// setStatus sets the status of a thread and notifies every connection.
func (t *thread) setStatus(status string, flags ...string) {
	t.status, t.flags = status, flags
	t.m.broadcast("thread/status/changed", map[string]any{"threadId": t.id, "status": t.wireStatus()})
}

// leave removes a connection.
func (m *machine) leave(c *conn) {
	m.conns = slices.DeleteFunc(m.conns, func(have *conn) bool { return have == c })
	for _, t := range m.threads {
		t.unsubscribe(c)
	}
}

// unsubscribe removes a subscriber; false if there was none.
func (t *thread) unsubscribe(c *conn) bool {
	before := len(t.subscribers)
	t.subscribers = slices.DeleteFunc(t.subscribers, func(have *conn) bool { return have == c })
	return len(t.subscribers) < before
}

// close unloads a thread and notifies everybody.
func (t *thread) close() {
	t.unloadNow()
	t.m.broadcast("thread/closed", map[string]any{"threadId": t.id})
}

func (t *thread) unloadNow() {
	t.loaded, t.subscribers = false, nil
	t.m.broadcast("thread/status/changed", map[string]any{"threadId": t.id, "status": t.wireStatus()})
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("simulator: " + err.Error()) // only our own maps and strings are marshalled
	}
	return b
}

package simulator

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// unloadAfter is how long an idle thread without subscribers stays loaded.
const unloadAfter = 60 * time.Second

// A machine is one app-server with its threads. Whoever does something there holds mu; nothing that is done waits.
type machine struct {
	about  Machine             // Set once
	born   time.Time           // Set once: older turns that are unknown were forgotten
	speed  float64             // Set once
	script func(Prompt) []Step // Set once; nil for the built-in agent
	holds  func(Prompt) bool   // Set once; may be nil
	log    *zap.Logger         // Set once
	unsent int                 // Set once: maxUnsent

	mu    sync.Mutex
	left  *sync.Cond // Set once: of mu; a client has gone
	state            // Guarded by mu
}

// state is what changes on a machine.
type state struct {
	running  bool
	life     int    // counts the times that it was killed
	lose     func() // ends Serve; nil while it is not served
	gone     bool   // it leaves, and was asked for work
	clients  int    // handlers of connections
	threads  []*thread
	conns    []*conn
	asks     []*ask // open requests to clients, oldest first
	askSeq   int
	released bool // nothing hangs any more
	fixed    bool // the shop's failing test was mended
	faults   Faults
	starts   []Start
	unread   uint64 // messages that were none, or nested too deep
	tooSlow  uint64 // connections cut because they did not read
}

// An asked request came from a connection.
type asked struct {
	conn *conn
	id   json.RawMessage
	call string
	args json.RawMessage
}

// A timer runs something later, unless it is cancelled or its machine is killed before. Guarded by the machine's mu.
type timer struct {
	clock *time.Timer
	off   bool
}

func newMachine(about Machine, c Config, log *zap.Logger) *machine {
	m := &machine{
		about: about, born: time.Now(), speed: c.Speed, script: c.Script, holds: c.Holds,
		log: log.With(zap.String("server", about.Name)), unsent: maxUnsent,
	}
	m.left = sync.NewCond(&m.mu)
	return m
}

// do runs fn where the state may be touched.
func (m *machine) do(fn func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fn()
}

// kill does what a killed app-server leaves behind: every connection is cut, running turns are interrupted for good,
// nothing is loaded. It returns when all who were connected have gone.
func (m *machine) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.threads {
		if t.turn != nil {
			t.turn.status = "interrupted"
			t.turn.frames, t.turn.open, t.turn.ask = nil, nil, nil
			t.turn = nil
		}
		t.loaded, t.subscribers, t.status = false, nil, statusIdle
	}
	m.dropAll()
	m.conns, m.asks, m.askSeq, m.running, m.lose = nil, nil, 0, false, nil
	m.life++
	for m.clients > 0 {
		m.left.Wait()
	}
}

// after runs fn once d has passed, made faster by the world's speed.
func (m *machine) after(d time.Duration, fn func()) *timer {
	return m.later(time.Duration(float64(d)/m.speed), fn)
}

// later runs fn once d has passed.
func (m *machine) later(d time.Duration, fn func()) *timer {
	t, life := &timer{}, m.life
	t.clock = time.AfterFunc(d, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !t.off && life == m.life {
			fn()
		}
	})
	return t
}

// cancel has a timer, which may be nil, run nothing any more.
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

// notify tells connections something. Only initialized ones that did not opt out get it.
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

// broadcast tells every connection.
func (m *machine) broadcast(method string, params any) { m.notify(m.conns, method, params) }

// publish tells the subscribers of a thread.
func (t *thread) publish(method string, params map[string]any) {
	if params["threadId"] == nil {
		params["threadId"] = t.id
	}
	t.m.notify(t.subscribers, method, params)
}

// setStatus changes what everybody sees of a thread.
func (t *thread) setStatus(status string, flags ...string) {
	t.status, t.flags = status, flags
	t.m.broadcast("thread/status/changed", map[string]any{"threadId": t.id, "status": t.wireStatus()})
}

// leave forgets a connection.
func (m *machine) leave(c *conn) {
	m.conns = slices.DeleteFunc(m.conns, func(have *conn) bool { return have == c })
	for _, t := range m.threads {
		t.unsubscribe(c)
	}
}

func (t *thread) unsubscribe(c *conn) bool {
	before := len(t.subscribers)
	t.subscribers = slices.DeleteFunc(t.subscribers, func(have *conn) bool { return have == c })
	if len(t.subscribers) == before {
		return false
	}
	t.unloadLater()
	return true
}

// unloadLater unloads a thread that nobody uses, as the app-server does after a minute.
func (t *thread) unloadLater() {
	if len(t.subscribers) > 0 || t.turn != nil || !t.loaded {
		return
	}
	t.unload.cancel()
	t.unload = t.m.later(unloadAfter, func() {
		if len(t.subscribers) == 0 && t.turn == nil && t.loaded {
			t.close()
		}
	})
}

// close unloads a thread and tells everybody.
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

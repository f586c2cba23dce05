package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Bounds of a machine.
const (
	// maxQueued is how many requests may wait for the machine. More are refused at once with -32001, as
	// the real app-server does: a client that floods it must learn to wait.
	maxQueued = 150
	// unloadAfter is how long an idle thread without subscribers stays loaded.
	unloadAfter = 60 * time.Second
)

// A machine is one app-server with its threads. Its loop owns everything that changes; nothing in it
// waits. What others want to know or change is given to the loop by do.
type machine struct {
	about  Machine             // Set once
	born   time.Time           // Set once: older turns that are unknown were forgotten
	speed  float64             // Set once
	script func(Prompt) []Step // Set once; nil for the built-in agent
	holds  func(Prompt) bool   // Set once; may be nil
	log    *zap.Logger         // Set once
	unsent int                 // Set once: maxUnsent
	asked  chan asked          // requests of all connections; bounds maxQueued and maxAskedBytes
	held   atomic.Int64        // bytes in asked
	calls  chan func()         // unbuffered: run by the loop
	lost   chan struct{}       // closed by the loop when a machine that leaves is asked for work
	life   sync.Mutex          // guards ended
	ended  chan struct{}       // Guarded by life: closed when the loop has ended; nil while it does not run
	state                      // Owned by loop; while it does not run, by the holder of life
}

// state is what changes on a machine.
type state struct {
	running  bool
	threads  []*thread
	conns    []*conn
	timers   []*timer // sorted by due
	timerSeq uint64
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

func (r asked) size() int64 { return int64(len(r.id) + len(r.call) + len(r.args)) }

// enqueue gives a request to the loop, or reports that there is no room for it.
func (m *machine) enqueue(r asked) bool {
	if m.held.Add(r.size()) <= maxAskedBytes {
		select {
		case m.asked <- r:
			return true
		default:
		}
	}
	m.held.Add(-r.size())
	return false
}

// taken counts a request that has left the queue.
func (m *machine) taken(r asked) asked {
	m.held.Add(-r.size())
	return r
}

// A timer runs something later in the loop.
type timer struct {
	due time.Time
	seq uint64
	run func()
}

func newMachine(about Machine, c Config, log *zap.Logger) *machine {
	return &machine{
		about: about, born: time.Now(), speed: c.Speed, script: c.Script, holds: c.Holds,
		log:    log.With(zap.String("server", about.Name)),
		unsent: maxUnsent, asked: make(chan asked, maxQueued), calls: make(chan func()), lost: make(chan struct{}),
	}
}

// begin makes the caller the one who runs the loop. It reports false when somebody does already.
func (m *machine) begin() bool {
	m.life.Lock()
	defer m.life.Unlock()
	if m.ended != nil {
		return false
	}
	m.ended = make(chan struct{})
	m.running = true
	for len(m.asked) > 0 {
		m.taken(<-m.asked) // from connections of an earlier life
	}
	return true
}

// loop runs the machine until ctx ends, then does what a killed app-server leaves behind: every
// connection is cut, running turns are interrupted for good, nothing is loaded.
func (m *machine) loop(ctx context.Context) {
	clock := time.NewTimer(0)
	defer clock.Stop()
	for ctx.Err() == nil {
		if len(m.timers) > 0 {
			clock.Reset(time.Until(m.timers[0].due))
		}
		select {
		case <-ctx.Done():
		case call := <-m.calls:
			call()
		case r := <-m.asked:
			m.handle(m.taken(r))
		case <-clock.C:
			for now := time.Now(); len(m.timers) > 0 && !m.timers[0].due.After(now); {
				t := m.timers[0]
				m.timers = m.timers[1:]
				t.run()
			}
		}
	}
	m.kill()
	m.life.Lock()
	defer m.life.Unlock()
	close(m.ended)
	m.ended = nil
}

// do runs fn where the state may be touched and returns when it has. It must not be called by the loop.
func (m *machine) do(fn func()) {
	for {
		m.life.Lock()
		ended := m.ended
		if ended == nil {
			fn()
			m.life.Unlock()
			return
		}
		m.life.Unlock()
		done := make(chan struct{})
		select {
		case m.calls <- func() { fn(); close(done) }:
			<-done
			return
		case <-ended:
		}
	}
}

func (m *machine) kill() {
	for _, t := range m.threads {
		if t.turn != nil {
			t.turn.status = "interrupted"
			t.turn.frames, t.turn.open, t.turn.ask = nil, nil, nil
			t.turn = nil
		}
		t.loaded, t.subscribers, t.status = false, nil, statusIdle
	}
	for _, c := range m.conns {
		c.cut()
	}
	m.conns, m.asks, m.timers, m.askSeq, m.running = nil, nil, nil, 0, false
}

// after runs fn in the loop once d has passed, made faster by the world's speed.
func (m *machine) after(d time.Duration, fn func()) *timer {
	return m.later(time.Duration(float64(d)/m.speed), fn)
}

// later runs fn in the loop once d has passed.
func (m *machine) later(d time.Duration, fn func()) *timer {
	m.timerSeq++
	t := &timer{due: time.Now().Add(d), seq: m.timerSeq, run: fn}
	at, _ := slices.BinarySearchFunc(m.timers, t, func(a, b *timer) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.seq, b.seq))
	})
	m.timers = slices.Insert(m.timers, at, t)
	return t
}

func (m *machine) cancel(t *timer) {
	m.timers = slices.DeleteFunc(m.timers, func(have *timer) bool { return have == t })
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
	if c.slow {
		m.tooSlow++
		m.log.Info("a connection that did not read was cut", zap.Uint64("cut", m.tooSlow))
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
	t.m.cancel(t.unload)
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

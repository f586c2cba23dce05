package acp

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/acp/simulator"
	"switchboard/servers/joined/mux"
	"switchboard/servers/serverstest"
	machine "switchboard/servers/simulator"
	"switchboard/servers/transport"
)

// A keptWay reaches a simulated process that a mux has.
type keptWay struct {
	world *simulator.World
	come  chan net.Conn // taken by the mux

	logged *observer.ObservedLogs // Set once: what the mux says

	mu    sync.Mutex
	conns []net.Conn // Guarded by mu: all connections so far
	lose  loss       // Guarded by mu: of the next prompt
}

// A loss is where the connection is lost at a prompt.
type loss int

const (
	never loss = iota
	before
	after
)

// A keptWire loses its connection as it is told.
type keptWire struct {
	pipeWire

	way  *keptWay
	lost atomic.Bool // nothing that comes from now on is heard
}

func (w *keptWire) Read() ([]byte, error) {
	frame, err := w.pipeWire.Read()
	for err == nil && w.lost.Load() {
		_, err = w.pipeWire.Read()
	}
	return frame, err
}

func (w *keptWire) Write(frame []byte) error {
	lose := never
	if strings.Contains(string(frame), `"session/prompt"`) {
		w.way.mu.Lock()
		lose, w.way.lose = w.way.lose, never
		w.way.mu.Unlock()
	}
	if lose == before {
		_ = w.conn.Close()
		return nil // as far as anybody here can tell
	}
	w.lost.Store(lose == after)
	starts := w.way.world.Starts()
	err := w.pipeWire.Write(frame)
	if lose == after { // the mux has the line: a pipe keeps nothing
		_ = w.conn.Close()
		for w.way.world.Starts() == starts {
			time.Sleep(time.Millisecond)
		}
	}
	return err
}

// loseNext has the connection lost at the next prompt; runs: after it has begun.
func (k *keptWay) loseNext(runs bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lose = map[bool]loss{true: after, false: before}[runs]
}

// keep starts a mux with room for so many bytes, which ends with the test; 0: as many as always.
func keep(t *testing.T, w *simulator.World, room int) *keptWay {
	t.Helper()
	core, logged := observer.New(zap.InfoLevel)
	k := &keptWay{world: w, come: make(chan net.Conn), logged: logged}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = mux.Serve(ctx, mux.Config{Listener: (*keptListener)(k), Start: k.start, Room: room, Log: zap.New(core)})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return k
}

func (k *keptWay) start(func(string)) (servers.Wire, error) {
	return pipeWay{k.world}.Open(context.Background(), servers.End{})
}

func (*keptWay) Check(servers.Report, servers.Files) {}
func (*keptWay) Describe(*servers.Spec)              {}
func (k *keptWay) Open(ctx context.Context, end servers.End) (servers.Wire, error) {
	if end.Apart {
		return pipeWay{k.world}.Open(ctx, end)
	}
	ours, theirs := net.Pipe()
	k.mu.Lock()
	k.conns = append(k.conns, ours)
	k.mu.Unlock()
	select {
	case k.come <- theirs:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &keptWire{pipeWire: pipeWire{Lines: transport.NewLines(ours, ours), conn: ours}, way: k}, nil
}

// drop closes all connections. The agent goes on.
func (k *keptWay) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.conns {
		_ = c.Close()
	}
	k.conns = nil
}

// keptListener is the mux's end of a keptWay.
type keptListener keptWay

func (l *keptListener) Accept() (net.Conn, error) {
	conn, ok := <-l.come
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (l *keptListener) Close() error { close(l.come); return nil }
func (*keptListener) Addr() net.Addr { return &net.UnixAddr{Name: "kept", Net: "unix"} }

// lacksKept returns the cases that an agent with a profile and a mux cannot do, with the reasons.
func lacksKept(p simulator.Profile) map[string]string {
	all := lacks(p)
	for name, why := range all {
		if why == whyAlone {
			delete(all, name)
		}
	}
	all["a thread that is held elsewhere is copied"] = "there is one process"
	if !p.Steering {
		all["a turn outlives the connection"] = whySteers
	}
	if p.TitleOnly {
		all["a question is asked again on another connection"] = whyTitle
	}
	return all
}

// TestConformanceKept: an agent with a mux passes the suite, and its work outlives the connection.
func TestConformanceKept(t *testing.T) {
	for name, p := range profiles {
		t.Run(name, func(t *testing.T) {
			serverstest.TestServer(t, func(t *testing.T) serverstest.Harness {
				w := newWorld(p)
				k := keep(t, w, 0)
				h := serverstest.Harness{
					Dial: dialer(t, w, func(c *Config) { named(p)(c); c.Way, c.instance = k, rand.Text }), Drop: k.drop, Release: w.Release, Starts: w.Starts,
					Restart: w.Drop, Pictures: w.Pictures, Dir: t.TempDir(), Gone: "5e550000-0000-4000-8000-999999999999",
					Lacks: lacksKept(p), Unstreamed: true, Terse: p.Output == simulator.OutputText, LoseStart: k.loseNext,
				}
				return h
			})
		})
	}
}

// TestKeptGap: a prompt that sent more than its mux records is read from the session when it has ended, and nothing
// is missing.
func TestKeptGap(t *testing.T) {
	const commands = 20
	output := strings.Repeat("x", 1<<10)
	w := simulator.NewWorld(simulator.Config{Profile: profiles["branching"], Script: func(machine.Prompt) []machine.Step {
		all := []machine.Step{machine.Hang{}}
		for i := range commands {
			all = append(all, machine.Run{Command: fmt.Sprint("make ", i), Lines: linesOf(output)})
		}
		return append(all, machine.Say{Text: "That is all."})
	}})
	k, counters := keep(t, w, 16<<10), newCounters("mac")
	dial := dialer(t, w, func(c *Config) { c.Way, c.Counters = k, counters })
	link := linkTo(t, dial)
	a := create(t, link)
	id := start(t, a, "say much")
	k.drop()
	<-link.Done
	w.Release()
	waitFor(t, func() bool { return k.logged.FilterMessageSnippet("no more room").Len() > 0 })
	link = linkTo(t, dial)
	b := attach(t, link, a.Target.Thread)
	updates := follow(t, b, id, nil)
	if e := end(t, updates); e.Status != handoff.TurnCompleted || e.Text != "That is all." {
		t.Errorf("ended with %.200v", e)
	}
	done := 0
	for _, u := range updates {
		if d, ok := u.(handoff.ItemDone); ok && strings.HasPrefix(d.Item.Text, "make ") {
			done++
		}
	}
	if done != commands {
		t.Errorf("%d commands were heard of", done)
	}
	for m := range counters.Metrics {
		if m.Name == "switchboard_acp_kept_gaps_total" && m.Value != 1 {
			t.Errorf("%s is %v", m.Name, m.Value)
		}
	}
}

package responses

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/zap/zaptest"

	"switchboard/handoff/threads"
	"switchboard/servers"
	"switchboard/servers/responses/sandbox"
	"switchboard/servers/responses/simulator"
	"switchboard/servers/responses/wire"
	"switchboard/servers/responses/workspace"
	"switchboard/servers/serverstest"
	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
	"switchboard/sessions/sqlite"
)

// A rig is a server under test, which can be killed and run again.
type rig struct {
	t     *testing.T
	fake  *fake
	cfg   Config
	mu    sync.Mutex
	conns []servers.Conn // Guarded by mu

	server *Server
	stop   func()
}

func newRig(t *testing.T, f *fake, change func(*Config)) *rig {
	r := &rig{t: t, fake: f}
	dir, as := forCommands(t)
	settings := workspace.Config{Dir: dir, Trusted: true, Env: []string{"PATH=/usr/bin:/bin"}}
	if as != "" {
		settings.User, _ = sandbox.LookupUser(as) // it was found before
	}
	w, err := workspace.Open(t.Context(), settings)
	must(t, err)
	t.Cleanup(func() { _ = w.Close() })
	r.cfg = Config{
		Name: "helper", URL: f.server.URL + "/v1", Model: Model{Name: "m", Instructions: "be brief",
			Continuation: ResponseIDs},
		Threads: threads.NewMemory(), Workspace: w, Dir: dir, Log: zaptest.NewLogger(t),
	}
	if change != nil {
		change(&r.cfg)
	}
	r.run()
	t.Cleanup(func() { r.stop() })
	return r
}

// run runs the server until stop.
func (r *rig) run() {
	ctx, cancel := context.WithCancel(context.Background())
	r.server = newServer(r.cfg)
	var work sync.WaitGroup
	work.Go(func() { _ = r.server.Run(ctx) })
	<-r.server.ready
	r.stop = sync.OnceFunc(func() {
		cancel()
		work.Wait()
	})
}

func (r *rig) dial(ctx context.Context) (*servers.Link, error) {
	link, err := r.server.Dial(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, link.Conn)
	return link, err
}

func (r *rig) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		_ = c.Close()
	}
}

// A mortalStore can be cut off from a process that is killed.
type mortalStore struct {
	threads.Store
	gone atomic.Bool
}

func (m *mortalStore) Advance(ctx context.Context, s threads.Step) (threads.Result, error) {
	if m.gone.Load() {
		return threads.Result{}, errors.New("the process is dead")
	}
	return m.Store.Advance(ctx, s)
}

// kill ends the server as a crash does, and runs a new one.
func (r *rig) kill() {
	store := r.cfg.Threads.(*mortalStore)
	store.gone.Store(true)
	r.drop()
	r.stop()
	r.cfg.Threads = &mortalStore{Store: store.Store}
	r.run()
}

// agentOf is the script of the agent of the conformance suite.
func agentOf(req simulator.Request) simulator.Reply {
	words, answered := lastSaid(req)
	one := func(text string) simulator.Reply {
		return simulator.Reply{Items: []simulator.Item{simulator.Say(text)}}
	}
	n := 0
	use := func(name string, args object) simulator.Item {
		n++
		return simulator.Call(fmt.Sprint("call_", len(req.History), "_", n), name, args)
	}
	command := func(line string) simulator.Item { return use("exec", object{"command": line}) }
	switch words {
	case serverstest.PromptHello:
		return one(serverstest.TextHello)
	case serverstest.PromptCommand:
		if !answered {
			return simulator.Reply{Items: []simulator.Item{command(suiteCommand)}}
		}
		return one(serverstest.TextCommand)
	case serverstest.PromptBoth:
		if !answered {
			return simulator.Reply{Items: []simulator.Item{command(suiteCommand), command(suiteOther)}}
		}
		return one(serverstest.TextBoth)
	case serverstest.PromptEdit:
		if !answered {
			return simulator.Reply{Items: []simulator.Item{use("write_file",
				object{"path": serverstest.EditPath, "content": fmt.Sprint(req.N)})}}
		}
		return one(serverstest.TextEdit)
	case serverstest.PromptAsk:
		switch {
		case !answered:
			return simulator.Reply{Items: []simulator.Item{use("exec",
				object{"command": "echo " + serverstest.AskCommand, "outside": true})}}
		case wire.Read(req.History[len(req.History)-1]).Text() == "Exit code: 0\n"+serverstest.AskCommand+"\n":
			return one(serverstest.TextAccepted)
		}
		return one(serverstest.TextDeclined)
	case serverstest.PromptWait:
		return simulator.Reply{Items: []simulator.Item{simulator.Say(serverstest.TextWaiting),
			simulator.Say(serverstest.TextBack)}, Wait: true}
	case serverstest.PromptMind:
		return one(serverstest.TextMinded)
	case serverstest.PromptFail:
		return simulator.Reply{Failed: "invalid_prompt"}
	}
	return one("I see.")
}

// Commands of the agent of the suite.
const (
	suiteCommand = "printf '" + `first line\nsecond line\n` + "'; exit 3"
	suiteOther   = "echo other line"
)

// TestConformance: this kind of agent passes the suite of all agents, over each kind of store.
func TestConformance(t *testing.T) { onEveryStore(t, conformance) }

// onEveryStore runs a test with each kind of store that outlives its process. The one in memory is held to the same by
// package sessionstest, and runs in the other tests here.
func onEveryStore(t *testing.T, run func(t *testing.T, open func(*testing.T) threads.Store)) {
	memory := sessionstest.StartRedis(t)
	for name, store := range map[string]func(*testing.T) threads.Store{
		"sqlite": func(t *testing.T) threads.Store {
			s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: t.TempDir()})
			return opened(t, s, err)
		},
		"redis": func(t *testing.T) threads.Store {
			s, err := redis.Open(t.Context(), redis.Config{URL: memory.URL, Prefix: strings.ReplaceAll(t.Name(), "/", ":")})
			return opened(t, s, err)
		},
	} {
		t.Run(name, func(t *testing.T) { run(t, store) })
	}
}

// opened runs a store until the test ends.
func opened(t *testing.T, s interface {
	Run(context.Context) error
	Threads() threads.Store
	Close() error
}, err error) threads.Store {
	t.Helper()
	must(t, err)
	var work sync.WaitGroup
	work.Go(func() { _ = s.Run(context.Background()) }) // until it is closed
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		work.Wait()
	})
	return s.Threads()
}

func conformance(t *testing.T, store func(*testing.T) threads.Store) {
	serverstest.TestServer(t, func(t *testing.T) serverstest.Harness {
		f := newFake(t, agentOf)
		r := newRig(t, f, func(c *Config) { c.Threads = &mortalStore{Store: store(t)} })
		var before int
		return serverstest.Harness{
			Dial: r.dial, Drop: r.drop, Release: f.Release, Dir: r.cfg.Dir, Gone: "thr_gone",
			Starts: func() int { return before + int(r.server.count.turns.Load()) },
			Restart: func() {
				before += int(r.server.count.turns.Load())
				r.kill()
			},
			Pictures: func() int {
				n := 0
				for _, req := range f.Requests() {
					n += pictures(req.Input)
				}
				return n
			},
			Command: suiteCommand, OtherCommand: suiteOther,
		}
	})
}

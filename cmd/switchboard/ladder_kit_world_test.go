package main

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/call"
	"switchboard/handoff/call/calltest"
	"switchboard/handoff/homes"
	"switchboard/handoff/router"
	"switchboard/handoff/threads"
	"switchboard/handoff/tools"
	"switchboard/servers"
	"switchboard/servers/responses"
)

// A ladderWorld is the world of a ladder of package call, whose machines are agents of our own on a scripted API. What
// lies between them and the router, how long that takes and how it fails, is the ladder's.
type ladderWorld struct {
	*calltest.World // Set once, like all up to mu
	store           *threads.Memory
	agents          *responses.Agents
	api             *ladderAPI
	stop            func()          // ends the agents
	found           map[string]bool // by thread: a start is lost on its way back

	mu       sync.Mutex
	machines map[string]*servers.Link // Guarded by mu, like all that follows: by name
	real     map[string]string        // the ids of threads that were made, by what the ladder calls them
}

func newLadderWorld(t *testing.T, words []string) *ladderWorld {
	w := &ladderWorld{World: calltest.NewWorld(t), store: threads.NewMemory(), found: map[string]bool{},
		machines: map[string]*servers.Link{}, real: map[string]string{}}
	w.Machines = w
	w.api, w.agents = newLadderAPI(w.Plans), responses.NewAgents(w.store, nil)
	var running [][2]string
	for _, line := range words {
		verb, rest, _ := strings.Cut(line, " ")
		first, more, _ := strings.Cut(rest, " ")
		switch {
		case verb == "reconciles": // an agent of this kind always tells what became of a start
			w.found[first] = more == "found"
		case verb == "running":
			running = append(running, [2]string{first, more})
		case verb == "deaf": // an agent of this kind hears nothing while its model speaks
		case !w.Word(line):
			t.Fatalf("the world has no word %q", verb)
		}
	}
	added := map[string]*responses.Server{}
	for _, name := range w.Names() {
		added[name] = w.agents.Add(responses.Config{
			Name: name, URL: "http://upstream/v1", Client: &http.Client{Transport: inMemory{w.api}}, Threads: w.store,
			Workspace: ladderTools{}, Dir: "/src", Log: zap.NewNop(),
			Model: responses.Model{Name: "m", Continuation: responses.ResponseIDs},
		})
	}
	stop := background(t, w.agents.Run)
	w.stop = func() {
		stop()
		for _, link := range w.machines {
			_ = link.Conn.Close()
		}
	}
	for name, agent := range added {
		link, err := agent.Dial(t.Context())
		must(t, err)
		w.machines[name] = link
	}
	for _, r := range running {
		w.theirs(r[0], r[1])
	}
	return w
}

// live is a life of a router with the calls that it serves.
func (w *ladderWorld) live(life string) (*homes.Homes, calltest.Calls) {
	return routerAndCalls(life, w.Config(life), w)
}

// routerAndCalls is a life of a router with the calls that it serves, whose tools list what d has.
func routerAndCalls(life string, cfg router.Config, d handoff.Directory) (*homes.Homes, calltest.Calls) {
	r := homes.New(cfg)
	trees, _ := d.(tools.Trees)
	return r, call.New(call.Config{Handoffs: r, Attending: r, Questions: r, Shown: r.Shown, Life: life,
		Tools: tools.Backend{Directory: d, Resolver: cfg.Fleet, Trees: trees, Work: r, Questions: r}})
}

// theirs has somebody else's turn run in a thread.
func (w *ladderWorld) theirs(thread, lasts string) {
	synctest.Wait() // the agents run
	server := w.Names()[0]
	w.api.begin(thread, []string{lasts + " completed Theirs."})
	at, err := w.known(w.T.Context(), server, thread)
	if err == nil {
		_, err = at.Agent.Start(w.T.Context(), handoff.Turn{ID: "theirs", Input: handoff.TextInput("theirs")})
	}
	must(w.T, err)
}

// known attaches a thread of a ladder, which was there before.
func (w *ladderWorld) known(ctx context.Context, server, thread string) (handoff.Attached, error) {
	w.mu.Lock()
	link, id := w.machines[server], w.real[thread]
	w.mu.Unlock()
	if id == "" {
		id = thread
		if _, err := w.store.Advance(ctx, threads.Create{Owner: server, Thread: id, Title: w.Titles[thread], Dir: "/src", At: time.Now()}); err != nil {
			return handoff.Attached{}, err
		}
	}
	return link.Conn.Attach(ctx, id)
}

// Known implements [calltest.Machines].
func (w *ladderWorld) Known(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	at, err := w.known(ctx, t.Server, t.Thread)
	return w.behind(at, t), err
}

// Make implements [calltest.Machines].
func (w *ladderWorld) Make(ctx context.Context, t handoff.Target, ephemeral bool) (handoff.Attached, error) {
	conn := w.machines[t.Server].Conn
	create := conn.Create
	if ephemeral {
		create = conn.(servers.Ephemeral).CreateEphemeral
	}
	at, err := create(ctx, "")
	return w.made(at, t), err
}

// Copy implements [calltest.Machines].
func (w *ladderWorld) Copy(
	ctx context.Context, from handoff.Target, last handoff.TurnID, t handoff.Target,
) (handoff.Attached, error) {
	source, err := w.known(ctx, from.Server, from.Thread)
	if err != nil {
		return source, err
	}
	at, err := w.machines[t.Server].Conn.(servers.Forker).Fork(ctx, source.Target.Thread, last)
	return w.made(at, t), err
}

// made is a thread that was made for what the ladder calls t.
func (w *ladderWorld) made(at handoff.Attached, t handoff.Target) handoff.Attached {
	if at.Agent == nil {
		return at
	}
	w.mu.Lock()
	w.real[t.Thread] = at.Target.Thread
	w.mu.Unlock()
	w.api.call(at.Target.Thread, t.Thread)
	return w.behind(at, t)
}

// behind is a thread behind the way to its machine.
func (w *ladderWorld) behind(at handoff.Attached, t handoff.Target) handoff.Attached {
	if at.Agent != nil {
		controls, _ := at.Agent.(handoff.Controls) // an agent of this kind is all of these
		reconciler, _ := at.Agent.(handoff.Reconciler)
		at.Agent = &ladderAgent{at.Agent, controls, reconciler, w, t}
	}
	return at
}

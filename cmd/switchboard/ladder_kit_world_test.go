package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/call/calltest"
	"switchboard/handoff/threads"
	"switchboard/servers"
	"switchboard/servers/responses"
)

// A ladderWorld is the world of a ladder of package call, whose machines are agents of our own on a scripted API. What
// lies between them and the router, how long that takes and how it fails, is the ladder's.
type ladderWorld struct {
	*calltest.World // Set once, like all up to mu
	ledger          *calltest.Ledger
	store           *threads.Memory
	agents          *responses.Agents
	api             *ladderAPI
	stop            func() // ends the agents

	found map[string]bool // Set once: by thread: a start is lost on its way back

	mu       sync.Mutex
	machines map[string]*servers.Link // Guarded by mu, like all that follows: by name
	real     map[string]string        // the ids of threads that were made, by what the ladder calls them
	lines    []string                 // what was said to whom
}

func newLadderWorld(t *testing.T, words []string) *ladderWorld {
	w := &ladderWorld{
		World: calltest.NewWorld(
			t,
		), store: threads.NewMemory(), found: map[string]bool{}, machines: map[string]*servers.Link{}, real: map[string]string{},
	}
	w.ledger = calltest.NewLedger(w.World)
	w.api, w.agents = newLadderAPI(w.Plans), responses.NewAgents(w.store)
	var running [][2]string
	added := map[string]*responses.Server{}
	for _, line := range words {
		if name, ok := strings.CutPrefix(line, "server "); ok {
			name, _, _ = strings.Cut(name, " ")
			added[name] = w.add(name)
			continue
		}
		if thread, ok := strings.CutPrefix(line, "running "); ok {
			name, lasts, _ := strings.Cut(thread, " ")
			running = append(running, [2]string{name, lasts})
			continue
		}
		w.word(line)
	}
	stop := background(t, w.agents.Run)
	w.stop = func() {
		stop()
		for _, link := range w.machines {
			_ = link.Conn.Close()
		}
	}
	for name, agent := range added {
		w.connect(name, agent)
	}
	for _, r := range running {
		w.theirs(r[0], r[1])
	}
	return w
}

// word reads one line of a world.
func (w *ladderWorld) word(line string) {
	verb, rest, _ := strings.Cut(line, " ")
	first, more, _ := strings.Cut(rest, " ")
	switch verb {
	case "reconciles": // an agent of this kind always tells what became of a start
		w.found[first] = more == "found"
	case "entry":
		w.ledger.Leave(strings.Fields(rest))
	case "deaf": // it hears nothing while its model speaks
	default:
		if !w.Word(line) && !w.ledger.Word(line) {
			w.T.Fatalf("the world has no word %q", verb)
		}
	}
}

// add adds a machine.
func (w *ladderWorld) add(name string) *responses.Server {
	w.Join(name)
	return w.agents.Add(responses.Config{
		Name: name, URL: "http://upstream/v1", Client: &http.Client{Transport: inMemory{w.api}}, Threads: w.store, Workspace: ladderTools{}, Dir: "/src",
		Log: zap.NewNop(), Model: responses.Model{Name: "m", Continuation: responses.ResponseIDs},
	})
}

// connect connects to a machine, which runs.
func (w *ladderWorld) connect(name string, agent *responses.Server) {
	link, err := agent.Dial(w.T.Context())
	must(w.T, err)
	w.mu.Lock()
	w.machines[name] = link
	w.mu.Unlock()
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

// record notes what somebody is told.
func (w *ladderWorld) record(column, what, text string) {
	if column == "call" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(
		w.lines,
		strings.TrimSpace(
			fmt.Sprintf("%6d  %-6s %s", time.Since(w.Began).Milliseconds(), column, strings.TrimSpace(what+": "+text)),
		),
	)
}

func (w *ladderWorld) said() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lines)
}

// Attach implements [handoff.Fleet].
func (w *ladderWorld) Attach(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	if err := w.Reach(ctx, t); err != nil {
		return handoff.Attached{}, err
	}
	at, err := w.known(ctx, t.Server, t.Thread)
	return w.attached(at, t), err
}

// Create implements [handoff.Fleet].
func (w *ladderWorld) Create(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	return w.create(ctx, t, "fresh", func(c servers.Conn) (handoff.Attached, error) { return c.Create(ctx, "") })
}

// CreateEphemeral implements [handoff.Ephemeral].
func (w *ladderWorld) CreateEphemeral(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	return w.create(
		ctx,
		t,
		"aside",
		func(c servers.Conn) (handoff.Attached, error) { return c.(servers.Ephemeral).CreateEphemeral(ctx, "") },
	)
}

// Fork implements [handoff.Forker].
func (w *ladderWorld) Fork(ctx context.Context, t handoff.Target, last handoff.TurnID) (handoff.Attached, error) {
	if err := w.Wait(ctx, w.AttachTakes); err != nil {
		return handoff.Attached{}, err
	}
	source, err := w.known(ctx, t.Server, t.Thread)
	if err != nil {
		return source, err
	}
	at, err := w.machines[t.Server].Conn.(servers.Forker).Fork(ctx, source.Target.Thread, last)
	if err != nil {
		return at, err
	}
	from := t.Thread
	t.Thread = "copy-" + from
	w.mu.Lock()
	w.real[t.Thread] = at.Target.Thread
	w.mu.Unlock()
	w.api.call(at.Target.Thread, t.Thread)
	made := w.attached(at, t)
	made.Title = w.Titles[from]
	return made, nil
}

func (w *ladderWorld) create(
	ctx context.Context,
	t handoff.Target,
	name string,
	create func(servers.Conn) (handoff.Attached, error),
) (handoff.Attached, error) {
	t, err := w.Make(ctx, t, name)
	if err != nil {
		return handoff.Attached{}, err
	}
	at, err := create(w.machines[t.Server].Conn)
	if err != nil {
		return at, err
	}
	w.mu.Lock()
	w.real[t.Thread] = at.Target.Thread
	w.mu.Unlock()
	w.api.call(at.Target.Thread, t.Thread)
	return w.attached(at, t), nil
}

// attached is a thread under the name and title that it has in the ladder.
func (w *ladderWorld) attached(at handoff.Attached, t handoff.Target) handoff.Attached {
	if at.Agent == nil {
		return at
	}
	at.Target, at.Title, at.VoiceApprovals = t, w.Titles[t.Thread], w.Voice
	controls, _ := at.Agent.(handoff.Controls) // an agent of this kind is all of these
	reconciler, _ := at.Agent.(handoff.Reconciler)
	at.Agent = &ladderAgent{at.Agent, controls, reconciler, w, t}
	return at
}

// List implements [handoff.Stickies].
func (w *ladderWorld) List(context.Context, handoff.Caller) ([]handoff.Sticky, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.Stickies)), w.Failure("store read", "the store")
}

// Set implements [handoff.Stickies].
func (w *ladderWorld) Set(_ context.Context, _ handoff.Caller, s handoff.Sticky) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Stickies[s.Target.Server] = s
	return nil
}

// Clear implements [handoff.Stickies].
func (w *ladderWorld) Clear(_ context.Context, _ handoff.Caller, t handoff.Target) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.Stickies, t.Server)
	return nil
}

// Notify implements [handoff.Notifier].
func (w *ladderWorld) Notify(n handoff.Notice) {
	w.record("page", "notice", string(n.Kind)+" "+n.Handoff+" "+n.Text)
}

// errLists is why ladders of lists are not played: they are about the directory.
var errLists = errors.New("this world has no lists")

// Servers implements the directory of package tools.
func (w *ladderWorld) Servers(context.Context, handoff.Grant) (all []handoff.ServerInfo) {
	for _, name := range w.Names() {
		all = append(all, handoff.ServerInfo{Name: name, Kind: responses.Name, Health: handoff.HealthUp})
	}
	return all
}

// Sessions implements the directory of package tools.
func (w *ladderWorld) Sessions(context.Context, handoff.Grant, handoff.SessionQuery) (handoff.SessionList, error) {
	return handoff.SessionList{}, errLists
}

// Read implements the directory of package tools.
func (w *ladderWorld) Read(_ context.Context, _ handoff.Grant, t handoff.Target, _ int) (handoff.Transcript, error) {
	if err := w.Failure("read "+t.Thread, t.Thread); err != nil {
		return handoff.Transcript{}, err
	}
	return handoff.Transcript{Server: t.Server, ID: t.Thread, Title: "Auth refactor", Lines: []handoff.Line{{Role: "agent", Text: "One test fails."}}}, nil
}

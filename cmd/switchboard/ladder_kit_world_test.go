package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers"
	"switchboard/servers/responses"
)

// A ladderWorld is the world of a ladder of package call, whose machines are agents of our own on a scripted API. What
// lies between them and the router, how long that takes and how it fails, is the ladder's.
type ladderWorld struct {
	t      *testing.T
	began  time.Time
	store  *threads.Memory
	agents *responses.Agents
	api    *ladderAPI
	cancel func()
	work   sync.WaitGroup

	attach, start, patience, audit time.Duration               // Set once, like all up to mu
	voiced                         string                      // what may be approved by voice
	aliases                        map[string][]string         //
	found                          map[string]bool             // by thread: a start is lost on its way back
	downs                          map[string][2]time.Duration //
	crowded                        atomic.Bool                 // several calls were open at once

	mu       sync.Mutex
	names    []string                 // Guarded by mu, like all that follows
	machines map[string]*servers.Link // by name
	stickies []handoff.Sticky         // what the store has from the beginning
	titles   map[string]string        // of threads
	real     map[string]string        // the ids of threads that were made, by what the ladder calls them
	fails    map[string]handoff.Code  //
	once     map[string]handoff.Code  //
	made     int                      // threads
	lines    []string                 // what was said to whom
}

func newLadderWorld(t *testing.T, words []string) *ladderWorld {
	w := &ladderWorld{
		t: t, began: time.Now(), store: threads.NewMemory(), api: newLadderAPI(), attach: 40 * time.Millisecond, start: 10 * time.Millisecond,
		aliases: map[string][]string{}, found: map[string]bool{}, downs: map[string][2]time.Duration{}, machines: map[string]*servers.Link{}, titles: map[string]string{},
		real: map[string]string{}, fails: map[string]handoff.Code{}, once: map[string]handoff.Code{},
	}
	w.agents = responses.NewAgents(w.store)
	var running [][2]string
	for _, line := range words {
		if thread, ok := strings.CutPrefix(line, "running "); ok {
			name, lasts, _ := strings.Cut(thread, " ")
			running = append(running, [2]string{name, lasts})
			continue
		}
		w.word(line)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.work.Go(func() { _ = w.agents.Run(ctx) })
	for _, r := range running {
		w.theirs(r[0], r[1])
	}
	return w
}

func (w *ladderWorld) stop() {
	w.cancel()
	w.work.Wait()
	for _, link := range w.machines {
		_ = link.Conn.Close()
	}
}

// word reads one line of a world; see package call.
func (w *ladderWorld) word(line string) {
	verb, rest, _ := strings.Cut(line, " ")
	first, more, _ := strings.Cut(rest, " ")
	next, last, _ := strings.Cut(more, " ")
	switch verb {
	case "server":
		w.add(first)
	case "sticky":
		w.stickies = append(w.stickies, handoff.Sticky{Target: handoff.Target{Server: first, Thread: next}, Title: last, Since: w.began.Add(-30 * time.Second)})
		w.titles[next] = last
	case "titled":
		w.titles[first] = more
	case "attach":
		w.attach = w.duration(first)
	case "start":
		w.start = w.duration(first)
	case "audit":
		w.audit = w.duration(first)
	case "patience":
		w.patience = w.duration(first)
	case "fail":
		w.fails[first+" "+next] = handoff.Code(last)
	case "once":
		w.once[first+" "+next] = handoff.Code(last)
	case "down":
		w.downs[first] = [2]time.Duration{w.duration(next), w.duration(last)}
	case "alias":
		w.aliases[first] = append(w.aliases[first], more)
	case "voice":
		w.voiced = first
	case "turn":
		w.api.plans[first] = strings.Split(more, ";")
	case "settles": // an agent of this kind always tells what became of a start
		w.found[first] = more == "found"
	case "deaf": // it hears nothing while its model speaks
	default:
		w.t.Fatalf("the world has no word %q", verb)
	}
}

func (w *ladderWorld) duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// add adds a machine.
func (w *ladderWorld) add(name string) {
	agent := w.agents.Add(responses.Config{
		Name: name, URL: "http://upstream/v1", Client: &http.Client{Transport: inMemory{w.api}}, Threads: w.store, Workspace: ladderTools{}, Dir: "/src",
		Log: zap.NewNop(), Model: responses.Model{Name: "m", Continuation: responses.ResponseIDs},
	})
	link, err := agent.Dial(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names, w.machines[name] = append(slices.Clone(w.names), name), link
}

// theirs has somebody else's turn run in a thread.
func (w *ladderWorld) theirs(thread, lasts string) {
	synctest.Wait() // the agents run
	server := w.names[0]
	w.api.begin(thread, []string{lasts + " completed Theirs."})
	at, err := w.known(w.t.Context(), server, thread)
	if err == nil {
		_, err = at.Agent.Start(w.t.Context(), handoff.Turn{ID: "theirs", Input: handoff.TextInput("theirs")})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// known attaches a thread of a ladder, which was there before.
func (w *ladderWorld) known(ctx context.Context, server, thread string) (handoff.Attached, error) {
	w.mu.Lock()
	link, id, made := w.machines[server], w.real[thread], w.titles[thread]
	w.mu.Unlock()
	if id == "" {
		id = thread
		if _, err := w.store.Advance(ctx, threads.Create{Owner: server, Thread: id, Title: made, Dir: "/src", At: time.Now()}); err != nil {
			return handoff.Attached{}, err
		}
	}
	return link.Conn.Attach(ctx, id)
}

// record notes what somebody is told.
func (w *ladderWorld) record(lane, what, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, strings.TrimSpace(fmt.Sprintf("%6d  %-6s %s", time.Since(w.began).Milliseconds(), lane, strings.TrimSpace(what+": "+text))))
}

func (w *ladderWorld) said() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lines)
}

// lose makes a thread one that does not exist any more.
func (w *ladderWorld) lose(thread string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fails["attach "+thread] = handoff.CodeSessionGone
}

// failure is how the way to a machine fails.
func (w *ladderWorld) failure(what, subject string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if code, ok := w.once[what]; ok {
		delete(w.once, what)
		return handoff.Fault(code, subject, "")
	}
	if code, ok := w.fails[what]; ok {
		return handoff.Fault(code, subject, "")
	}
	return nil
}

// wait takes the time of the way to a machine.
func (w *ladderWorld) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return handoff.Fault(handoff.CodeUnreachable, "it", "")
	}
}

// Resolve implements [handoff.Fleet]: it knows names exactly, and passes threads on.
func (w *ladderWorld) Resolve(_ context.Context, _ handoff.Grant, t handoff.Target) (handoff.Target, error) {
	if err := w.failure("resolve "+t.Server, t.Server); err != nil {
		return handoff.Target{}, err
	}
	name, project, _ := strings.Cut(t.Server, "/")
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains(w.names, name) {
		return handoff.Target{Server: name, Project: project, Thread: t.Thread}, nil
	}
	return handoff.Target{}, &handoff.Error{Code: handoff.CodeUnknownServer, Subject: t.Server, Choices: w.names}
}

// Attach implements [handoff.Fleet].
func (w *ladderWorld) Attach(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	if err := w.wait(ctx, w.attach); err != nil {
		return handoff.Attached{}, err
	}
	if d, ok := w.downs[t.Server]; ok && time.Since(w.began) >= d[0] && time.Since(w.began) < d[1] {
		return handoff.Attached{}, handoff.Fault(handoff.CodeUnreachable, t.Server, "")
	}
	if err := w.failure("attach "+t.Thread, t.Thread); err != nil {
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
	return w.create(ctx, t, "aside", func(c servers.Conn) (handoff.Attached, error) { return c.(servers.Ephemeral).CreateEphemeral(ctx, "") })
}

// ForkEphemeral implements [handoff.Ephemeral].
func (w *ladderWorld) ForkEphemeral(_ context.Context, t handoff.Target, _ handoff.TurnID) (handoff.Attached, error) {
	return handoff.Attached{}, handoff.Fault(handoff.CodeUnsupported, t.Server, "")
}

func (w *ladderWorld) create(ctx context.Context, t handoff.Target, name string, create func(servers.Conn) (handoff.Attached, error)) (handoff.Attached, error) {
	if err := w.wait(ctx, w.attach); err != nil {
		return handoff.Attached{}, err
	}
	if err := w.failure("create "+t.Server, t.Server); err != nil {
		return handoff.Attached{}, err
	}
	at, err := create(w.machines[t.Server].Conn)
	if err != nil {
		return at, err
	}
	w.mu.Lock()
	w.made++
	t.Thread = fmt.Sprintf("%s-%d", name, w.made)
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
	w.mu.Lock()
	defer w.mu.Unlock()
	at.Target, at.Title, at.VoiceApprovals = t, w.titles[t.Thread], w.voiced
	controls, _ := at.Agent.(handoff.Controls) // an agent of this kind is all of these
	watcher, _ := at.Agent.(handoff.Watcher)
	reconciler, _ := at.Agent.(handoff.Reconciler)
	at.Agent = &ladderAgent{at.Agent, controls, watcher, reconciler, w, t}
	return at
}

// Registered implements [handoff.Registrar].
func (w *ladderWorld) Registered(server string) handoff.Registered {
	return handoff.Registered{Names: append([]string{server}, w.aliases[server]...), VoiceApprovals: w.voiced}
}

// List implements [handoff.Stickies].
func (w *ladderWorld) List(context.Context, handoff.Caller) ([]handoff.Sticky, error) {
	return w.stickies, w.failure("store read", "the store")
}

// Set implements [handoff.Stickies].
func (w *ladderWorld) Set(context.Context, handoff.Caller, handoff.Sticky) error { return nil }

// Clear implements [handoff.Stickies].
func (w *ladderWorld) Clear(context.Context, handoff.Caller, handoff.Target) error { return nil }

// Notify implements [handoff.Notifier].
func (w *ladderWorld) Notify(n handoff.Notice) {
	w.record("page", "notice", string(n.Kind)+" "+n.Handoff+" "+n.Text)
}

// Audit implements [handoff.Auditor].
func (w *ladderWorld) Audit(ctx context.Context, _ handoff.AuditRecord) error {
	if err := w.wait(ctx, w.audit); err != nil {
		return err
	}
	return w.failure("audit x", "the audit")
}

// errLists is why ladders of lists are not played: they are about the directory.
var errLists = errors.New("this world has no lists")

// Servers implements the directory of package tools.
func (w *ladderWorld) Servers(context.Context, handoff.Grant) (all []handoff.ServerInfo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range w.names {
		all = append(all, handoff.ServerInfo{Name: name, Kind: responses.Name, Health: handoff.HealthUp})
	}
	return all
}

// Sessions implements the directory of package tools.
func (w *ladderWorld) Sessions(context.Context, handoff.Grant, handoff.SessionQuery) (handoff.SessionList, error) {
	return handoff.SessionList{}, errLists
}

// Read implements the directory of package tools.
func (w *ladderWorld) Read(context.Context, handoff.Grant, handoff.Target, int) (handoff.Transcript, error) {
	return handoff.Transcript{}, errLists
}

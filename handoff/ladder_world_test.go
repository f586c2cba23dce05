package handoff

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A world is a fleet, a directory and a store for ladders. Its words, one a line:
//
//	server NAME                       a machine
//	sticky SERVER THREAD TITLE...     what the store has
//	titled THREAD TITLE...            the title of a thread
//	attach DURATION                   how long a resume or a creation takes
//	start DURATION                    how long an acknowledgement takes
//	fail WHAT CODE                    attach THREAD | create SERVER | start THREAD | resolve SERVER | store X
//	running THREAD                    somebody's turn runs there
//	returns THREAD OTHER              a resume gives back another thread
//	turn THREAD STEP; STEP...         what turns do there; THREAD * is any. STEP is
//	                                  DURATION message TEXT | command TEXT | ask COMMAND | gone |
//	                                  completed TEXT | failed TEXT | interrupted
type world struct {
	t     *testing.T
	began time.Time

	servers  []string                     // Set once
	titles   map[string]string            // Set once
	attach   time.Duration                // Set once
	start    time.Duration                // Set once
	fails    map[string]Code              // Set once
	running  map[string]bool              // Set once
	returns  map[string]string            // Set once
	plans    map[string][]string          // Set once
	mu       sync.Mutex                   //
	rungs    []rung                       // Guarded by mu
	stickies map[string]Sticky            // Guarded by mu
	created  int                          // Guarded by mu
	turns    int                          // Guarded by mu
	wake     map[TurnID]chan TurnStatus   // Guarded by mu: interrupts
	answers  map[QuestionID]chan Decision // Guarded by mu
}

func newWorld(t *testing.T, text string) *world {
	w := &world{
		t: t, began: time.Now(), titles: map[string]string{}, fails: map[string]Code{}, running: map[string]bool{},
		returns: map[string]string{}, plans: map[string][]string{}, stickies: map[string]Sticky{},
		wake: map[TurnID]chan TurnStatus{}, answers: map[QuestionID]chan Decision{},
		attach: 40 * time.Millisecond, start: 10 * time.Millisecond,
	}
	for _, line := range lines(text) {
		w.word(line)
	}
	return w
}

func (w *world) word(line string) {
	verb, rest, _ := strings.Cut(line, " ")
	first, more, _ := strings.Cut(rest, " ")
	switch verb {
	case "server":
		w.servers = append(w.servers, first)
	case "sticky":
		thread, title, _ := strings.Cut(more, " ")
		w.stickies[first] = Sticky{Target: Target{Server: first, Thread: thread}, Title: title}
		w.titles[thread] = title
	case "titled":
		w.titles[first] = more
	case "attach":
		w.attach = w.duration(first)
	case "start":
		w.start = w.duration(first)
	case "fail":
		object, code, _ := strings.Cut(more, " ")
		w.fails[first+" "+object] = Code(code)
	case "running":
		w.running[first] = true
	case "returns":
		w.returns[first] = more
	case "turn":
		w.plans[first] = strings.Split(more, ";")
	default:
		w.t.Fatalf("the world has no word %q", verb)
	}
}

func (w *world) duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w *world) record(lane, what, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := strings.TrimSpace(what + ": " + text)
	r := rung{at: time.Since(w.began), lane: lane, index: len(w.rungs), text: line}
	if lane == "agent" || lane == "say" || lane == "store" {
		r.who = what
	}
	w.rungs = append(w.rungs, r)
}

func (w *world) ladder() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	sortRungs(w.rungs)
	var b strings.Builder
	for _, r := range w.rungs {
		if r.lane == "end" {
			fmt.Fprintf(&b, "end   %s\n", strings.TrimPrefix(r.text, ": "))
			continue
		}
		fmt.Fprintf(&b, "%6d  %-6s %s\n", r.at.Milliseconds(), r.lane, r.text)
	}
	return b.String()
}

func (w *world) failure(what, subject string) error {
	if code, ok := w.fails[what]; ok {
		return Fault(code, subject, "")
	}
	return nil
}

// Resolve knows names exactly, and passes threads on.
func (w *world) Resolve(_ context.Context, _ Caller, t Target) (Target, error) {
	if err := w.failure("resolve "+t.Server, t.Server); err != nil {
		return Target{}, err
	}
	name, project, _ := strings.Cut(t.Server, "/")
	if slices.Contains(w.servers, name) {
		return Target{Server: name, Project: project, Thread: t.Thread}, nil
	}
	return Target{}, &Error{Code: CodeUnknownServer, Subject: t.Server, Choices: w.servers}
}

func (w *world) Attach(ctx context.Context, t Target) (Attached, error) {
	w.record("agent", t.Server, "resume "+t.Thread)
	if err := w.wait(ctx, w.attach); err != nil {
		return Attached{}, err
	}
	if err := w.failure("attach "+t.Thread, t.Thread); err != nil {
		return Attached{}, err
	}
	if other := w.returns[t.Thread]; other != "" {
		t.Thread = other
	}
	at := w.attached(t)
	if w.running[t.Thread] {
		at.Running = "turn-of-somebody"
	}
	return at, nil
}

func (w *world) Create(ctx context.Context, t Target) (Attached, error) {
	w.record("agent", t.Server, "create "+t.Project)
	if err := w.wait(ctx, w.attach); err != nil {
		return Attached{}, err
	}
	if err := w.failure("create "+t.Server, t.Server); err != nil {
		return Attached{}, err
	}
	w.mu.Lock()
	w.created++
	t.Thread = fmt.Sprintf("fresh-%d", w.created)
	w.mu.Unlock()
	return w.attached(t), nil
}

func (w *world) attached(t Target) Attached {
	return Attached{Agent: &fakeAgent{world: w, target: t}, Target: t, Title: w.titles[t.Thread]}
}

func (w *world) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return Fault(CodeUnreachable, "it", "")
	}
}

func (w *world) List(context.Context, Caller) ([]Sticky, error) {
	w.record("store", "read", "stickies")
	if err := w.failure("store read", "the store"); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Sticky
	for _, s := range w.stickies {
		out = append(out, s)
	}
	return out, nil
}

func (w *world) Set(_ context.Context, _ Caller, s Sticky) error {
	named := ""
	if s.Named {
		named = " (named)"
	}
	w.record("store", "set", keyOf(s.Target).String()+" -> "+s.Target.Thread+named)
	return nil
}

func (w *world) Clear(_ context.Context, _ Caller, t Target) error {
	w.record("store", "clear", keyOf(t).String())
	return nil
}

func (w *world) Servers(context.Context, Caller) []ServerInfo {
	var out []ServerInfo
	for _, s := range w.servers {
		out = append(out, ServerInfo{Name: s, Kind: "codex", Health: HealthUp})
	}
	return out
}

func (w *world) Sessions(context.Context, Caller, SessionQuery) (SessionList, error) {
	return SessionList{Items: []SessionInfo{{ID: "t1", Label: "auth refactor", Title: "Auth refactor", Server: "bigpc", Age: "5 minutes ago", Status: SessionIdle}}}, nil
}

func (w *world) Read(_ context.Context, _ Caller, t Target, _ int) (Transcript, error) {
	return Transcript{Server: t.Server, ID: t.Thread, Title: "Auth refactor", Lines: []Line{{Role: "agent", Text: "One test fails."}}}, nil
}

// A fakeAgent is one attached thread of a world.
type fakeAgent struct {
	world  *world
	target Target
}

func (a *fakeAgent) name() string { return a.target.Server + " " + a.target.Thread }

func (a *fakeAgent) Start(ctx context.Context, turn Turn) (TurnID, error) {
	w := a.world
	heard := ""
	for _, c := range turn.Context {
		if !c.Trusted {
			heard = fmt.Sprintf(" [%s: %s]", c.Key, c.Value)
		}
	}
	w.record("agent", a.name(), fmt.Sprintf("start %s %q%s", turn.ID, turn.Prompt, heard))
	if err := w.wait(ctx, w.start); err != nil {
		return "", err
	}
	if err := w.failure("start "+a.target.Thread, a.target.Server); err != nil {
		return "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turns++
	id := TurnID(fmt.Sprintf("turn-%d", w.turns))
	w.wake[id] = make(chan TurnStatus, 1)
	return id, nil
}

func (a *fakeAgent) Follow(ctx context.Context, id TurnID) iter.Seq2[Update, error] {
	w := a.world
	plan := w.plans[a.target.Thread]
	if plan == nil {
		plan = w.plans["*"]
	}
	w.mu.Lock()
	wake := w.wake[id]
	w.mu.Unlock()
	return func(yield func(Update, error) bool) {
		for i, step := range plan {
			after, rest, _ := strings.Cut(strings.TrimSpace(step), " ")
			select {
			case <-time.After(w.duration(after)):
			case <-wake:
				w.record("agent", a.name(), "turn interrupted")
				yield(TurnEnded{Status: TurnInterrupted}, nil)
				return
			case <-ctx.Done():
				return
			}
			if !a.report(ctx, id, fmt.Sprintf("item-%d", i), rest, yield) {
				return
			}
		}
	}
}

func (a *fakeAgent) report(ctx context.Context, id TurnID, item, step string, yield func(Update, error) bool) bool {
	w := a.world
	verb, text, _ := strings.Cut(step, " ")
	switch verb {
	case "message":
		w.record("agent", a.name(), "says "+text)
		return yield(ItemStarted{Item{ID: item, Kind: ItemMessage}}, nil) && yield(Delta{item, text}, nil) &&
			yield(ItemDone{Item{ID: item, Kind: ItemMessage, Text: text}}, nil)
	case "command":
		w.record("agent", a.name(), "runs "+text)
		return yield(ItemDone{Item{ID: item, Kind: ItemCommand, Text: text, Exit: new(0)}}, nil)
	case "ask":
		return a.ask(ctx, id, QuestionID(item), text, yield)
	case "gone":
		yield(nil, Fault(CodeAgentGone, a.target.Server, ""))
		return false
	case "completed", "failed", "interrupted":
		w.record("agent", a.name(), "turn "+step)
		yield(TurnEnded{Status: map[string]TurnStatus{"failed": TurnFailed, "interrupted": TurnInterrupted}[verb], Text: text}, nil)
		return false
	}
	w.t.Errorf("no step %q", step)
	return false
}

func (a *fakeAgent) ask(ctx context.Context, id TurnID, q QuestionID, command string, yield func(Update, error) bool) bool {
	w := a.world
	w.record("agent", a.name(), "asks for "+command)
	answer := make(chan Decision, 1)
	w.mu.Lock()
	w.answers[q] = answer
	wake := w.wake[id]
	w.mu.Unlock()
	if !yield(Question{ID: q, Kind: QuestionCommand, Turn: id, Command: command, Decisions: []Decision{DecisionAccept, DecisionDecline}, Asked: time.Now()}, nil) {
		return false
	}
	select {
	case d := <-answer:
		w.record("agent", a.name(), "got "+string(d))
		return yield(QuestionClosed{ID: q}, nil)
	case <-wake:
		w.record("agent", a.name(), "turn interrupted")
		return yield(QuestionClosed{ID: q}, nil) && yield(TurnEnded{Status: TurnInterrupted}, nil) && false
	case <-ctx.Done():
		return false
	}
}

func (a *fakeAgent) Close() error {
	a.world.record("agent", a.name(), "detach")
	return nil
}

func (a *fakeAgent) Steer(context.Context, TurnID, string) error {
	return Fault(CodeNotPending, "", "")
}

func (a *fakeAgent) Interrupt(_ context.Context, id TurnID) error {
	a.world.record("agent", a.name(), "interrupt "+string(id))
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	select {
	case a.world.wake[id] <- TurnInterrupted:
	default:
	}
	return nil
}

func (a *fakeAgent) Decide(_ context.Context, q QuestionID, d Decision) error {
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	if a.world.answers[q] == nil {
		return Fault(CodeNotPending, "", "")
	}
	a.world.answers[q] <- d
	delete(a.world.answers, q)
	return nil
}

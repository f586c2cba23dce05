package call

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/ledger/ledgertest"
)

// A world is a fleet, a directory and a store for ladders. Its words, one a line:
//
//	server NAME                       a machine
//	sticky SERVER THREAD TITLE...     what the store has, since half a minute
//	titled THREAD TITLE...            the title of a thread
//	attach DURATION                   how long a resume or a creation takes
//	patience DURATION                 how long a lost agent is looked for
//	start DURATION                    how long an acknowledgement takes
//	fail WHAT CODE                    attach THREAD | create SERVER | start THREAD | steer THREAD | interrupt THREAD |
//	                                  resolve SERVER | store X
//	once WHAT CODE                    the same, the first time only
//	running THREAD DURATION           somebody's turn runs there, so long from the beginning
//	down SERVER FROM TO               a resume there is unreachable then
//	sessions N                        lists have many more than one
//	dead SERVER                       lists do not reach it
//	voice LEVEL                       what may be approved by voice
//	alias SERVER NAME...              what people also call it
//	audit DURATION                    how long a record of a decision takes
//	settles THREAD WHAT               its agent can settle: found | never | lost (the connection, again)
//	forgetful FROM TO                 the ledger is unreachable then
//	emptied AT                        the ledger forgets everything then
//	lingering DURATION [OUTCOME]      how long the ledger takes to write an outcome, or that one alone
//	slow STATUS DURATION              how long it takes to write that status
//	adopting DURATION                 how long it takes to give an entry another owner
//	entry ID STATUS SERVER THREAD TURN [OUTCOME]
//	                                  what a former life left in the ledger; TURN is - for none
//	deaf THREAD                       a turn there takes words and hears none before it is interrupted
//	merges THREAD                     a turn of others is taken for over; a start gives its id back
//	returns THREAD OTHER              a resume gives back another thread
//	turn THREAD STEP; STEP...         what turns do there; THREAD * is any. STEP is
//	                                  DURATION message TEXT | command TEXT | ask COMMAND | gone | asks TEXT |
//	                                  asklost DURATION COMMAND (it is lost so long after it asked) |
//	                                  completed TEXT | failed TEXT | interrupted. A turn whose first step is
//	                                  "hidden" does not show itself before the next one
type world struct {
	t     *testing.T
	began time.Time

	servers   []string                                     // Set once
	voice     string                                       // Set once: what may be approved by voice
	children  map[string]bool                              // Set once: machines whose work ends with the process
	aliases   map[string][]string                          // Set once
	audit     time.Duration                                // Set once
	many      int                                          // Set once: sessions that a list has beside the first
	dead      string                                       // Set once: a machine that lists do not reach
	titles    map[string]string                            // Set once
	attach    time.Duration                                // Set once
	patience  time.Duration                                // Set once; 0: the default
	start     time.Duration                                // Set once
	fails     map[string]handoff.Code                      // Set once
	downs     map[string][2]time.Duration                  // Set once
	settles   map[string]string                            // Set once
	merges    map[string]bool                              // Set once
	deaf      map[string]bool                              // Set once
	returns   map[string]string                            // Set once
	plans     map[string][]string                          // Set once
	mu        sync.Mutex                                   //
	once      map[string]handoff.Code                      // Guarded by mu
	rungs     []rung                                       // Guarded by mu
	stickies  map[string]handoff.Sticky                    // Guarded by mu
	created   int                                          // Guarded by mu
	turns     map[handoff.TurnID]*fakeTurn                 // Guarded by mu
	newest    map[string]*fakeTurn                         // Guarded by mu: by thread
	started   int                                          // Guarded by mu
	ledger    map[string]ledger.Entry                      // Guarded by mu
	written   map[string]ledger.Step                       // Guarded by mu: the newest of each entry
	bodies    map[string]ledger.Body                       // Guarded by mu: whole words, by key
	trace     []ledgertest.Event                           // Guarded by mu
	closing   atomic.Bool                                  // the process ends
	crowded   atomic.Bool                                  // several calls were open at once
	over      atomic.Bool                                  // the ladder has ended
	read      atomic.Int64                                 // when stickies were read last, in nanoseconds from 1
	forgetful [2]time.Duration                             // Set once
	lingering time.Duration                                // Set once
	lingers   handoff.Outcome                              // Set once: the outcome that it is about; "": each
	adopting  time.Duration                                // Set once
	slow      map[handoff.Status]time.Duration             // Set once
	emptied   time.Duration                                // Guarded by mu: when the ledger forgets, 0 never
	answers   map[handoff.QuestionID]chan handoff.Decision // Guarded by mu
}

func newWorld(t *testing.T, text string) *world {
	w := &world{
		t: t, began: time.Now(), children: map[string]bool{}, aliases: map[string][]string{}, titles: map[string]string{}, fails: map[string]handoff.Code{}, once: map[string]handoff.Code{},
		downs: map[string][2]time.Duration{}, settles: map[string]string{}, merges: map[string]bool{}, deaf: map[string]bool{},
		returns: map[string]string{}, slow: map[handoff.Status]time.Duration{}, plans: map[string][]string{}, stickies: map[string]handoff.Sticky{},
		turns: map[handoff.TurnID]*fakeTurn{}, newest: map[string]*fakeTurn{}, answers: map[handoff.QuestionID]chan handoff.Decision{}, ledger: map[string]ledger.Entry{}, written: map[string]ledger.Step{}, bodies: map[string]ledger.Body{},
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
		w.stickies[first] = handoff.Sticky{Target: handoff.Target{Server: first, Thread: thread}, Title: title, Since: w.began.Add(-30 * time.Second)}
		w.titles[thread] = title
	case "titled":
		w.titles[first] = more
	case "patience":
		w.patience = w.duration(first)
	case "attach":
		w.attach = w.duration(first)
	case "start":
		w.start = w.duration(first)
	case "fail":
		object, code, _ := strings.Cut(more, " ")
		w.fails[first+" "+object] = handoff.Code(code)
	case "once":
		object, code, _ := strings.Cut(more, " ")
		w.once[first+" "+object] = handoff.Code(code)
	case "running":
		w.addTurn("theirs-"+handoff.TurnID(first), first, []string{more + " completed Theirs."})
	case "child":
		w.children[first] = true
	case "down":
		from, to, _ := strings.Cut(more, " ")
		w.downs[first] = [2]time.Duration{w.duration(from), w.duration(to)}
	case "forgetful":
		w.forgetful = [2]time.Duration{w.duration(first), w.duration(more)}
	case "emptied":
		w.emptied = w.duration(first)
	case "lingering":
		w.lingering, w.lingers = w.duration(first), handoff.Outcome(more)
	case "slow":
		w.slow[handoff.Status(first)] = w.duration(more)
	case "adopting":
		w.adopting = w.duration(first)
	case "entry":
		w.addEntry(strings.Fields(rest))
	case "sessions":
		w.many = len(first) * 40
	case "dead":
		w.dead = first
	case "alias":
		w.aliases[first] = append(w.aliases[first], more)
	case "audit":
		w.audit = w.duration(first)
	case "voice":
		w.voice = first
	case "settles":
		w.settles[first] = more
	case "deaf":
		w.deaf[first] = true
	case "merges":
		w.merges[first] = true
		w.end(w.addTurn("theirs-"+handoff.TurnID(first), first, []string{"5s completed Theirs and yours."}))
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
	if w.over.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	line := strings.TrimSpace(what + ": " + text)
	r := rung{at: time.Since(w.began), lane: lane, index: len(w.rungs), text: line}
	if lane == "agent" || lane == "say" || lane == "store" {
		r.who = what
	}
	if what == "notice" { // told beside what the page asks and gets
		r.who = what
	}
	if text == "detach" { // beside what goes on, so after it
		r.who += " ~"
	}
	w.rungs = append(w.rungs, r)
}

// talk notes how many calls are open.
func (w *world) talk(calls int) {
	if calls > 1 {
		w.crowded.Store(true)
	}
}

// ladder returns what was recorded, and ends that.
func (w *world) ladder() string {
	w.over.Store(true)
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

// Resolve knows names exactly, and passes threads on.
func (w *world) Resolve(_ context.Context, _ handoff.Grant, t handoff.Target) (handoff.Target, error) {
	if err := w.failure("resolve "+t.Server, t.Server); err != nil {
		return handoff.Target{}, err
	}
	name, project, _ := strings.Cut(t.Server, "/")
	if slices.Contains(w.names(), name) {
		return handoff.Target{Server: name, Project: project, Thread: t.Thread}, nil
	}
	return handoff.Target{}, &handoff.Error{Code: handoff.CodeUnknownServer, Subject: t.Server, Choices: w.names()}
}

func (w *world) Attach(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	w.record("agent", t.Server, "resume "+t.Thread)
	if err := w.wait(ctx, w.attach); err != nil {
		return handoff.Attached{}, err
	}
	if d, ok := w.downs[t.Server]; ok && time.Since(w.began) >= d[0] && time.Since(w.began) < d[1] {
		return handoff.Attached{}, handoff.Fault(handoff.CodeUnreachable, t.Server, "")
	}
	if err := w.failure("attach "+t.Thread, t.Thread); err != nil {
		return handoff.Attached{}, err
	}
	if other := w.returns[t.Thread]; other != "" {
		t.Thread = other
	}
	return w.attached(t), nil
}

func (w *world) Create(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	return w.create(ctx, t, "create "+t.Project, "fresh")
}

func (w *world) CreateEphemeral(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	return w.create(ctx, t, "create ephemeral "+t.Project, "aside")
}

func (w *world) ForkEphemeral(_ context.Context, t handoff.Target, _ handoff.TurnID) (handoff.Attached, error) {
	return handoff.Attached{}, handoff.Fault(handoff.CodeUnsupported, t.Server, "")
}

func (w *world) create(ctx context.Context, t handoff.Target, what, name string) (handoff.Attached, error) {
	w.record("agent", t.Server, what)
	if err := w.wait(ctx, w.attach); err != nil {
		return handoff.Attached{}, err
	}
	if err := w.failure("create "+t.Server, t.Server); err != nil {
		return handoff.Attached{}, err
	}
	w.mu.Lock()
	w.created++
	t.Thread = fmt.Sprintf("%s-%d", name, w.created)
	w.mu.Unlock()
	return w.attached(t), nil
}

// Registered knows aliases.
func (w *world) Registered(server string) handoff.Registered {
	return handoff.Registered{Names: append([]string{server}, w.aliases[server]...), VoiceApprovals: w.voice, EndsWithUs: w.children[server]}
}

// join adds a machine.
func (w *world) join(server string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers = append(slices.Clone(w.servers), server)
}

func (w *world) names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.servers
}

// lose makes a thread one that does not exist any more.
func (w *world) lose(thread string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fails["attach "+thread] = handoff.CodeSessionGone
}

// Fork makes a copy; it is recorded as one.
func (w *world) Fork(ctx context.Context, t handoff.Target, _ handoff.TurnID) (handoff.Attached, error) {
	w.record("agent", t.Server, "copy "+t.Thread)
	if err := w.wait(ctx, w.attach); err != nil {
		return handoff.Attached{}, err
	}
	from := t.Thread
	t.Thread = "copy-" + from
	at := w.attached(t)
	at.Title = w.titles[from]
	return at, nil
}

func (w *world) attached(t handoff.Target) handoff.Attached {
	at := handoff.Attached{Target: t, Title: w.titles[t.Thread], Workspace: "/src", VoiceApprovals: w.voice}
	a := &fakeAgent{world: w, target: t}
	switch {
	case w.settles[t.Thread] != "":
		at.Agent = reconcilingAgent{a}
	default:
		at.Agent = a
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if turn := w.newest[t.Thread]; turn != nil {
		at.Newest = turn.ID
		if !turn.over {
			at.Running = turn.ID
		}
	}
	return at
}

func (w *world) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return handoff.Fault(handoff.CodeUnreachable, "it", "")
	}
}

// List is recorded once an instant: a call and work that is taken up beside it may both find nothing read.
func (w *world) List(context.Context, handoff.Caller) ([]handoff.Sticky, error) {
	if w.read.Swap(int64(time.Since(w.began))+1) != int64(time.Since(w.began))+1 {
		w.record("store", "read", "stickies")
	}
	if err := w.failure("store read", "the store"); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []handoff.Sticky
	for _, s := range w.stickies {
		out = append(out, s)
	}
	return out, nil
}

func (w *world) Set(_ context.Context, _ handoff.Caller, s handoff.Sticky) error {
	named := ""
	if s.Named {
		named = " (named)"
	}
	w.record("store", "set", place(s.Target)+" -> "+s.Target.Thread+named)
	return nil
}

// place is "bigpc" or "bigpc/api".
func place(t handoff.Target) string {
	if t.Project == "" {
		return t.Server
	}
	return t.Server + "/" + t.Project
}

func (w *world) Clear(_ context.Context, _ handoff.Caller, t handoff.Target) error {
	w.record("store", "clear", place(t))
	return nil
}

func (w *world) Servers(context.Context, handoff.Grant) []handoff.ServerInfo {
	var out []handoff.ServerInfo
	for _, s := range w.names() {
		health := handoff.HealthUp
		if s == w.dead {
			health = handoff.HealthDown
		}
		out = append(out, handoff.ServerInfo{Name: s, Kind: "codex", Health: health})
	}
	return out
}

func (w *world) Sessions(context.Context, handoff.Grant, handoff.SessionQuery) (handoff.SessionList, error) {
	list := handoff.SessionList{Items: []handoff.SessionInfo{{ID: "t1", Label: "auth refactor", Title: "Auth refactor", Server: "bigpc", Age: "5 minutes ago", Status: handoff.SessionIdle}}}
	for i := range w.many {
		list.Items = append(list.Items, handoff.SessionInfo{ID: fmt.Sprintf("thread-%04d", i), Title: strings.Repeat("long title ", 9), Server: "bigpc", Age: "yesterday"})
	}
	if w.dead != "" {
		list.Errors = []handoff.ServerProblem{{Server: w.dead, Code: handoff.CodeUnreachable, Message: w.dead + " is not answering."}}
	}
	return list, nil
}

func (w *world) Read(_ context.Context, _ handoff.Grant, t handoff.Target, _ int) (handoff.Transcript, error) {
	return handoff.Transcript{Server: t.Server, ID: t.Thread, Title: "Auth refactor", Lines: []handoff.Line{{Role: "agent", Text: "One test fails."}}}, nil
}

package call

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"switchboard/handoff"
	"switchboard/handoff/router"
	"switchboard/handoff/tools"
)

var update = flag.Bool("update", false, "rewrite golden files")

// A ladder is a conversation as a script and the golden record of who said what to whom at which fake
// millisecond. Its archive has a world, a call and the ladder; see ladder_world_test.go for the words.

// TestLadders plays every script in a bubble of fake time. An extra round trip, a lost answer or a second
// start is a red diff; -update rewrites the ladders.
func TestLadders(t *testing.T) {
	files, err := filepath.Glob("testdata/ladders/*.txtar")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d ladders, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) { playFile(t, file, archive) })
		})
	}
}

func playFile(t *testing.T, file string, archive *txtar.Archive) {
	got := play(t, section(archive, "world"), section(archive, "call"))
	if *update {
		for i := range archive.Files {
			if archive.Files[i].Name == "ladder" {
				archive.Files[i].Data = []byte(got)
			}
		}
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(section(archive, "ladder"), got); diff != "" {
		t.Errorf("the ladder differs (-want +got):\n%s", diff)
	}
}

func section(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// play runs a script and returns its ladder. Then, unseen, the process is restarted and the caller calls
// once more: by the end of that nothing may be lost.
func play(t *testing.T, world, script string) string {
	p := &player{t: t, world: newWorld(t, world)}
	p.ctx, p.shutdown = context.WithCancel(t.Context())
	p.live("h")
	for _, line := range lines(script) {
		p.perform(line)
	}
	p.end()
	p.world.record("end", "", p.summary())
	p.world.record("end", "", "ledger: "+p.world.inLedger())
	ladder := p.world.ladder()
	p.ctx, p.shutdown = context.WithCancel(t.Context())
	p.live("z")
	p.call("")
	p.end()
	p.world.checkTrace()
	return ladder
}

// service is a router with the calls that it serves, without chance.
func service(cfg router.Config, d handoff.Directory) (*router.Router, *Calls) {
	cfg.Jitter = func(d time.Duration) time.Duration { return d }
	r := router.NewRouter(cfg)
	return r, New(Config{
		Runs: r, Attending: r, Questions: r, Shown: r.Shown, Tools: tools.Backend{Directory: d, Resolver: cfg.Fleet, Work: r}, AskAgain: cfg.AskAgain, Life: cfg.Life,
	})
}

// A player performs the lines of a script.
type player struct {
	t        *testing.T
	world    *world
	router   *router.Router // the newest life
	calls    *Calls         // of that life
	running  sync.WaitGroup
	ctx      context.Context // of the process
	shutdown func()
	voices   []*fakeVoice // open calls, oldest first
	opened   int
}

// live begins a life of the router. A former one may go on, like a process that was paused.
func (p *player) live(name string) {
	w := p.world
	p.router, p.calls = service(router.Config{Fleet: w, Stickies: w, Ledger: w, Notifier: w, Auditor: w, Life: name, Patience: w.patience}, w)
	r := p.router
	ctx := p.ctx
	p.running.Go(func() { _ = r.Run(ctx) })
}

func (p *player) call(how string) {
	p.opened++
	v := newFakeVoice(p.world, how == "deaf")
	v.name = "call " + strconv.Itoa(p.opened)
	p.voices = append(p.voices, v)
	p.world.talk(len(p.voices))
	p.world.record("call", "caller", "calls")
	calls := p.calls
	p.running.Go(func() { _ = calls.Serve(p.t.Context(), ladderGrant, v) })
}

// voice is the newest open call.
func (p *player) voice() *fakeVoice {
	if len(p.voices) == 0 {
		p.t.Fatal("nobody calls")
	}
	return p.voices[len(p.voices)-1]
}

func (p *player) hangUp() {
	v := p.voice()
	p.voices = p.voices[:len(p.voices)-1]
	p.world.record("call", "caller", "hangs up")
	v.events <- handoff.CallEnded{}
	v.end()
}

// end lets whatever is under way end in a fake hour, then hangs up and ends the process.
func (p *player) end() {
	time.Sleep(time.Hour)
	for len(p.voices) > 0 {
		p.hangUp()
	}
	synctest.Wait()
	p.shutdown()
	p.running.Wait()
}

var (
	ladderCaller = handoff.Caller{Principal: "owner"}
	ladderGrant  = handoff.Grant{Caller: ladderCaller, Approve: true, Page: true}
)

func (p *player) perform(line string) {
	at, rest, _ := strings.Cut(line, " ")
	ms, err := strconv.Atoi(at)
	if err != nil {
		p.t.Fatalf("a line of a script begins with its millisecond: %q", line)
	}
	time.Sleep(time.Until(p.world.began.Add(time.Duration(ms) * time.Millisecond)))
	verb, rest, _ := strings.Cut(rest, " ")
	switch verb {
	case "call":
		p.call(rest)
	case "life":
		p.world.record("call", "process", "another life begins")
		p.live(rest)
	case "left":
		p.world.addEntry(strings.Fields(rest))
	case "request":
		id, rest, _ := strings.Cut(rest, " ")
		tool, args, _ := strings.Cut(rest, " ")
		p.world.record("call", "model", fmt.Sprintf("%s %s%s", id, tool, args))
		p.voice().events <- handoff.FunctionCall{CallID: id, Tool: tool, Arguments: args}
	case "hint":
		id, rest, _ := strings.Cut(rest, " ")
		tool, partial, _ := strings.Cut(rest, " ")
		p.world.record("call", "model writes", fmt.Sprintf("%s %s%s", id, tool, partial))
		p.voice().events <- handoff.Hint{CallID: id, Tool: tool, Partial: partial}
	case "heard":
		p.voice().events <- handoff.Heard{Text: rest, Began: time.Now()}
	case "late": // a transcript of what began earlier
		began, text, _ := strings.Cut(rest, " ")
		p.voice().events <- handoff.Heard{Text: text, Began: p.world.began.Add(p.world.duration(began + "ms"))}
	case "typed":
		p.voice().events <- handoff.Heard{Text: rest, Typed: true, Began: time.Now()}
	case "spoke":
		p.voice().events <- handoff.Spoke{At: time.Now()}
	case "quiet":
		p.voice().events <- handoff.Quiet{On: rest == "on"}
	case "said", "cut": // what a deaf voice was given last
		v := p.voice()
		v.mu.Lock()
		u := v.last
		v.mu.Unlock()
		if verb == "said" {
			p.world.traceSaid(v.name, u.Tells)
		}
		v.events <- handoff.Said{ID: u.ID, At: time.Now(), Cut: verb == "cut"}
	case "join":
		p.world.join(rest)
	case "lose":
		p.world.lose(rest)
	case "hangup":
		p.hangUp()
	case "shutdown":
		p.world.record("call", "process", "ends")
		p.world.closing.Store(true)
		p.shutdown()
	default:
		p.onPage(verb, rest)
	}
}

// onPage performs what is done on the page.
func (p *player) onPage(verb, rest string) {
	ctx, r := p.t.Context(), p.router
	switch verb {
	case "stop":
		p.world.record("page", "stop", fmt.Sprint(r.Stop(ctx, ladderGrant, rest)))
	case "post", "steer": // KEY SERVER THREAD PROMPT..., KEY WORK PROMPT...
		key, rest, _ := strings.Cut(rest, " ")
		where, rest, _ := strings.Cut(rest, " ")
		req := handoff.Request{Key: key, Input: handoff.TextInput(rest)}
		p.running.Go(func() {
			var rec handoff.Record
			var err error
			if verb == "post" {
				thread, prompt, _ := strings.Cut(rest, " ")
				req.Target, req.Input = handoff.Target{Server: where, Thread: strings.Trim(thread, "-")}, handoff.TextInput(prompt)
				rec, err = r.Give(ctx, ladderGrant, req)
			} else {
				rec, err = r.Steer(ctx, ladderGrant, where, req)
			}
			p.world.record("page", verb+" "+key, strings.TrimSpace(fmt.Sprint(rec.ID, " ", err)))
		})
	case "page":
		for _, rec := range slices.Backward(r.Handoffs(ladderGrant)) {
			if rec.Waits != "" {
				p.world.record("page", rec.ID+" waits", string(rec.State)+" after "+rec.Waits)
			}
			for _, it := range rec.Items {
				p.world.record("page", rec.ID+" shows", fmt.Sprintf("%s %q %s", it.Kind, it.Text, it.State))
			}
		}
	case "clear":
		p.world.record("page", "clear", fmt.Sprint(rest, " ", r.ClearSticky(ctx, ladderGrant, rest)))
	case "decide": // every open question
		for _, q := range r.Questions(ladderGrant) {
			p.world.record("page", "decide", fmt.Sprint(rest, " ", r.Decide(ctx, ladderGrant, q.ID, handoff.Decision(rest))))
		}
	case "write":
		for _, q := range r.Questions(ladderGrant) {
			p.world.record("page", "write", fmt.Sprint(rest, " ", r.Reply(ctx, ladderGrant, q.ID, rest)))
		}
	case "looks": // at the page, which shows what is open
		l, _, _ := r.Feed(ladderGrant).Listen(0)
		p.t.Cleanup(l.Stop)
		p.world.record("page", "caller", "looks at it")
	case "tap": // one question, beside what goes on
		label, decision, _ := strings.Cut(rest, " ")
		for _, q := range r.Questions(ladderGrant) {
			if q.Label == label {
				p.running.Go(func() {
					p.world.record("page", "tap "+label, fmt.Sprint(decision, " ", r.Decide(ctx, ladderGrant, q.ID, handoff.Decision(decision))))
				})
			}
		}
	default:
		p.t.Fatalf("no verb %q", verb)
	}
}

// summary is the last line: what the page shows at the end.
func (p *player) summary() string {
	var out []string
	for _, rec := range slices.Backward(p.router.Handoffs(ladderGrant)) {
		out = append(out, fmt.Sprintf("%s %s %s", rec.ID, rec.State, rec.Outcome))
	}
	return strings.Join(out, ", ")
}

// A fakeVoice is a call whose voice model says what it is asked to say 200 ms later, unless it is deaf.
type fakeVoice struct {
	world  *world
	events chan handoff.Event
	deaf   bool
	name   string // of the call

	mu      sync.Mutex
	ended   bool              // Guarded by mu
	last    handoff.Utterance // Guarded by mu: the newest
	talking int               // Guarded by mu: utterances under way
	talk    sync.WaitGroup    // utterances being said
	given   map[string]bool   // Guarded by mu: answered call ids
}

func newFakeVoice(w *world, deaf bool) *fakeVoice {
	return &fakeVoice{world: w, events: make(chan handoff.Event, 64), deaf: deaf, given: map[string]bool{}}
}

func (v *fakeVoice) Events() <-chan handoff.Event { return v.events }

func (v *fakeVoice) Say(u handoff.Utterance) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = u
	what, spoken := "note", u.Floor == handoff.FloorAsk
	if spoken {
		what = "say"
	}
	if u.CallID != "" {
		what = "answer " + u.CallID + map[handoff.Floor]string{handoff.FloorUnlessSpoke: " early"}[u.Floor]
		if v.given[u.CallID] {
			v.world.t.Errorf("the call %s was answered twice", u.CallID)
		}
		v.given[u.CallID] = true
	}
	if v.world.crowded.Load() {
		what = v.name + ", " + what
	}
	late := ""
	if v.ended {
		late = " (the call has ended)"
	}
	v.world.record("say", what+late, u.Text)
	if v.ended || v.deaf {
		return
	}
	v.world.traceSaid(v.name, u.Tells)
	v.talk.Go(func() {
		time.Sleep(10 * time.Millisecond)
		v.mu.Lock()
		if spoken && !v.ended {
			v.talking++
			v.events <- handoff.Quiet{On: false}
		}
		v.mu.Unlock()
		time.Sleep(190 * time.Millisecond)
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.ended {
			return
		}
		v.events <- handoff.Said{ID: u.ID, At: time.Now()}
		if spoken {
			if v.talking--; v.talking == 0 {
				v.events <- handoff.Quiet{On: true}
			}
		}
	})
}

func (v *fakeVoice) end() {
	v.mu.Lock()
	v.ended = true
	close(v.events)
	v.mu.Unlock()
	v.talk.Wait()
}

// A rung is one line of a ladder.
type rung struct {
	at    time.Duration
	lane  string
	who   string
	index int
	text  string
}

// laneOrder sorts rungs of one millisecond: what comes in, what is asked of the fleet, what goes out; in
// a lane, those of one agent or request stay together, in their order.
var laneOrder = []string{"call", "page", "store", "agent", "say", "end"}

func sortRungs(rungs []rung) {
	slices.SortFunc(rungs, func(a, b rung) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(slices.Index(laneOrder, a.lane), slices.Index(laneOrder, b.lane)), cmp.Compare(a.who, b.who), cmp.Compare(a.index, b.index))
	})
}

func lines(s string) []string {
	var out []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

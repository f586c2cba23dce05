package handoff

import (
	"cmp"
	"context"
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
)

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

// play runs a script and returns its ladder.
func play(t *testing.T, world, script string) string {
	w := newWorld(t, world)
	r := NewRouter(Config{Fleet: w, Directory: w, Stickies: w, Ledger: w, Notifier: w, Auditor: w, Life: "h", Patience: w.patience})
	r.jitter = func(d time.Duration) time.Duration { return d }
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _ = r.Run(ctx) })
	p := &player{t: t, world: w, router: r, calls: &all, shutdown: cancel}
	for _, line := range lines(script) {
		p.perform(line)
	}
	time.Sleep(time.Hour) // whatever is still under way ends in the fake hour
	p.hangUp()
	synctest.Wait()
	cancel()
	all.Wait()
	w.record("end", "", p.summary())
	w.record("end", "", "ledger: "+w.inLedger())
	w.checkTrace(false)
	return w.ladder()
}

// A player performs the lines of a script.
type player struct {
	t        *testing.T
	world    *world
	router   *Router
	calls    *sync.WaitGroup
	shutdown func()
	voice    *fakeVoice
	opened   int
}

var ladderCaller = Caller{Principal: "owner"}

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
		p.opened++
		p.voice = newFakeVoice(p.world, rest == "deaf")
		p.voice.name = "call " + strconv.Itoa(p.opened)
		voice := p.voice
		p.world.record("call", "caller", "calls")
		p.calls.Go(func() { _ = p.router.Serve(p.t.Context(), ladderCaller, voice) })
	case "request":
		id, rest, _ := strings.Cut(rest, " ")
		tool, args, _ := strings.Cut(rest, " ")
		p.world.record("call", "model", fmt.Sprintf("%s %s%s", id, tool, args))
		p.voice.events <- Request{CallID: id, Tool: tool, Arguments: args}
	case "hint":
		id, rest, _ := strings.Cut(rest, " ")
		tool, partial, _ := strings.Cut(rest, " ")
		p.world.record("call", "model writes", fmt.Sprintf("%s %s%s", id, tool, partial))
		p.voice.events <- Hint{CallID: id, Tool: tool, Partial: partial}
	case "heard":
		p.voice.events <- Heard{Text: rest, Began: time.Now()}
	case "typed":
		p.voice.events <- Heard{Text: rest, Typed: true, Began: time.Now()}
	case "spoke":
		p.voice.events <- Spoke{At: time.Now()}
	case "quiet":
		p.voice.events <- Quiet{On: rest == "on"}
	case "join":
		p.world.join(rest)
	case "lose":
		p.world.lose(rest)
	case "hangup":
		p.hangUp()
	case "stop":
		p.world.record("page", "stop", fmt.Sprint(p.router.Stop(p.t.Context(), ladderCaller, rest)))
	case "decide":
		for _, q := range p.router.Questions(ladderCaller) {
			p.world.record("page", "decide", fmt.Sprint(rest, " ", p.router.Decide(p.t.Context(), ladderCaller, q.ID, Decision(rest))))
		}
	case "clear":
		p.world.record("page", "clear", fmt.Sprint(rest, " ", p.router.ClearSticky(p.t.Context(), ladderCaller, rest)))
	case "shutdown":
		p.world.record("call", "process", "ends")
		p.world.closing.Store(true)
		p.shutdown()
	default:
		p.t.Fatalf("no verb %q", verb)
	}
}

func (p *player) hangUp() {
	if p.voice == nil {
		return
	}
	p.world.record("call", "caller", "hangs up")
	p.voice.events <- CallEnded{}
	p.voice.end()
	p.voice = nil
}

// summary is the last line: what the page shows at the end.
func (p *player) summary() string {
	var out []string
	for _, rec := range slices.Backward(p.router.Handoffs(ladderCaller)) {
		out = append(out, fmt.Sprintf("%s %s %s", rec.ID, rec.State, rec.Outcome))
	}
	return strings.Join(out, ", ")
}

// A fakeVoice is a call whose voice model says what it is asked to say 200 ms later, unless it is deaf.
type fakeVoice struct {
	world  *world
	events chan Event
	deaf   bool
	name   string

	mu      sync.Mutex
	ended   bool            // Guarded by mu
	talking int             // Guarded by mu: utterances under way
	talk    sync.WaitGroup  // utterances being said
	given   map[string]bool // Guarded by mu: answered call ids
}

func newFakeVoice(w *world, deaf bool) *fakeVoice {
	return &fakeVoice{world: w, events: make(chan Event, 64), deaf: deaf, given: map[string]bool{}}
}

func (v *fakeVoice) Events() <-chan Event { return v.events }

func (v *fakeVoice) Say(u Utterance) {
	v.mu.Lock()
	defer v.mu.Unlock()
	what, spoken := "note", u.Floor == FloorAsk
	if spoken {
		what = "say"
	}
	if u.CallID != "" {
		what = "answer " + u.CallID + map[Floor]string{FloorUnlessSpoke: " early"}[u.Floor]
		if v.given[u.CallID] {
			v.world.t.Errorf("the call %s was answered twice", u.CallID)
		}
		v.given[u.CallID] = true
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
			v.events <- Quiet{On: false}
		}
		v.mu.Unlock()
		time.Sleep(190 * time.Millisecond)
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.ended {
			return
		}
		v.events <- Said{ID: u.ID, At: time.Now()}
		if spoken {
			if v.talking--; v.talking == 0 {
				v.events <- Quiet{On: true}
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

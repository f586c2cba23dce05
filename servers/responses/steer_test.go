package responses

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers/responses/simulator"
	"switchboard/servers/responses/workspace"
)

// steer sends words to a running turn.
func (k *talk) steer(id handoff.TurnID, words string) error {
	return k.Agent.(handoff.Controls).Steer(k.Context(), id, handoff.TextInput(words))
}

// asked waits until the model was asked: later words come after that request.
func (k *talk) asked() {
	k.Helper()
	for len(k.rig.fake.Requests()) == 0 {
		if k.Context().Err() != nil {
			k.Fatal("the model was not asked")
		}
		time.Sleep(time.Millisecond)
	}
}

func (k *talk) code(what string, err error, want handoff.Code) {
	k.Helper()
	if err == nil || handoff.AsError(err).Code != want {
		k.Errorf("%s: %v, want %s", what, err, want)
	}
}

// TestSteerNeedsItsTurn: a steer is refused if no turn runs, or another one than the one it names.
func TestSteerNeedsItsTurn(t *testing.T) {
	f := newFake(t, func(simulator.Request) simulator.Reply {
		return simulator.Reply{Items: []simulator.Item{simulator.Say("first"), simulator.Say("last")}, Wait: true}
	})
	k := newTalk(t, newRig(t, f, nil))
	k.code("no turn", k.steer("turn_x", "hi"), handoff.CodeNotPending)
	id := k.start(handoff.Turn{ID: "a", Input: handoff.TextInput("go")})
	k.asked()
	k.code("another turn", k.steer("turn_x", "hi"), handoff.CodeNotPending)
	k.code("no id", k.steer("", "hi"), handoff.CodeNotPending)
	k.code("no words", k.Agent.(handoff.Controls).Steer(t.Context(), id, nil), handoff.CodeMalformed)
	k.code("neither words nor pictures", k.Agent.(handoff.Controls).Steer(t.Context(), id,
		[]handoff.Part{struct{ handoff.Part }{}}), handoff.CodeUnsupported)
	for range threads.MaxSteers {
		must(t, k.steer(id, "more"))
	}
	k.code("too many", k.steer(id, "hi"), handoff.CodeOverloaded)
	f.Release()
	updates, _ := k.end(id)
	started := 0
	for _, u := range updates {
		if _, ok := u.(handoff.Started); ok {
			started++
		}
	}
	if started != 1 {
		t.Errorf("the turn began %d times", started)
	}
	k.code("after the end", k.steer(id, "hi"), handoff.CodeNotPending)
}

// untilCalm is [looksOnce] until the person says to call nothing any more.
func untilCalm(tool string) (func(simulator.Request) simulator.Reply, *atomic.Bool) {
	calm := new(atomic.Bool)
	return func(req simulator.Request) simulator.Reply {
		if calm.Load() {
			return looksOnce("")(req)
		}
		return looksOnce(tool)(req)
	}, calm
}

// TestOutputsThenSteers: words that come while tools run reach the model after all outputs, in order.
func TestOutputsThenSteers(t *testing.T) {
	inTool, goOn := make(chan struct{}), make(chan struct{})
	script, calm := untilCalm("look")
	f := newFake(t, script)
	k := newTalk(t, newRig(t, f, func(c *Config) {
		c.Workspace = stub{use: map[string]use{"look": func(context.Context, io.Writer) workspace.Result {
			close(inTool)
			<-goOn
			return workspace.Result{Text: "seen"}
		}}}
	}))
	id := k.start(handoff.Turn{ID: "a", Input: handoff.TextInput("go")})
	<-inTool
	for _, words := range []string{"first", "second"} {
		must(t, k.steer(id, words))
	}
	calm.Store(true)
	close(goOn)
	if _, end := k.end(id); end.Text != "done: second" {
		t.Errorf("%+v", end)
	}
	if got := words(f.Requests()[1].Input); len(f.Requests()) != 2 || got != "o:call_1 u:first u:second" {
		t.Errorf("%d requests, the second has %s", len(f.Requests()), got)
	}
}

// TestSteerDuringTheLastAnswer: the turn goes on with the words, and nothing is lost.
func TestSteerDuringTheLastAnswer(t *testing.T) {
	f := newFake(t, func(req simulator.Request) simulator.Reply {
		if words, _ := lastSaid(req); words != "go" {
			return simulator.Reply{Items: []simulator.Item{simulator.Say("I heard " + words)}}
		}
		return simulator.Reply{Items: []simulator.Item{simulator.Say("one"), simulator.Say("two")}, Wait: true}
	})
	k := newTalk(t, newRig(t, f, nil))
	id := k.start(handoff.Turn{ID: "a", Input: handoff.TextInput("go")})
	k.asked()
	must(t, k.steer(id, "this"))
	f.Release()
	if _, end := k.end(id); end.Text != "I heard this" || end.Status != handoff.TurnCompleted {
		t.Errorf("%+v", end)
	}
	if len(k.record().Turns) != 1 {
		t.Error("it became a turn of its own")
	}
}

// TestAcceptedSteersReachTheModel: at any time, a steer is either refused or reaches the model once.
func TestAcceptedSteersReachTheModel(t *testing.T) {
	steersWhileItGoesOn(t)
	rounds := 10_000
	if testing.Short() {
		rounds = 1000
	}
	for i := range rounds {
		b := newInbox()
		ctx, stopped := t.Context(), new(atomic.Bool)
		var work sync.WaitGroup
		accepted, delivered := make([]bool, 3), map[string]int{}
		for s := range accepted {
			work.Go(func() {
				accepted[s] = b.put(ctx, handoff.TextInput(fmt.Sprint(s)), func(threads.Steer) error { return nil }) == nil
			})
		}
		if i%2 == 0 {
			work.Go(func() { b.close(func() { stopped.Store(true) }) }) // an interrupt
		}
		work.Go(func() { // the turn
			for !stopped.Load() {
				steers := b.waiting()
				b.heard(len(steers))
				for _, s := range steers {
					delivered[s.words()]++
				}
				if b.closeIfEmpty() {
					return
				}
			}
		})
		work.Wait()
		left := b.undelivered()
		if len(left) > 0 && !stopped.Load() {
			t.Fatalf("round %d: the turn ended by itself without %q", i, left)
		}
		for _, words := range left {
			delivered[words]++
		}
		for s, ok := range accepted {
			if n := delivered[fmt.Sprint(s)]; ok != (n == 1) || n > 1 {
				t.Fatalf("round %d: steer %d was accepted: %v, and delivered %d times", i, s, ok, n)
			}
		}
	}
}

// steersWhileItGoesOn: a turn with words in its inbox goes on, and accepts more until the inbox is empty.
func steersWhileItGoesOn(t *testing.T) {
	b := newInbox()
	put := func(words string) error {
		return b.put(t.Context(), handoff.TextInput(words), func(threads.Steer) error { return nil })
	}
	for _, words := range []string{"first", "second"} {
		if err := put(words); err != nil || b.closeIfEmpty() {
			t.Fatalf("%s: %v, or the turn ended without it", words, err)
		}
	}
	if b.heard(len(b.waiting())); !b.closeIfEmpty() || put("third") == nil {
		t.Error("it takes more after its end")
	}
}

// TestStartTwiceRunsOnce: a second start with the same id returns the same turn; other turns wait for its end.
func TestStartTwiceRunsOnce(t *testing.T) {
	f := newFake(t, func(simulator.Request) simulator.Reply {
		return simulator.Reply{Items: []simulator.Item{simulator.Say("first"), simulator.Say("last")}, Wait: true}
	})
	k := newTalk(t, newRig(t, f, nil))
	var work sync.WaitGroup
	ids := make([]handoff.TurnID, 8)
	for i := range ids {
		work.Go(func() { ids[i] = k.start(handoff.Turn{ID: "the same", Input: handoff.TextInput("go")}) })
	}
	work.Wait()
	if ids = slices.Compact(ids); len(ids) != 1 {
		t.Errorf("turns %v", ids)
	}
	_, err := k.Agent.Start(t.Context(), handoff.Turn{ID: "another", Input: handoff.TextInput("go")})
	k.code("another turn", err, handoff.CodeBusy)
	reconciler := k.Agent.(handoff.Reconciler)
	if id, err := reconciler.Reconcile(t.Context(), "", "the same"); err != nil || id != ids[0] {
		t.Errorf("reconciled %q, %v", id, err)
	}
	if id, err := reconciler.Reconcile(t.Context(), "", "another"); err != nil || id != "" {
		t.Errorf("reconciled %q, %v", id, err)
	}
	f.Release()
	k.end(ids[0])
	if id := k.start(handoff.Turn{ID: "the same", Input: handoff.TextInput("go")}); id != ids[0] {
		t.Errorf("started again as %s", id)
	}
	if n := len(f.Requests()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}

// TestShutdownInterrupts: turns that run when the server ends are interrupted, and their ends are stored.
func TestShutdownInterrupts(t *testing.T) {
	f := newFake(t, func(simulator.Request) simulator.Reply {
		return simulator.Reply{Items: []simulator.Item{simulator.Say("first"), simulator.Say("last")}, Wait: true}
	})
	r := newRig(t, f, nil)
	k := newTalk(t, r)
	id := k.start(handoff.Turn{ID: "a", Input: handoff.TextInput("go")})
	r.stop()
	if _, end := k.end(id); end.Status != handoff.TurnInterrupted {
		t.Errorf("%+v", end)
	}
	if turn := k.record().Turns[0]; turn.Status != "interrupted" || k.record().Thread.Active != "" {
		t.Errorf("%+v", turn)
	}
	_, err := k.Agent.Start(t.Context(), handoff.Turn{ID: "b", Input: handoff.TextInput("go")})
	k.code("a start after it", err, handoff.CodeUnreachable)
}

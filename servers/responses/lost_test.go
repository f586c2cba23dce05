package responses

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers"
	"switchboard/servers/responses/simulator"
)

// TestFormerTurn: a turn that an earlier process left running does not run, and ends when the next one is begun or when
// its thread is copied. Nobody waits for that.
func TestFormerTurn(t *testing.T) {
	store := threads.NewMemory()
	k := newTalk(t, newRig(t, newFake(t, looksOnce("")), func(cfg *Config) { cfg.Threads = store }))
	thread := k.Target.Thread
	_, err := store.Advance(t.Context(), threads.Claim{Owner: "helper", Thread: thread, Turn: "former", Items: history("u:hi"), At: time.Now()})
	must(t, err)
	link, err := k.rig.dial(t.Context())
	must(t, err)
	at, err := link.Conn.Attach(t.Context(), thread)
	if err != nil || at.Running != "" || at.Newest != "former" {
		t.Errorf("attached to %+v, %v", at, err)
	}
	if list, err := link.Catalog.List(t.Context(), 9); err != nil || len(list) != 1 || list[0].Status != handoff.SessionIdle {
		t.Errorf("listed %+v, %v", list, err)
	}
	if end := k.say(handoff.Text("go on")); end.Text != "done: go on" {
		t.Errorf("then %+v", end)
	}
	if all := k.record().Turns; len(all) != 2 || all[0].Status != threads.Interrupted || all[1].Previous != "former" {
		t.Errorf("%+v", all)
	}
	_, err = store.Advance(t.Context(), threads.Claim{Owner: "helper", Thread: thread, Turn: "later", Items: history("u:ho"), At: time.Now()})
	must(t, err)
	copied, err := link.Conn.(servers.Forker).Fork(t.Context(), thread, "")
	if all := k.record(); err != nil || copied.Newest != "later" || all.Thread.Active != "" || all.Turns[2].Status != threads.Interrupted {
		t.Errorf("copied as %+v, %v, from %+v", copied, err, all)
	}
}

// TestUnwrittenEnd: a turn whose end could not be written keeps its thread from nobody.
func TestUnwrittenEnd(t *testing.T) {
	store := &refusingStore{lossyStore{Store: threads.NewMemory()}}
	k := newTalk(t, newRig(t, newFake(t, looksOnce("")), func(cfg *Config) { cfg.Threads = store }))
	store.lose(forGood, ends)
	if end := k.say(handoff.Text("one")); end.Text != "done: one" {
		t.Errorf("%+v", end)
	}
	if end := k.say(handoff.Text("two")); end.Text != "done: two" || k.record().Turns[0].Status != threads.Interrupted {
		t.Errorf("%+v after %+v", end, k.record().Turns)
	}
}

// TestManyStarts: of many starts at once, of new turns and of the same ones, one begins, the others find the thread
// busy, and the one that runs is not taken for lost.
func TestManyStarts(t *testing.T) {
	l := newLookout(t, threads.NewMemory())
	start := func(k *talk, n int) (went int64) {
		var work sync.WaitGroup
		var all atomic.Int64
		for i := range n {
			work.Go(func() {
				_, err := k.Agent.Start(t.Context(), handoff.Turn{ID: fmt.Sprint("other ", i/2), Input: handoff.TextInput("go")})
				if err == nil {
					all.Add(1)
				} else if handoff.CodeOf(err) != handoff.CodeBusy {
					t.Error(err)
				}
			})
		}
		work.Wait()
		return all.Load()
	}
	if went := start(l.talk, 32); went != 0 {
		t.Errorf("%d began beside the turn that runs", went)
	}
	l.goOn()
	if _, end := l.end(l.turn); end.Status != handoff.TurnCompleted || end.Text != "done: second" {
		t.Errorf("%+v", end)
	}
	waiting := newRig(t, newFake(t, func(simulator.Request) simulator.Reply {
		return simulator.Reply{Items: []simulator.Item{simulator.Say("first"), simulator.Say("last")}, Wait: true}
	}), nil)
	for range 20 {
		k := newTalk(t, waiting)
		start(k, 16)
		if all := k.record().Turns; len(all) != 1 || all[0].Status != threads.Running {
			t.Fatalf("%+v", all)
		}
	}
}

package work

import (
	"fmt"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// pausedBehind is a call with work that was paused: what it waited for was stopped.
func pausedBehind(t *testing.T) (w *world, l *life, id string) {
	t.Helper()
	w, l, _ = opened()
	first := string(l.asks("a", handoff.ModeNow).ID)
	id = string(l.asks("b", handoff.ModeNext).ID)
	l.goes(first, Attach)
	l.done(l.jobs[id], Done{Target: thread})
	l.looks(l.jobs[id])
	l.step(&Stop{Grant: owner, ID: first})
	for l.sent != nil {
		l.commits(takes)
	}
	if h := l.find(id); !h.Paused {
		t.Fatalf("what waited: %+v", h.Record)
	}
	return w, l, id
}

// TestPausedOnce: what waits for work that is stopped is paused, and is begun once or dropped.
func TestPausedOnce(t *testing.T) {
	for _, drop := range []bool{false, true} {
		w, l, second := pausedBehind(t)
		if h := l.find(second); h.Outcome != handoff.OutcomeCancelled || codeOf(h.Fault) != handoff.CodePaused {
			t.Fatalf("what waited: %+v", h.Record)
		}
		instead := handoff.Request{Key: "page", Instead: handoff.ID(second), Input: handoff.TextInput("")}
		if drop {
			stop := &Stop{Grant: owner, ID: second}
			if l.step(stop); stop.Err != nil {
				t.Fatal(stop.Err)
			}
		} else if a := l.asksFor(instead); a.Err != nil || l.find(string(a.ID)).Prompt != "do b" {
			t.Fatalf("begun: %+v", a)
		}
		instead.Key = "again"
		if a := l.asksFor(instead); a.Err == nil || handoff.CodeOf(a.Err) == handoff.CodeInternal {
			t.Errorf("begun twice: %+v", a)
		}
		stop := &Stop{Grant: owner, ID: second}
		if l.step(stop); handoff.CodeOf(stop.Err) != handoff.CodeWorkEnded || w.bad != "" {
			t.Errorf("dropped twice: %v; %s", stop.Err, w.bad)
		}
	}
}

// TestPausedAgain: when the store is away, paused work is not begun, and stays paused with all its words, also for the
// next life.
func TestPausedAgain(t *testing.T) {
	for _, quick := range []bool{false, true} { // its words are to be noted, or to be sent at once
		t.Run(fmt.Sprintf("quick %t", quick), func(t *testing.T) { pausedAgain(t, quick) })
	}
}

func pausedAgain(t *testing.T, quick bool) {
	w, l, id := pausedBehind(t)
	req := handoff.Request{Key: "go on", Instead: handoff.ID(id), Input: handoff.TextInput("")}
	if quick {
		req.By, req.Within = l.w.ear(), time.Minute
	}
	a := l.asksFor(req)
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	l.done(l.jobs[string(a.ID)], Done{Target: thread})
	if quick {
		l.done(l.jobs[string(a.ID)], Done{Attached: w.attached()})
	}
	for range 20 {
		if l.sent != nil {
			l.commits(fails)
		}
		w.now = w.now.Add(time.Second)
		l.step(&Due{})
	}
	if h := l.find(string(a.ID)); h.Outcome != handoff.OutcomeFailed || codeOf(h.Fault) != handoff.CodeStoreDown {
		t.Fatalf("what was begun: %+v", h.Record)
	}
	if h := l.find(id); !h.Paused || h.WentOn || !h.NotBegun() || h.request == "" {
		t.Errorf("what was paused: %+v", h.Record)
	}
	if !l.keep.again.IsZero() {
		w.now = l.keep.again
		l.step(&Due{})
	}
	for l.sent != nil {
		l.commits(takes)
	}
	w.ear().hangsUp()
	if l.calls(); w.bad != "" {
		t.Error(w.bad)
	}
	next := w.life()
	next.read(nil)
	h := next.find(next.byKey[l.find(id).key])
	if h == nil || !h.Paused || h.request == "" {
		t.Fatalf("for the next life: %+v", h)
	}
	if a := next.asksFor(handoff.Request{Key: "now", Instead: handoff.ID(h.ID), Input: handoff.TextInput("")}); a.Err != nil {
		t.Error(a.Err)
	}
}

// TestPausedOwnKey: work that a kill has paused, and that is asked for again under its own key while the store is away,
// has its key and its document again. Begun after all, it is not begun by another such request.
func TestPausedOwnKey(t *testing.T) {
	w, l, _ := opened()
	first := l.asks("a", handoff.ModeNow).ID
	id := string(l.asks("b", handoff.ModeNext).ID)
	l.goes(string(first), Attach)
	l.done(l.jobs[id], Done{Target: thread})
	l.looks(l.jobs[id])
	for w.now = w.now.Add(time.Minute); l.sent != nil || !l.find(id).state.Noted; l.step(&Due{}) {
		l.commits(takes)
	}
	l.killed()
	l = w.life()
	l.read(nil)
	l.calls()
	for l.sent != nil {
		l.commits(takes)
	}
	again := l.asks("b", handoff.ModeNext)
	l.done(l.jobs[string(again.ID)], Done{Target: thread})
	l.done(l.jobs[string(again.ID)], Done{Attached: w.attached()})
	l.commits(fails)
	if h := l.find(id); !again.New || !h.Paused || l.find(string(again.ID)).Outcome != handoff.OutcomeFailed {
		t.Fatalf("what was paused: %+v", h.Record)
	}
	w.now = l.keep.again
	for l.step(&Due{}); l.sent != nil; {
		l.commits(takes)
	}
	for range 2 { // here, and in the next life
		h := l.find(id)
		begun := l.asksFor(handoff.Request{Key: "now", Instead: handoff.ID(id), Input: handoff.TextInput("")})
		if begun.Err != nil || !h.WentOn {
			t.Fatalf("it is not begun: %v, %+v", begun.Err, h.Record)
		}
		if a := l.asks("b", handoff.ModeNext); a.New || a.Err != nil || w.bad != "" {
			t.Errorf("it is begun twice: %+v; %s", a, w.bad)
		}
		l = w.life()
		l.read(nil)
	}
}

// TestPausedKilled: paused work that was being begun when the process was killed is not asked about again: the next
// life has the work that stands in its place.
func TestPausedKilled(t *testing.T) {
	for _, sent := range []bool{false, true} { // its words were noted, or about to be sent
		w, l, id := pausedBehind(t)
		req := handoff.Request{Key: "go on", Instead: handoff.ID(id), Input: handoff.TextInput("")}
		if sent {
			req.By, req.Within = w.ear(), time.Minute
		}
		instead := string(l.asksFor(req).ID)
		l.done(l.jobs[instead], Done{Target: thread})
		if sent {
			l.done(l.jobs[instead], Done{Attached: w.attached()})
		}
		l.commits(takes)
		l.killed()
		next := w.life()
		next.read(nil)
		if h := next.find(id); h == nil || h.Paused || !h.WentOn || next.find(instead) == nil {
			t.Errorf("sent %t: what was paused: %+v", sent, h)
		}
		next.calls()
		for next.sent != nil {
			next.commits(takes)
		}
		if _, has := entriesIn(w)[id]; has || w.bad != "" {
			t.Errorf("sent %t: the store has what was paused: %t; %s", sent, has, w.bad)
		}
	}
}

// TestPausedUnkept: paused work of which nothing is kept can be begun after what was begun in its place has failed.
func TestPausedUnkept(t *testing.T) {
	_, l, id := pausedBehind(t)
	l.find(id).doc = document{never: true}
	spoken := l.find(id).Spoken
	for range 2 {
		a := l.asksFor(handoff.Request{Key: l.cfg.NextID(), Instead: handoff.ID(id), Input: handoff.TextInput("")})
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		l.done(l.jobs[string(a.ID)], Done{Err: handoff.Fault(handoff.CodeUnreachable, "s", "")})
		if h := l.find(id); !h.Paused || !h.NotBegun() || h.Error.Code != handoff.CodePaused || h.Spoken != spoken {
			t.Fatalf("what was paused: %+v", h.Record)
		}
	}
}

// TestPausedIsNotIdle: a home stays as long as the caller is to be asked about paused work, though it was heard.
func TestPausedIsNotIdle(t *testing.T) {
	_, l, id := pausedBehind(t)
	for _, h := range l.all {
		l.step(&Heard{Grant: owner, ID: h.ID})
	}
	l.w.ear().hangsUp()
	for l.sent != nil {
		l.commits(takes)
	}
	if l.Idle() || !l.find(id).Paused {
		t.Error("nobody would be asked any more")
	}
	l.step(&Stop{Grant: owner, ID: id})
	for l.sent != nil {
		l.commits(takes)
	}
	if !l.Idle() {
		t.Error("a home stays for what was dropped")
	}
}

// TestStoppedTooLate: when words are stopped on their way into a turn that takes them, the caller is told that they
// went in.
func TestStoppedTooLate(t *testing.T) {
	w, l, ear := opened()
	first := string(l.asks("a", handoff.ModeNow).ID)
	l.goes(first, Follow)
	id := string(l.asks("b", handoff.ModeNow).ID)
	l.done(l.jobs[id], Done{Target: thread})
	l.looks(l.jobs[id])
	steer := l.goes(id, Steer)
	l.step(&Stop{Grant: owner, ID: id})
	l.done(steer, Done{})
	for l.sent != nil {
		l.commits(takes)
	}
	ear.hangsUp() // before they heard it
	if h := l.find(id); h.Added() || !h.unheard || h.Why != handoff.WhyAdded || w.bad != "" {
		t.Errorf("%+v; %s", h.Record, w.bad)
	}
}

// TestStoppedAtTheGate: work that is stopped while it takes the gate of its thread again is not sent.
func TestStoppedAtTheGate(t *testing.T) {
	w, l, _ := opened()
	l.cfg.Shared = true
	id := string(l.asks("k", handoff.ModeNow).ID)
	l.done(l.goes(id, Attach), Done{Attached: w.attached()})
	l.step(&Stop{Grant: owner, ID: id})
	l.done(l.jobs[id], Done{Gate: &GateLease{Thread: thread, Asked: w.now}})
	if h := l.find(id); h.Outcome != handoff.OutcomeCancelled || h.attempt.number > 0 {
		t.Errorf("%+v", h.Record)
	}
}

// TestStandsInQueue: words stand in the queue of their thread from when the thread is known, whatever looks first.
func TestStandsInQueue(t *testing.T) {
	_, l, _ := opened()
	l.goes(string(l.asks("a", handoff.ModeNow).ID), Follow)
	second, third := string(l.asks("b", handoff.ModeNext).ID), string(l.asks("c", handoff.ModeNext).ID)
	l.done(l.jobs[second], Done{Target: thread})
	l.done(l.jobs[third], Done{Target: thread})
	l.looks(l.jobs[third])
	l.looks(l.jobs[second])
	if got := l.cfg.Threads.(*lines).at(ThreadKey(thread)).waiting; len(got) != 2 || got[0] != second || got[1] != third {
		t.Errorf("%q wait; want %q", got, []string{second, third})
	}
}

// TestWholeWordsGo: the store keeps the whole words no longer than they wait, also if it took them and its answer was
// lost.
func TestWholeWordsGo(t *testing.T) {
	w, l, _ := opened()
	id := string(l.asks("k", handoff.ModeNow).ID)
	l.done(l.jobs[id], Done{Target: thread})
	w.ear().hangsUp() // they are promised now
	l.step(&Due{})
	if l.sent == nil {
		t.Fatal("nothing is written")
	}
	key := l.find(id).key
	if l.commits(forget); w.store.Texts[key][ledger.PartRequest] == "" {
		t.Fatal("the store does not have the words")
	}
	l.done(l.jobs[id], Done{Attached: w.attached()})
	w.now = l.keep.again
	l.step(&Due{})
	for l.sent != nil {
		l.commits(takes)
	}
	if e := entriesIn(w)[id]; e.Status == handoff.StatusAccepted || w.store.Texts[key][ledger.PartRequest] != "" || w.bad != "" {
		t.Errorf("%s, and its words are still there; %s", e.Status, w.bad)
	}
}

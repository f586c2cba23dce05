package work

import (
	"slices"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/phase"
)

// watched is a call that watches a turn that somebody else began.
func watched(t *testing.T) (w *world, l *life, id string) {
	t.Helper()
	w, l, _ = opened()
	w.turns = append(w.turns, turn{"the desk", true})
	id = string(l.asksFor(watches("w")).ID)
	j := l.goes(id, Follow)
	if h := l.find(id); j.Turn != turnID(0) || h.Why != handoff.WhyWatched || h.state.Phase != phase.Running || !h.state.Seen {
		t.Fatalf("follows %q: %+v, %+v", j.Turn, h.Record, h.state)
	}
	for l.sent != nil {
		l.commits(takes)
	}
	return w, l, id
}

func watches(key string) handoff.Request {
	return handoff.Request{Key: key, Again: true, Target: thread, Mode: handoff.ModeWatch}
}

// TestWatched: a watched turn is followed and nothing is sent to it. Its questions are asked here, its outcome is told,
// and it is stopped only by somebody who is sure.
func TestWatched(t *testing.T) {
	w, l, id := watched(t)
	h := l.find(id)
	if len(w.began) > 0 || len(w.turns) != 1 {
		t.Errorf("began %v, turns %v", w.began, w.turns)
	}
	if again := l.asksFor(watches("other")); again.Err != nil {
		t.Fatal(again.Err)
	} else if l.goes(string(again.ID), Follow); codeOf(l.find(string(again.ID)).Fault) != handoff.CodeBusy {
		t.Errorf("watched twice: %+v", l.find(string(again.ID)).Record)
	}
	l.updates(l.jobs[id], handoff.Question{ID: "q", Kind: handoff.QuestionCommand, Text: "May this command run?",
		Command: "make", Decisions: []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline}})
	if q := l.questions["q"]; q == nil || q.Controls == nil || q.Shown.Handoff != id {
		t.Errorf("its question: %+v", q)
	}

	stop := &Stop{Grant: owner, ID: id}
	if l.step(stop); handoff.CodeOf(stop.Err) != handoff.CodeNoConsent || h.state.Stopping {
		t.Errorf("stopped unasked: %v, %+v", stop.Err, h.state)
	}
	stop.Of, stop.Err = handoff.StopTheirs, nil
	l.step(stop)
	interrupts := slices.ContainsFunc(l.lately, func(f Effect) bool { i, is := f.(Interrupt); return is && i.Turn == turnID(0) })
	if stop.Err != nil || !interrupts {
		t.Errorf("not stopped: %v, %+v", stop.Err, h.state)
	}
	l.updates(l.jobs[id], handoff.TurnEnded{Status: handoff.TurnInterrupted})
	if w.bad != "" || h.Outcome != handoff.OutcomeInterrupted {
		t.Errorf("%s; %+v", w.bad, h.Record)
	}
}

// TestWatchedUnasked: a session is not the current one because the settings of its machine have it watched.
func TestWatchedUnasked(t *testing.T) {
	for client, current := range map[string]int{"": 1, handoff.WatchesAll: 0} {
		w, l, _ := opened()
		w.turns = append(w.turns, turn{"the desk", true})
		req := watches("w")
		req.Origin.Client = client
		l.goes(string(l.asksFor(req).ID), Follow)
		if len(l.current) != current {
			t.Errorf("asked by %q: %+v", client, l.current)
		}
	}
}

// TestWatchedFromItsStart: a stop before the turn is followed does not reach it.
func TestWatchedFromItsStart(t *testing.T) {
	w, l, _ := opened()
	w.turns = append(w.turns, turn{"the desk", true})
	id := string(l.asksFor(watches("w")).ID)
	j := l.goes(id, Attach)
	l.done(j, Done{Attached: w.attached()}) // it is being written down
	stop := &Stop{Grant: owner, ID: id}
	if l.step(stop); handoff.CodeOf(stop.Err) != handoff.CodeNoConsent {
		t.Errorf("stopped: %v", stop.Err)
	}
	if j := l.goes(id, Follow); j.Turn != turnID(0) || w.bad != "" {
		t.Errorf("follows %q; %s", j.Turn, w.bad)
	}
}

// TestNothingToWatch: where nothing runs, nothing is begun. The next turn is waited for, unless it would not show.
func TestNothingToWatch(t *testing.T) {
	w, l, _ := opened()
	l.cfg.Registered = func(string) handoff.Registered { return handoff.Registered{Private: true} }
	id := string(l.asksFor(watches("w")).ID)
	l.goes(id, Follow)
	if h := l.find(id); codeOf(h.Fault) != handoff.CodeIdle || len(w.turns) > 0 || w.bad != "" {
		t.Errorf("%+v; %s", h.Record, w.bad)
	}
	for _, to := range []handoff.Target{{Server: "s"}, {Server: "s", Thread: handoff.NewThread}} {
		req := watches("w " + to.Thread)
		req.Target = to
		id := string(l.asksFor(req).ID)
		l.done(l.jobs[id], Done{Target: to})
		if h := l.find(id); codeOf(h.Fault) != handoff.CodeUnknownSession {
			t.Errorf("%+v: %+v", to, h.Record)
		}
	}
}

// waiting returns the handoff that watches an idle thread.
func (l *life) waiting(t *testing.T) *Handoff {
	t.Helper()
	for l.sent != nil {
		l.commits(takes)
	}
	h := l.all[len(l.all)-1]
	if h.Why != handoff.WhyWatched || !h.open || h.state.Phase != phase.Waiting || !h.state.Noted || l.jobs[h.ID].Kind != Await {
		t.Fatalf("%+v, %+v", h.Record, h.state)
	}
	return h
}

// watchLooks lets a watch look at its thread, and returns its next job.
func (l *life) watchLooks(h *Handoff) Job {
	l.done(l.jobs[h.ID], Done{})
	l.done(l.jobs[h.ID], Done{Attached: l.w.attached()})
	for l.sent != nil {
		l.commits(takes)
	}
	return l.jobs[h.ID]
}

// TestWatchedOn: a watch of an idle thread follows the next turn, also one that it did not see run, and the one after
// it, as another handoff. The caller's own turns are left out, and nothing that waits for a turn is in their way.
func TestWatchedOn(t *testing.T) {
	w, l, _ := opened()
	w.turns = append(w.turns, turn{"the desk", false}) // long over
	id := string(l.asksFor(watches("w")).ID)
	l.done(l.jobs[id], Done{Target: thread})
	l.done(l.jobs[id], Done{Attached: w.attached()})
	h := l.waiting(t)
	if j := l.watchLooks(h); j.Kind != Await || h.Outcome != "" {
		t.Fatalf("an old turn: %v, %+v", j.Kind, h.Record)
	}

	own := string(l.asks("own", handoff.ModeNow).ID) // what is given meanwhile waits for nothing
	l.goes(own, Follow)
	if j := l.watchLooks(h); j.Kind != Await || j.Attached.Running != l.find(own).TurnID {
		t.Fatalf("own work: %v, %+v", j.Kind, h.state)
	}
	w.turns[1].runs = false
	l.updates(l.jobs[own], handoff.TurnEnded{Status: handoff.TurnCompleted})
	l.watchLooks(h)
	more := string(l.asks("more", handoff.ModeNow).ID) // it begins and ends between two looks
	l.goes(more, Follow)
	w.turns[2].runs = false
	l.updates(l.jobs[more], handoff.TurnEnded{Status: handoff.TurnCompleted})
	if j := l.watchLooks(h); j.Kind != Await {
		t.Fatalf("own work that is over: %v", j.Kind)
	}

	w.turns = append(w.turns, turn{"the desk", false}) // it came and went between two looks
	if j := l.watchLooks(h); j.Kind != Follow || j.Turn != turnID(3) {
		t.Fatalf("%v %s", j.Kind, j.Turn)
	}
	l.updates(l.jobs[id], handoff.TurnEnded{Status: handoff.TurnCompleted, Text: "done"})
	next := l.waiting(t)
	if next == h || h.Outcome != handoff.OutcomeResult {
		t.Fatalf("%+v", h.Record)
	}
	w.turns = append(w.turns, turn{"the desk", true})
	if j := l.watchLooks(next); j.Kind != Follow || j.Turn != turnID(4) {
		t.Fatalf("%v %s", j.Kind, j.Turn)
	}
	stop := &Stop{Grant: owner, ID: next.ID, Of: handoff.StopWatching}
	l.step(stop)
	interrupts := slices.ContainsFunc(l.lately, func(f Effect) bool { _, is := f.(Interrupt); return is })
	for l.sent != nil {
		l.commits(takes)
	}
	if stop.Err != nil || interrupts || next.Outcome != handoff.OutcomeCancelled || l.all[len(l.all)-1] != next {
		t.Errorf("left: %v, %+v", stop.Err, next.Record)
	}
	stop.ID = own
	if l.step(stop); stop.Err == nil {
		t.Error("own work is left")
	}
	if w.bad != "" {
		t.Error(w.bad)
	}
}

// TestWatchedLongEnough: a thread is not watched for ever, and not while its machine forbids it.
func TestWatchedLongEnough(t *testing.T) {
	for name, then := range map[string]func(w *world, l *life){
		"half a day": func(w *world, _ *life) { w.now = w.now.Add(WatchFor) },
		"forbidden": func(_ *world, l *life) {
			l.cfg.Registered = func(string) handoff.Registered { return handoff.Registered{Unwatched: true} }
		},
	} {
		w, l, _ := opened()
		id := string(l.asksFor(watches("w")).ID)
		l.done(l.jobs[id], Done{Target: thread})
		l.done(l.jobs[id], Done{Attached: w.attached()})
		h := l.waiting(t)
		then(w, l)
		if l.watchLooks(h); h.Outcome != handoff.OutcomeCancelled || h.Fault != nil {
			t.Errorf("%s: %+v", name, h.Record)
		}
	}
}

// TestWatchedAsleep: a machine that is away does not end a watch, and neither makes it last longer.
func TestWatchedAsleep(t *testing.T) {
	w, l, _ := opened()
	id := string(l.asksFor(watches("w")).ID)
	l.done(l.jobs[id], Done{Target: thread})
	l.done(l.jobs[id], Done{Attached: w.attached()})
	h := l.waiting(t)
	for _, tc := range []struct {
		after time.Duration
		ends  bool
	}{{time.Hour, false}, {WatchFor - time.Hour, true}} {
		w.now = w.now.Add(tc.after)
		l.done(l.jobs[id], Done{})
		l.done(l.jobs[id], Done{Err: handoff.Fault(handoff.CodeUnreachable, "s", "")})
		for l.sent != nil {
			l.commits(takes)
		}
		if ended := h.Outcome == handoff.OutcomeCancelled && h.Fault == nil; ended != tc.ends || h.open == tc.ends {
			t.Errorf("after %v more: %+v, %+v", tc.after, h.Record, h.state)
		}
	}
}

// TestStopWatchingAtTheEnd: who stops watching while the outcome of a turn is being written hears of no further turn.
func TestStopWatchingAtTheEnd(t *testing.T) {
	_, l, id := watched(t)
	l.updates(l.jobs[id], handoff.TurnEnded{Status: handoff.TurnCompleted, Text: "done"})
	stop := &Stop{Grant: owner, ID: id, Of: handoff.StopWatching}
	l.step(stop)
	for l.sent != nil {
		l.commits(takes)
	}
	if next := l.all[len(l.all)-1]; stop.Err == nil && next.open {
		t.Errorf("watched on: %+v, %+v", next.Record, next.state)
	}
}

// TestWaitsByTheNextLife: a watch outlives the process, whether it was killed or ended.
func TestWaitsByTheNextLife(t *testing.T) {
	for _, ends := range []bool{false, true} {
		w, l, _ := opened()
		id := string(l.asksFor(watches("w")).ID)
		l.done(l.jobs[id], Done{Target: thread})
		l.done(l.jobs[id], Done{Attached: w.attached()})
		l.waiting(t)
		if ends {
			l.step(&Ends{})
		}
		l.killed()
		next := w.life()
		next.calls()
		next.read(nil)
		h := next.waiting(t)
		w.turns = append(w.turns, turn{"the desk", true})
		if j := next.watchLooks(h); h.ID != id || j.Kind != Follow || j.Turn != turnID(0) || w.bad != "" {
			t.Errorf("%v %s, %+v; %s", j.Kind, j.Turn, h.Record, w.bad)
		}
	}
}

// TestWatchedByTheNextLife: after a kill the same turn is followed, and words for its session go into it.
func TestWatchedByTheNextLife(t *testing.T) {
	w, l, id := watched(t)
	l.killed()
	next := w.life()
	next.calls()
	next.read(nil)
	h := next.find(id)
	if h == nil || h.Why != handoff.WhyWatched || h.run.Request.Mode != handoff.ModeWatch {
		t.Fatalf("it has %+v", h)
	}
	next.done(next.jobs[id], Done{Attached: w.attached()})
	if j := next.goes(id, Follow); j.Turn != turnID(0) {
		t.Fatalf("follows %q", j.Turn)
	}
	more := string(next.asks("more", handoff.ModeNow).ID)
	next.done(next.jobs[more], Done{Target: thread})
	next.looks(next.jobs[more])
	if j := next.goes(more, Steer); j.Holder.ID != turnID(0) {
		t.Errorf("the words go to %+v", j.Holder)
	}
	next.updates(next.jobs[id], handoff.TurnEnded{Status: handoff.TurnCompleted, Text: "done"})
	if w.bad != "" || h.Outcome != handoff.OutcomeResult {
		t.Errorf("%s; %+v", w.bad, h.Record)
	}
}

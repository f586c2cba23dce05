package work

import (
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// opened is a world whose store was read, with a call.
func opened() (*world, *life, *ear) {
	w := newWorld()
	l := w.newest()
	ear := l.calls()
	if l.loads {
		l.read(nil)
	}
	for l.sent != nil {
		l.commits(takes)
	}
	return w, l, ear
}

// goes lets the jobs of a handoff go well, until one of a kind begins.
func (l *life) goes(id string, until Kind) Job {
	for range 20 {
		j := l.jobs[id]
		switch j.Kind {
		case until:
			return j
		case Resolve:
			l.done(j, Done{Target: thread})
		case Attach:
			l.done(j, Done{Attached: l.w.attached()})
		case Start:
			l.done(j, Done{Turn: l.w.arrives(j)})
		default:
			if l.sent == nil {
				return Job{}
			}
			l.commits(takes)
		}
	}
	return Job{}
}

// TestStoreTakesLong: a store that does not answer holds nobody up: the words are refused after two seconds, a start is
// not sent after five, and an outcome is told after one.
func TestStoreTakesLong(t *testing.T) {
	for _, tt := range []struct {
		name    string
		until   Kind // the job in which the store is silent; "": the words wait
		within  time.Duration
		outcome handoff.Outcome
		code    handoff.Code
	}{
		{"note", "", notedWithin, handoff.OutcomeFailed, handoff.CodeStoreDown},
		{"dispatch", Attach, StoreTakes, handoff.OutcomeFailed, handoff.CodeStoreDown},
		{"outcome", Follow, toldWithin, handoff.OutcomeResult, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, l, ear := opened()
			id := string(l.asks("k", handoff.ModeNow).ID)
			if tt.until == "" {
				l.done(l.jobs[id], Done{Target: thread})
				ear.hangsUp() // nobody waits for a quick result
				ear = l.calls()
			}
			switch tt.until {
			case Attach:
				l.done(l.goes(id, Attach), Done{Attached: w.attached()})
			case Follow:
				j := l.goes(id, Follow)
				for l.sent != nil {
					l.commits(takes)
				}
				l.updates(j, handoff.TurnEnded{Status: handoff.TurnCompleted})
			}
			if l.sent == nil {
				t.Fatal("nothing is asked of the store")
			}
			w.now = w.now.Add(tt.within - time.Millisecond)
			if l.step(&Due{}); l.find(id).Outcome != "" && !l.find(id).open {
				t.Fatal("it ends too early")
			}
			w.now = w.now.Add(time.Millisecond)
			l.step(&Due{})
			if h := l.find(id); h.open || h.Outcome != tt.outcome || codeOf(h.Fault) != tt.code || len(w.began) > 1 {
				t.Errorf("%+v", h.Record)
			}
			if l.commits(takes); ear.told[id] != 1 || w.bad != "" {
				t.Errorf("told %d times; %s", ear.told[id], w.bad)
			}
			for l.sent != nil {
				l.commits(takes)
			}
			if e := entriesIn(w)[id]; e.Outcome != tt.outcome && e.Status != "" {
				t.Errorf("the store has %+v", e)
			}
		})
	}
}

// entriesIn are the handoffs in the store, by id.
func entriesIn(w *world) map[string]ledger.Entry {
	all := map[string]ledger.Entry{}
	for _, e := range ledger.Entries(w.store.Documents, func(string) {}) {
		all[e.ClientID] = e
	}
	return all
}

// TestAway: when the store refuses, a start is not sent, an outcome is told at once, and all of it is tried again.
func TestAway(t *testing.T) {
	w, l, ear := opened()
	id := string(l.asks("k", handoff.ModeNow).ID)
	follow := l.goes(id, Follow)
	other := string(l.asks("other", handoff.ModeAside).ID)
	l.updates(follow, handoff.TurnEnded{Status: handoff.TurnCompleted, Text: "done"})
	if l.commits(fails); ear.told[id] != 1 {
		t.Fatalf("told: %v", ear.told)
	}
	for try := range 3 {
		if l.sent != nil || l.keep.again.IsZero() {
			t.Fatalf("try %d comes at once", try)
		}
		w.now = l.keep.again
		l.step(&Due{})
		l.commits(fails)
	}
	w.now = l.keep.again
	l.step(&Due{})
	for l.sent != nil {
		l.commits(takes)
	}
	if e := entriesIn(w)[id]; e.Outcome != handoff.OutcomeResult || !l.find(other).open || w.bad != "" {
		t.Errorf("the store has %+v; %s", e, w.bad)
	}
}

// TestDoubted: a batch whose answer was lost and that the store has is not written again whole; after a loss,
// everything that waits is.
func TestDoubted(t *testing.T) {
	for _, lost := range []bool{false, true} {
		_, l, _ := opened()
		first := string(l.asks("first", handoff.ModeNow).ID)
		l.updates(l.goes(first, Follow), handoff.TurnEnded{Status: handoff.TurnCompleted})
		for l.sent != nil {
			l.commits(takes)
		}
		second := string(l.asks("second", handoff.ModeNow).ID)
		l.done(l.goes(second, Attach), Done{Attached: l.w.attached()})
		if l.commits(forget); lost {
			l.w.loses(9)
		}
		l.w.now = l.keep.again
		l.step(&Due{})
		l.commits(takes) // outdated
		if l.sent == nil {
			t.Fatal("nothing is written again")
		}
		if _, again := l.sent.Put[ledger.HandoffDoc+l.find(first).key]; again != lost {
			t.Errorf("lost %t: the first is written again: %t", lost, again)
		}
	}
}

// TestNotFree: work whose key is one of the past is refused; the rest of its batch is written, also a current thread.
func TestNotFree(t *testing.T) {
	w, l, _ := opened()
	use := func(thread string) {
		l.step(&Use{handoff.Sticky{Target: handoff.Target{Server: "other", Thread: thread}, Named: true, Since: w.now}})
	}
	w.store.Past[KeyOf(owner.Caller, "k")] = ledger.Past{Row: "a row that was not found"}
	ids := map[string]string{}
	for _, key := range []string{"k", "other"} {
		req := handoff.Request{Key: key, Target: handoff.Target{Server: "s", Thread: key}, Input: handoff.TextInput("go")}
		a := &Asked{Grant: owner, Request: req, Span: handoff.SpanOf(t.Context()), Args: ArgsOf(req)}
		l.step(a)
		ids[key] = string(a.ID)
	}
	w.now = w.now.Add(time.Millisecond)
	use("x") // while it is written, the others come
	w.ear().hangsUp()
	l.done(l.jobs[ids["k"]], Done{Target: handoff.Target{Server: "s", Thread: "k"}})
	l.done(l.jobs[ids["other"]], Done{Target: handoff.Target{Server: "s", Thread: "other"}})
	use("y")
	for l.sent != nil {
		l.commits(takes)
	}
	if h := l.find(ids["k"]); h.Outcome != handoff.OutcomeFailed || codeOf(h.Fault) != handoff.CodeTakenOver {
		t.Errorf("the one of the past: %+v", h.Record)
	}
	if e := entriesIn(w)[ids["other"]]; e.Status != handoff.StatusAccepted {
		t.Errorf("the other: %+v", e)
	}
	field := ledger.StickyField(handoff.Target{Server: "other"})
	if got, _, _ := ledger.DecodeSticky(field, w.store.Documents[ledger.StickyDoc+field]); got.Target.Thread != "y" {
		t.Errorf("the current thread: %+v", got)
	}
}

// TestKeyTakenMeanwhile: work that was asked for before its key was known to be that of earlier work is not promised.
func TestKeyTakenMeanwhile(t *testing.T) {
	w := newWorld()
	id := string(w.newest().asks("k", handoff.ModeNow).ID)
	other := w.life()
	other.read(nil)
	theirs := string(other.asks("k", handoff.ModeNow).ID)
	other.done(other.jobs[theirs], Done{Target: thread})
	other.commits(takes)
	other.killed()
	l := w.lives[0]
	l.read(nil)
	for l.sent != nil {
		l.commits(takes)
	}
	l.done(l.jobs[id], Done{Target: thread})
	if h := l.find(id); h.state.Noted || codeOf(h.Fault) != handoff.CodeTakenOver || w.bad != "" {
		t.Errorf("%+v; %s", h.Record, w.bad)
	}
}

// TestPlaces: of the choices of a thread the newest stands in the store, also after an outage; what the store has does
// not replace a choice that is newer.
func TestPlaces(t *testing.T) {
	w, l, _ := opened()
	use := func(server, thread string) {
		l.step(&Use{handoff.Sticky{Target: handoff.Target{Server: server, Thread: thread}, Named: true, Since: w.now}})
	}
	has := func(want ...string) {
		t.Helper()
		var got []string
		for name, value := range w.store.Documents {
			if field, is := strings.CutPrefix(name, ledger.StickyDoc); is {
				s, _, _ := ledger.DecodeSticky(field, value)
				got = append(got, s.Target.Server+" "+s.Target.Thread)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("the store has %q, want %q", got, want)
		}
	}
	use("bigpc", "t1")
	use("bigpc", "t2")
	l.step(&Unuse{Place: Place{Server: "laptop"}})
	l.commits(takes)
	l.commits(takes)
	has("bigpc t2")
	use("bigpc", "t3")
	l.commits(fails)
	use("bigpc", "t4")
	w.now = l.keep.again
	l.step(&Due{})
	l.commits(takes)
	has("bigpc t4")
	next := w.life()
	next.step(&Use{handoff.Sticky{Target: handoff.Target{Server: "bigpc", Thread: "t5"}, Since: w.now}})
	next.read(nil)
	next.commits(takes)
	has("bigpc t5")
	next.step(&Unuse{Place: Place{Server: "bigpc"}})
	next.commits(takes)
	has()
	if w.store.Version != "" || w.bad != "" {
		t.Errorf("version %q of nothing; %s", w.store.Version, w.bad)
	}
}

// TestRefusedAlone: work that the store refuses keeps no other from being written.
func TestRefusedAlone(t *testing.T) {
	w, l, _ := opened()
	bad := string(l.asks("bad", handoff.ModeAside).ID)
	good := string(l.asks("good", handoff.ModeAside).ID)
	w.ear().hangsUp() // nobody waits for a quick result
	for _, id := range []string{bad, good} {
		l.done(l.jobs[id], Done{Target: handoff.Target{Server: "s", Thread: id}})
	}
	for try := 0; try < 6 && entriesIn(w)[good].Status == ""; try++ {
		if l.sent == nil {
			w.now = l.keep.again
			l.step(&Due{})
		}
		if _, has := l.sent.Put[ledger.HandoffDoc+l.find(bad).key]; has {
			l.sent = nil
			l.step(&Committed{Err: handoff.Fault(handoff.CodeInternal, "", "a value that it does not take")})
			continue
		}
		l.commits(takes)
	}
	if e := entriesIn(w); e[good].Status != handoff.StatusAccepted || e[bad].Status != "" {
		t.Errorf("the store has %+v", e)
	}
}

// TestUnusedAfterLoss: a current thread that was dropped does not come back when the store loses that.
func TestUnusedAfterLoss(t *testing.T) {
	w, l, _ := opened()
	l.asks("k", handoff.ModeAside)
	place := Place{Server: "bigpc"}
	l.step(&Use{handoff.Sticky{Target: handoff.Target{Server: "bigpc", Thread: "t1"}, Named: true, Since: w.now}})
	l.commits(takes)
	l.step(&Unuse{Place: place})
	l.commits(takes)
	w.loses(1)
	l.step(&Use{handoff.Sticky{Target: handoff.Target{Server: "laptop", Thread: "t2"}, Named: true, Since: w.now}})
	for l.sent != nil {
		l.commits(takes)
	}
	field := ledger.StickyField(handoff.Target{Server: "bigpc"})
	if _, has := w.store.Documents[ledger.StickyDoc+field]; has {
		t.Error("it is in the store")
	}
}

// TestGivenAway: once the caller was given to another home, nothing of them is written, and nothing waits for that.
func TestGivenAway(t *testing.T) {
	w, l, _ := opened()
	l.step(&Gave{})
	l.step(&Use{handoff.Sticky{Target: handoff.Target{Server: "bigpc", Thread: "late"}, Named: true, Since: w.now}})
	if l.sent != nil || !l.stored() {
		t.Errorf("sent: %+v", l.sent)
	}
}

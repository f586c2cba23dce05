package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/work"
)

// A desk is an agent that takes answers, and an audit.
type desk struct {
	mu      sync.Mutex
	audited []handoff.AuditRecord // Guarded by mu
	given   []handoff.Decision    // Guarded by mu
	early   atomic.Int32          // answers that allowed something and came before their record
	auditIn func() time.Duration  // how long a record takes
	full    error                 // of the audit
	failing error                 // of the agent
	taken   func()                // runs before the agent says what it did
}

func (d *desk) Audit(ctx context.Context, rec handoff.AuditRecord) error {
	if err := cmp.Or(d.full, ctx.Err()); err != nil {
		return err
	}
	if d.auditIn != nil {
		time.Sleep(d.auditIn()) // a file's I/O does not end with a context
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.audited = append(d.audited, rec)
	return nil
}

func (d *desk) Decide(ctx context.Context, id handoff.QuestionID, decision handoff.Decision) error {
	if d.taken != nil {
		d.taken()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	audited := slices.ContainsFunc(d.audited, func(r handoff.AuditRecord) bool {
		return r.Question == id && r.Decision == decision
	})
	if decision == handoff.DecisionAccept && !audited {
		d.early.Add(1)
	}
	if d.failing != nil {
		return d.failing
	}
	if ctx.Err() != nil {
		return handoff.Fault(handoff.CodeAgentGone, "", "")
	}
	d.given = append(d.given, decision)
	return nil
}

func (d *desk) Steer(context.Context, handoff.TurnID, []handoff.Part) error { return nil }
func (d *desk) Interrupt(context.Context, handoff.TurnID) error             { return nil }
func (d *desk) decisions() (out []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.audited {
		out = append(out, string(r.Decision)+" by "+r.By)
	}
	return out
}

func (d *desk) Start(context.Context, handoff.Turn) (handoff.TurnID, error) { return "t7", nil }
func (d *desk) Follow(context.Context, handoff.TurnID) iter.Seq2[handoff.Update, error] {
	return func(func(handoff.Update, error) bool) {}
}
func (d *desk) Close() error { return nil }

// An asking is a router with work whose turn runs, and which asks. The router does not run unless it is begun.
type asking struct {
	*Router
	run handoff.ID
	job work.Job // that follows the turn
}

// says is an update of the turn.
func (a asking) says(u handoff.Update) {
	ask(a.Router, &work.Update{ID: a.job.ID, N: a.job.N, Update: u})
}

// command is a question that the desk asks.
func command(id handoff.QuestionID) handoff.Question {
	return handoff.Question{
		ID: id, Kind: handoff.QuestionCommand, Command: "npm install", Cwd: "/src", Turn: "t7",
		Decisions: []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline}, Asked: time.Now(),
	}
}

// askingRouter returns a router with an open question of work in the thread "t" of bigpc.
func askingRouter(d *desk, id handoff.QuestionID) (asking, *work.Question) {
	a := asking{Router: NewRouter(Config{Caller: ladderCaller, Auditor: d})}
	step := func(e work.Event) {
		for _, e := range a.state.Step(time.Now(), e) {
			if begin, ok := e.(work.Begin); ok {
				a.job = begin.Job
			}
		}
	}
	done := func(d work.Done) {
		d.ID, d.N = a.job.ID, a.job.N
		step(&d)
	}
	target, giver := handoff.Target{Server: "bigpc", Thread: "t"}, ladderGrant
	giver.Key = "the giver's"
	step(&work.Asked{Grant: giver, Span: handoff.SpanOf(context.Background()), Request: handoff.Request{
		Target: target, Input: handoff.TextInput("go"), Origin: handoff.Origin{Client: "an agent"},
	}})
	a.run = handoff.ID(a.job.ID)
	done(work.Done{Target: target})
	done(work.Done{Attached: handoff.Attached{Agent: d, Target: target, Workspace: "/src"}})
	done(work.Done{Turn: "t7"})
	a.says(command(id))
	return a, a.question(ladderGrant, id)
}

// TestAnsweredElsewhere: where a yes counts only on the machine itself, one from here is refused with the reason, and
// neither the audit nor the agent has it. A no counts.
func TestAnsweredElsewhere(t *testing.T) {
	d := &desk{}
	r, q := askingRouter(d, "q1")
	q.Shown.There, q.Shown.Decisions = "its owner lets nobody else answer its agents", []handoff.Decision{handoff.DecisionDecline}
	for name, g := range map[string]handoff.Grant{
		"a tap": {Caller: ladderCaller, Page: true, Approve: handoff.ApproveAll}, "a key": {Caller: ladderCaller, Approve: handoff.ApproveAll},
	} {
		for _, yes := range []func() error{
			func() error { return r.Decide(t.Context(), g, "q1", handoff.DecisionAccept) },
			func() error { return r.Decide(t.Context(), g, "q1", handoff.DecisionAcceptForSession) },
			func() error { return r.Reply(t.Context(), g, "q1", handoff.Reply{Words: "go ahead"}) },
		} {
			if e, ok := errors.AsType[*handoff.Error](yes()); !ok || e.Code != handoff.CodeRefused || e.Why != q.Shown.There {
				t.Errorf("%s: %v", name, e)
			}
		}
	}
	if len(d.audited)+len(d.given) > 0 {
		t.Errorf("audited %v, given %v", d.audited, d.given)
	}
	if err := r.Decide(t.Context(), handoff.Grant{Caller: ladderCaller}, "q1", handoff.DecisionDecline); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(d.given, d.decisions()); got != "[decline] [decline by api]" {
		t.Error(got)
	}
}

// TestAuditTooLate: a yes is not given after a disk hung for longer than the audit may take, and the audit says so.
func TestAuditTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{auditIn: func() time.Duration { return time.Minute }}
		r, _ := askingRouter(d, "q1")
		err := r.Decide(t.Context(), handoff.Grant{Caller: ladderCaller, Page: true, Approve: handoff.ApproveAll}, "q1",
			handoff.DecisionAccept)
		if handoff.CodeOf(err) != handoff.CodeStoreDown {
			t.Errorf("%v, want that it was not written down in time", err)
		}
		time.Sleep(time.Hour) // until the disk is back
		if got := fmt.Sprint(d.given, d.decisions()); got != "[] [accept by page withheld by page]" {
			t.Error(got)
		}
	})
}

// TestNoAuditNeeded: a no, and a stop, do not wait for a disk that hangs.
func TestNoAuditNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{auditIn: func() time.Duration { return time.Hour }}
		r, _ := askingRouter(d, "q1")
		began := time.Now()
		err := r.Decide(t.Context(), handoff.Grant{Caller: ladderCaller}, "q1", handoff.DecisionDecline)
		if took := time.Since(began); err != nil || took > auditWithin || fmt.Sprint(d.given) != "[decline]" {
			t.Errorf("after %v: %v, %v", took, err, d.given)
		}
		time.Sleep(2 * time.Hour)
	})
}

// TestDecidedOnce: of several answers at the same time, by pages and by voice, one reaches the agent, after its audit
// record; the others are refused, since the question is closed.
func TestDecidedOnce(t *testing.T) {
	for round := range 50 {
		d := &desk{}
		id := handoff.QuestionID(fmt.Sprint("q", round))
		r, _ := askingRouter(d, id)
		var all sync.WaitGroup
		var won, lost atomic.Int32
		for i := range 8 {
			all.Go(func() {
				x := handoff.Decided{Decision: handoff.DecisionAccept, By: handoff.ByPage}
				if i%2 == 0 {
					x.By, x.Said = handoff.ByVoice, time.Now()
				}
				if i%3 == 0 {
					x.Decision = handoff.DecisionDecline
				}
				err := r.decide(t.Context(), id, x)
				switch {
				case err == nil:
					won.Add(1)
				case handoff.CodeOf(err) == handoff.CodeNotPending:
					lost.Add(1)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 || lost.Load() != 7 || len(d.given) != 1 || d.early.Load() != 0 || len(d.audited) != 1 {
			t.Fatalf("%d won, %d lost, given %v, written down %v", won.Load(), lost.Load(), d.given, d.decisions())
		}
	}
}

// TestNotSent: the conditions of an accept are checked again after its audit record is written. If one does not hold
// any more, the accept is not sent, and the audit says so, too.
func TestNotSent(t *testing.T) {
	gone := func(r asking) { r.says(handoff.QuestionClosed{ID: "q"}) }
	replaced := func(r asking) {
		gone(r)
		r.says(command("q")) // the same id, as if an adapter forgot the connection's generation
	}
	for name, tt := range map[string]struct {
		meanwhile func(asking)
		age       time.Duration // of the yes when the decision begins
		by        string
		failing   error
		code      handoff.Code
		audited   string
		open      bool
	}{
		"in time": {by: handoff.ByVoice, age: 5 * time.Second, audited: "[accept by voice]"},
		"withdrawn meanwhile": {
			meanwhile: gone, by: handoff.ByVoice, code: handoff.CodeNotPending, audited: "[accept by voice withheld by voice]",
		},
		"a tap, withdrawn": {
			meanwhile: gone, by: handoff.ByPage, code: handoff.CodeNotPending, audited: "[accept by page withheld by page]",
		},
		"asked anew meanwhile": {
			meanwhile: replaced, by: handoff.ByVoice, code: handoff.CodeNotPending,
			audited: "[accept by voice withheld by voice]", open: true,
		},
		"asked again by another connection": {
			meanwhile: func(r asking) { r.says(command("q")) }, by: handoff.ByPage, code: handoff.CodeNotPending,
			audited: "[accept by page withheld by page]", open: true,
		},
		"too old meanwhile": {
			by: handoff.ByVoice, age: handoff.YesFor - time.Second, code: handoff.CodeNoConsent,
			audited: "[accept by voice withheld by voice]", open: true,
		},
		"too old": {
			by: handoff.ByVoice, age: handoff.YesFor + time.Second, code: handoff.CodeNoConsent, audited: "[]", open: true,
		},
		"a tap does not age": {by: handoff.ByPage, age: time.Hour, audited: "[accept by page]"},
		"answered elsewhere": {
			by: handoff.ByPage, failing: handoff.Fault(handoff.CodeNotPending, "", ""), code: handoff.CodeNotPending,
			audited: "[accept by page withheld by page]",
		},
		"the agent takes no yes": {
			by: handoff.ByPage, failing: handoff.Fault(handoff.CodeMalformed, "", ""), code: handoff.CodeMalformed,
			audited: "[accept by page withheld by page]", open: true,
		},
		"it may have gone out": {
			by: handoff.ByPage, failing: handoff.Fault(handoff.CodeAgentGone, "", ""), code: handoff.CodeAgentGone,
			audited: "[accept by page]", open: true,
		},
		"an unknown error": {
			by: handoff.ByPage, failing: errors.New("broken"), code: handoff.CodeInternal, audited: "[accept by page]",
			open: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &desk{failing: tt.failing, auditIn: func() time.Duration { return 2 * time.Second }}
				r, _ := askingRouter(d, "q")
				x := handoff.Decided{Decision: handoff.DecisionAccept, By: tt.by}
				if tt.by == handoff.ByVoice {
					x.Said = time.Now().Add(-tt.age)
				}
				if tt.meanwhile != nil {
					time.AfterFunc(time.Second, func() { tt.meanwhile(r) })
				}
				err := r.decide(t.Context(), "q", x)
				if got := handoff.CodeOf(err); got != tt.code {
					t.Errorf("error %v", err)
				}
				if sent := len(d.given) == 1; sent != (err == nil) {
					t.Errorf("given %v", d.given)
				}
				if got := fmt.Sprint(d.decisions()); got != tt.audited {
					t.Errorf("written down %s", got)
				}
				if tt.open {
					d.failing = nil
					if err := r.Decide(t.Context(), ladderGrant, "q", handoff.DecisionAccept); err != nil {
						t.Errorf("it cannot be answered any more: %v", err)
					}
				}
			})
		})
	}
}

// TestRecordSaysWhoAnswered: the record of the work says by whom, how and when its question was answered, also if that
// was elsewhere.
func TestRecordSaysWhoAnswered(t *testing.T) {
	d := &desk{}
	r, _ := askingRouter(d, "q1")
	answers := func() []handoff.RecordAnswer { return ask(r.Router, &work.Find{ID: r.job.ID}).Record.Answers }
	withdrawn := func(id handoff.QuestionID) { r.says(handoff.QuestionClosed{ID: id}) }
	yes := handoff.Decided{Decision: handoff.DecisionAccept, By: handoff.ByVoice}
	d.taken = func() { withdrawn("q1") } // the agent's own word of it comes before it has returned,
	if err := r.decide(t.Context(), "q1", yes); err != nil {
		t.Fatal(err)
	}
	withdrawn("q1") // and late
	if got := answers(); len(got) != 1 || got[0].By != handoff.ByVoice || got[0].Decision != handoff.DecisionAccept ||
		got[0].Command != "npm install" || got[0].At.IsZero() {
		t.Errorf("answers %+v", got)
	}
	d.taken = func() { withdrawn("late") } // another client was first: ours is refused
	r.says(handoff.Question{ID: "late", Decisions: []handoff.Decision{handoff.DecisionAccept}})
	d.failing = handoff.Fault(handoff.CodeNotPending, "", "")
	if err := r.decide(t.Context(), "late", yes); handoff.CodeOf(err) != handoff.CodeNotPending {
		t.Fatal(err)
	}
	if got := answers(); len(got) != 2 || got[1].By != "elsewhere" {
		t.Errorf("answers %+v", got)
	}
	for n := range 60 {
		which := handoff.QuestionID(fmt.Sprint("which ", n))
		r.says(handoff.Question{ID: which, Text: string(which)})
		withdrawn(which)
	}
	got := answers()
	if newest := got[len(got)-1]; len(got) != 50 || newest.By != "elsewhere" || newest.Decision != "" ||
		newest.Text != "which 59" {
		t.Errorf("%d answers kept, the last %+v", len(got), newest)
	}
}

// TestAuditRecord: a decision is written down with who made it, how, and about what, before it is given.
func TestAuditRecord(t *testing.T) {
	for _, decision := range []handoff.Decision{
		handoff.DecisionAccept, handoff.DecisionAcceptForSession, handoff.DecisionDecline,
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &desk{}
			r, q := askingRouter(d, "q1")
			q.Question.Command, q.Shown.Decisions = "sudo reboot", []handoff.Decision{decision}
			given := handoff.Decided{
				Decision: decision, By: handoff.ByTyping, Transcript: "yes, do", Call: "call1", Said: time.Now(),
				Asked: "May it?", Heard: time.Now().Add(-time.Second),
			}
			if err := r.decide(t.Context(), "q1", given); err != nil {
				t.Fatal(err)
			}
			want := handoff.AuditRecord{
				Who: ladderCaller.String(), Call: "call1", Client: "an agent", At: time.Now(), Server: "bigpc", Thread: "t",
				Turn: "t7", Question: "q1", Decision: decision, Tier: "high", By: handoff.ByTyping,
				CommandHash: handoff.CommandHash(q.Question, "bigpc"), Transcript: handoff.TranscriptHash("yes, do"),
				Said: given.Said, Asked: handoff.TranscriptHash("May it?"), Heard: given.Heard,
			}
			if len(d.audited) != 1 || d.audited[0] != want {
				t.Errorf("written down is %+v\nwant %+v", d.audited, want)
			}
		})
	}
}

// TestUnauditedIsNotGiven: without an audit record, a yes is not given to the agent, and a no is.
func TestUnauditedIsNotGiven(t *testing.T) {
	for decision, code := range map[handoff.Decision]handoff.Code{
		handoff.DecisionAccept: handoff.CodeStoreDown, handoff.DecisionAcceptForSession: handoff.CodeStoreDown,
		handoff.DecisionWords: handoff.CodeStoreDown, handoff.DecisionDecline: "", handoff.DecisionStop: "",
	} {
		d := &desk{full: errors.New("the disk is full")}
		r, q := askingRouter(d, "q")
		q.Shown.Decisions, q.Question.Words, q.Replies = []handoff.Decision{decision}, true, true
		err := r.decide(t.Context(), "q", handoff.Decided{Decision: decision, Reply: handoff.Reply{Words: "1.2.3"}, By: handoff.ByPage})
		if handoff.CodeOf(err) != code || (len(d.given) == 1) != (code == "") {
			t.Errorf("%s: %v, given %v", decision, err, d.given)
		}
	}
}

// TestMayNotAct: an instance that may have lost its callers gives no decision to an agent, and the audit says so.
func TestMayNotAct(t *testing.T) {
	d := &desk{}
	r, _ := askingRouter(d, "q")
	may := false
	r.cfg.MayAct = func() bool { return may }
	for _, decision := range []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline} {
		err := r.decide(t.Context(), "q", handoff.Decided{Decision: decision, By: handoff.ByPage})
		if handoff.CodeOf(err) != handoff.CodeStoreDown || len(d.given) != 0 {
			t.Errorf("%s: %v, given %v", decision, err, d.given)
		}
	}
	if got := d.decisions(); !slices.Contains(got, "withheld by page") {
		t.Errorf("written down is %v", got)
	}
	may = true
	yes := handoff.Decided{Decision: handoff.DecisionAccept, By: handoff.ByPage}
	err := r.decide(t.Context(), "q", yes)
	if err != nil || len(d.given) != 1 {
		t.Errorf("it may act again: %v, given %v", err, d.given)
	}
}

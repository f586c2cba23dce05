package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
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
	if d.auditIn != nil {
		time.Sleep(d.auditIn())
	}
	if err := cmp.Or(d.full, ctx.Err()); err != nil {
		return err
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

// askingRouter returns a router with an open question.
func askingRouter(d *desk, id handoff.QuestionID) (*Router, *question) {
	r := NewRouter(Config{Caller: ladderCaller, Auditor: d})
	b := r.caller(ladderCaller)
	q := handoff.Question{
		ID: id, Kind: handoff.QuestionCommand, Command: "npm install", Cwd: "/src",
		Decisions: []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline}, Asked: time.Now(),
	}
	b.questions.ask(
		&question{controls: d, OpenQuestion: handoff.OpenQuestion{
			Question: q, Workspace: "/src",
			Shown: handoff.RecordQuestion{ID: id, Server: "bigpc", Kind: q.Kind, Decisions: q.Decisions},
		}},
		0, nil,
	)
	return r, b.questions.get(id)
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
			func() error { return r.Reply(t.Context(), g, "q1", "go ahead") },
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
				err := r.caller(ladderCaller).decide(t.Context(), id, x)
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
	gone := func(r *Router, q *question) { r.caller(ladderCaller).closeQuestion(q.Shown.ID) }
	replaced := func(r *Router, q *question) {
		b := r.caller(ladderCaller)
		b.questions.close(q.Shown.ID)
		// the same id, as if an adapter forgot the connection's generation
		b.questions.ask(&question{OpenQuestion: q.OpenQuestion, controls: q.controls}, 0, nil)
	}
	for name, tt := range map[string]struct {
		meanwhile func(*Router, *question)
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
			audited: "[accept by voice withheld by voice]",
		},
		"too old meanwhile": {
			by: handoff.ByVoice, age: handoff.YesFor - time.Second, code: handoff.CodeNoConsent, audited: "[]", open: true,
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
				r, q := askingRouter(d, "q")
				x := handoff.Decided{Decision: handoff.DecisionAccept, By: tt.by}
				if tt.by == handoff.ByVoice {
					x.Said = time.Now().Add(-tt.age)
				}
				if tt.meanwhile != nil {
					time.AfterFunc(time.Second, func() { tt.meanwhile(r, q) })
				}
				err := r.caller(ladderCaller).decide(t.Context(), "q", x)
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
	r, q := askingRouter(d, "q1")
	b := r.caller(ladderCaller)
	q.Shown.Handoff, q.Shown.Command = "h1", "npm install"
	b.registry.records = append(b.registry.records, &recordState{Record: handoff.Record{ID: "h1"}})
	answers := func() []handoff.RecordAnswer {
		rec, _ := b.registry.find("h1")
		return rec.Answers
	}
	yes := handoff.Decided{Decision: handoff.DecisionAccept, By: handoff.ByVoice}
	d.taken = func() { b.withdrawn("q1") } // the agent's own word of it comes before it has returned,
	if err := r.caller(ladderCaller).decide(t.Context(), "q1", yes); err != nil {
		t.Fatal(err)
	}
	b.withdrawn("q1") // and late
	if got := answers(); len(got) != 1 || got[0].By != handoff.ByVoice || got[0].Decision != handoff.DecisionAccept ||
		got[0].Command != "npm install" || got[0].At.IsZero() {
		t.Errorf("answers %+v", got)
	}
	which := handoff.OpenQuestion{Shown: handoff.RecordQuestion{ID: "q2", Handoff: "h1", Text: "Which?"}}
	b.questions.ask(&question{OpenQuestion: which, controls: d}, 0, nil)
	b.withdrawn("q2")
	if got := answers(); len(got) != 2 || got[1].By != byElsewhere || got[1].Decision != "" || got[1].Text != "Which?" {
		t.Errorf("answers %+v", got)
	}
	for range maxAnswers {
		b.answered(q, handoff.DecisionDecline, handoff.ByPage)
	}
	if got := answers(); len(got) != maxAnswers || got[0].By != handoff.ByPage {
		t.Errorf("%d answers kept, the first %+v", len(got), got[0])
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
			q.Question.Command, q.Question.Turn, q.Shown.Handoff = "sudo reboot", "t7", "h1"
			q.Shown.Decisions = []handoff.Decision{decision}
			r.mine.registry.records = append(r.mine.registry.records,
				&recordState{Record: handoff.Record{ID: "h1", ThreadID: "th", Client: "an agent"}})
			given := handoff.Decided{
				Decision: decision, By: handoff.ByTyping, Transcript: "yes, do", Call: "call1", Said: time.Now(),
				Asked: "May it?", Heard: time.Now().Add(-time.Second),
			}
			if err := r.mine.decide(t.Context(), "q1", given); err != nil {
				t.Fatal(err)
			}
			want := handoff.AuditRecord{
				Who: ladderCaller.String(), Call: "call1", Client: "an agent", At: time.Now(), Server: "bigpc", Thread: "th",
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
		q.Shown.Decisions, q.Question.Words, q.replies = []handoff.Decision{decision}, true, true
		err := r.mine.decide(t.Context(), "q", handoff.Decided{Decision: decision, Words: "1.2.3", By: handoff.ByPage})
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
		err := r.caller(ladderCaller).decide(t.Context(), "q", handoff.Decided{Decision: decision, By: handoff.ByPage})
		if handoff.CodeOf(err) != handoff.CodeStoreDown || len(d.given) != 0 {
			t.Errorf("%s: %v, given %v", decision, err, d.given)
		}
	}
	if got := d.decisions(); !slices.Contains(got, "withheld by page") {
		t.Errorf("written down is %v", got)
	}
	may = true
	yes := handoff.Decided{Decision: handoff.DecisionAccept, By: handoff.ByPage}
	err := r.caller(ladderCaller).decide(t.Context(), "q", yes)
	if err != nil || len(d.given) != 1 {
		t.Errorf("it may act again: %v, given %v", err, d.given)
	}
}

package router

import (
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// TestWhatMayBeSaid holds what the page tells of answering in the call.
func TestWhatMayBeSaid(t *testing.T) {
	both := []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline}
	for name, c := range map[string]struct {
		q       handoff.Question
		level   string
		replies bool
		want    bool
	}{
		"an ordinary command": {
			q: handoff.Question{Kind: handoff.QuestionCommand, Command: "npm install", Cwd: "/src", Decisions: both}, want: true,
		},
		"above the machine's level": {
			q:     handoff.Question{Kind: handoff.QuestionCommand, Command: "npm install", Cwd: "/src", Decisions: both},
			level: "low",
		},
		"a risky command": {
			q: handoff.Question{Kind: handoff.QuestionCommand, Command: "sudo reboot", Cwd: "/src", Decisions: both},
		},
		"more than the one act": {
			q: handoff.Question{
				Kind: handoff.QuestionCommand, Command: "ls", Cwd: "/src", Beyond: "the network", Decisions: both,
			},
		},
		"nothing to say yes to": {
			q: handoff.Question{Kind: handoff.QuestionCommand, Command: "ls", Cwd: "/src", Decisions: both[1:]},
		},
		"words": {
			q: handoff.Question{
				Kind: handoff.QuestionInput, Words: true, Asks: []handoff.Ask{{Text: "Which?"}}, Decisions: both[1:],
			},
			level: "none", replies: true, want: true,
		},
		"words that nobody takes": {
			q: handoff.Question{
				Kind: handoff.QuestionInput, Words: true, Asks: []handoff.Ask{{Text: "Which?"}}, Decisions: both[1:],
			},
		},
		"a secret among other words": {
			q: handoff.Question{
				Kind: handoff.QuestionInput, Words: true, Asks: []handoff.Ask{{Text: "Who?"}, {Text: "Password?", Secret: true}},
				Decisions: both[1:],
			},
			replies: true,
		},
		"a copy":                    {q: handoff.Question{Kind: handoff.QuestionCopy, Decisions: both}, want: true},
		"only where the agent runs": {q: handoff.Question{Kind: handoff.QuestionOther}},
	} {
		asked := handoff.OpenQuestion{Question: c.q, Workspace: "/src", Level: c.level}
		a := &question{OpenQuestion: asked, replies: c.replies}
		a.Shown = handoff.RecordQuestion{
			Server: "bigpc", Kind: c.q.Kind, Decisions: c.q.Decisions, Words: c.q.Words && c.replies,
		}
		a.Shown.Tap = a.tapReason()
		if got := a.mayBeSaid(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestQuestionStates: open, claimed, decided. One answer at a time has it, one that could not be given
// gives it back, and what is decided stays so and is not given up.
func TestQuestionStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewRouter(Config{Caller: ladderCaller}).caller(ladderCaller)
		gaveUp := 0
		q := &question{}
		q.Shown = handoff.RecordQuestion{ID: "q", Decisions: []handoff.Decision{handoff.DecisionDecline}}
		b.questions.ask(q, time.Minute, func() { gaveUp++ })
		is := func(open, claimed bool) {
			t.Helper()
			if got := b.questions.get("q") == q; got != open || q.claimed != claimed {
				t.Fatalf("open %t, claimed %t", got, q.claimed)
			}
		}
		is(true, false)
		for _, tt := range []struct {
			decision handoff.Decision
			code     handoff.Code
			claimed  bool
		}{
			{handoff.DecisionAccept, handoff.CodeMalformed, false},
			{handoff.DecisionDecline, "", true},
			{handoff.DecisionDecline, handoff.CodeNotPending, true},
		} {
			if _, err := b.questions.claim("q", tt.decision); handoff.CodeOf(err) != tt.code {
				t.Errorf("%s: %v", tt.decision, err)
			}
			is(true, tt.claimed)
		}
		b.questions.release(q)
		is(true, false)
		time.Sleep(time.Minute)
		synctest.Wait()
		b.questions.waitOn(q, time.Minute)
		time.Sleep(time.Minute)
		synctest.Wait()
		if gaveUp != 2 {
			t.Errorf("given up %d times", gaveUp)
		}
		b.questions.waitOn(q, time.Minute)
		b.questions.close("q")
		is(false, false)
		b.questions.release(q)
		is(false, false)
		b.questions.waitOn(q, time.Minute)
		time.Sleep(time.Hour)
		if gaveUp != 2 || len(b.questions.open) != 0 {
			t.Errorf("given up %d times, %d are open", gaveUp, len(b.questions.open))
		}
	})
}

package router

import (
	"switchboard/handoff"
	"testing"
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
		"an ordinary command":        {q: handoff.Question{Kind: handoff.QuestionCommand, Command: "npm install", Cwd: "/src", Decisions: both}, want: true},
		"above the machine's level":  {q: handoff.Question{Kind: handoff.QuestionCommand, Command: "npm install", Cwd: "/src", Decisions: both}, level: "low"},
		"a risky command":            {q: handoff.Question{Kind: handoff.QuestionCommand, Command: "sudo reboot", Cwd: "/src", Decisions: both}},
		"more than the one act":      {q: handoff.Question{Kind: handoff.QuestionCommand, Command: "ls", Cwd: "/src", Beyond: "the network", Decisions: both}},
		"nothing to say yes to":      {q: handoff.Question{Kind: handoff.QuestionCommand, Command: "ls", Cwd: "/src", Decisions: both[1:]}},
		"words":                      {q: handoff.Question{Kind: handoff.QuestionInput, Words: true, Asks: []handoff.Ask{{Text: "Which?"}}, Decisions: both[1:]}, level: "none", replies: true, want: true},
		"words that nobody takes":    {q: handoff.Question{Kind: handoff.QuestionInput, Words: true, Asks: []handoff.Ask{{Text: "Which?"}}, Decisions: both[1:]}},
		"a secret among other words": {q: handoff.Question{Kind: handoff.QuestionInput, Words: true, Asks: []handoff.Ask{{Text: "Who?"}, {Text: "Password?", Secret: true}}, Decisions: both[1:]}, replies: true},
		"a copy":                     {q: handoff.Question{Kind: handoff.QuestionCopy, Decisions: both}, want: true},
		"only where the agent runs":  {q: handoff.Question{Kind: handoff.QuestionOther}},
	} {
		a := askedQ{question: c.q, workspace: "/src", level: c.level, replies: c.replies}
		a.shown = handoff.RecordQuestion{Server: "bigpc", Kind: c.q.Kind, Decisions: c.q.Decisions, Words: c.q.Words && c.replies}
		a.shown.Tap = a.tapReason()
		if got := a.mayBeSaid(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

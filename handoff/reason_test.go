package handoff

import (
	"strings"
	"testing"
	"time"
)

// TestReasons: every reason has words and the one thing to do, which read well whatever is known of the machine.
func TestReasons(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 22, 0, 0, 0, time.UTC)
	all := ReasonFacts{
		Name: "mini", Credential: "key", Detail: "codex", Address: "me@mini.local", Start: "codex app-server", Since: now.Add(-time.Hour),
	}
	for reason := range Reasons {
		for _, facts := range []ReasonFacts{{Name: "mini", Detail: "codex"}, all} {
			words, next := reason.Explain(facts, now)
			both := words + " " + next
			if words == "" || strings.ContainsAny(both, "{}") || strings.Contains(both, "  ") || strings.Contains(both, " ,") {
				t.Errorf("%s of %+v: %q, %q", reason, facts, words, next)
			}
			if !strings.HasSuffix(next, ".") || strings.HasSuffix(words, ".") || strings.HasSuffix(words, ":") {
				t.Errorf("%s is no clause and no sentence: %q, %q", reason, words, next)
			}
			for _, word := range []string{"handoff", "turn ", "principal", "thread"} {
				if strings.Contains(strings.ToLower(both), word) {
					t.Errorf("%s says %q to people", reason, word)
				}
			}
		}
	}
	if words, _ := ReasonAsleep.Explain(ReasonFacts{Since: now.Add(-20 * time.Minute)}, now); words != "it is asleep or offline since 21:40" {
		t.Error(words)
	}
	if words, _ := ReasonAsleep.Explain(ReasonFacts{Since: now.Add(-24 * time.Hour)}, now); words != "it is asleep or offline since 24 November 22:00" {
		t.Error(words)
	}
	if words, next := Reason("invented").Explain(all, now); words != "it cannot be reached" || next == "" {
		t.Errorf("a reason of a newer program: %q, %q", words, next)
	}
	if words, _ := ReasonStranger.Explain(ReasonFacts{Detail: strings.Repeat("x", 1000)}, now); len(words) > 2*maxReasonDetail {
		t.Errorf("%d bytes", len(words))
	}
}

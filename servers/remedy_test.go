package servers

import (
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

// TestRemedies: every reason has words and one thing to do, which read well whichever facts are known.
func TestRemedies(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 22, 0, 0, 0, time.UTC)
	all := reasonFacts{
		Name: "mini", Credential: "key", Detail: "codex", Address: "me@mini.local",
		Start: "codex app-server", Since: now.Add(-time.Hour),
	}
	for reason := range remedies {
		for _, facts := range []reasonFacts{{Name: "mini", Detail: "codex"}, all} {
			words, next := explain(reason, facts, now)
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
	for ago, since := range map[time.Duration]string{20 * time.Minute: "21:40", 24 * time.Hour: "24 November 22:00"} {
		words, _ := explain(handoff.ReasonAsleep, reasonFacts{Since: now.Add(-ago)}, now)
		if words != "it is asleep or offline since "+since {
			t.Error(words)
		}
	}
	if words, next := explain("invented", all, now); words != "it cannot be reached" || next == "" {
		t.Errorf("a reason of a newer program: %q, %q", words, next)
	}
	long := reasonFacts{Detail: strings.Repeat("x", 1000)}
	if words, _ := explain(handoff.ReasonStranger, long, now); len(words) > 2*maxReasonDetail {
		t.Errorf("%d bytes", len(words))
	}
}

package wording

import (
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

func TestSummariesThatAreSaid(t *testing.T) {
	fleet := []handoff.ServerInfo{
		{Name: "bigpc", Health: handoff.HealthUp, Working: []string{"Auth refactor"}},
		{Name: "laptop", Health: handoff.HealthUp},
		{Name: "attic", Health: handoff.HealthDown},
	}
	if got := English.FleetSummary(fleet); got != "bigpc and laptop are ready. attic is not answering. bigpc is working on Auth "+
		"refactor." {
		t.Errorf("servers: %q", got)
	}
	list := handoff.SessionList{More: 4, Errors: []handoff.ServerProblem{{Server: "attic"}}, Items: []handoff.SessionInfo{
		{Title: "Auth refactor", Server: "bigpc", Age: "12 minutes ago", Status: handoff.SessionRunning},
		{Title: "Release notes", Server: "laptop", Age: "yesterday", Status: handoff.SessionWaiting},
	}}
	if got := English.SessionsSummary(list, time.Time{}); got != "The latest is Auth refactor on bigpc, 12 minutes ago, working now. Release "+
		"notes on laptop, yesterday, waiting for you. There are 3 more. attic could not be asked." {
		t.Errorf("sessions: %q", got)
	}
	if got := English.List([]string{"a", "b", "c", "d", "e", "f"}); got != "a, b, c, d and 2 more" {
		t.Errorf("list: %q", got)
	}
	away := English.AwaySummary([]handoff.Record{
		{Server: "bigpc", Outcome: handoff.OutcomeResult, Spoken: "All pass."},
		{Server: "bigpc", Outcome: handoff.OutcomeResult, Spoken: "One fails.",
			Items: []handoff.RecordItem{{Kind: handoff.ItemCommand, Text: "go test ./...", Exit: new(1)}}},
		{Server: "laptop", Outcome: handoff.OutcomeFailed, Spoken: "The work on laptop failed."},
	}, time.Time{})
	lead, quote := SplitMessage(away)
	if !strings.HasPrefix(lead, "While you were away, two things finished, one failed.") ||
		quote != "bigpc, done: All pass.\nbigpc, tests failed: One fails.\nlaptop, failed: The work on laptop failed." {
		t.Errorf("away: %q %q", lead, quote)
	}
	paused := handoff.Record{ID: "h-2", Server: "bigpc", Outcome: handoff.OutcomeCancelled, Prompt: "then push",
		Spoken: "It is paused.", Fault: handoff.Fault(handoff.CodePaused, "bigpc", "")}
	lead, quote = SplitMessage(English.AwaySummary([]handoff.Record{paused}, time.Time{}))
	if !strings.HasPrefix(lead, "While you were away, one thing was not begun.") ||
		quote != `bigpc, not begun: It is paused. To begin it: begin "h-2". It was: then push` {
		t.Errorf("away, paused: %q %q", lead, quote)
	}
	ended := time.Now()
	paused.EndedAt = &ended
	for began, when := range map[time.Time]string{ended.Add(time.Second): "While you were away, ",
		ended.Add(-time.Second): "Meanwhile, "} {
		if got := English.AwaySummary([]handoff.Record{paused}, began); !strings.HasPrefix(got, when) {
			t.Errorf("a call that began at %v, work that ended at %v: %q", began, ended, got)
		}
	}
	lead, quote = SplitMessage(English.FinalsMessage([]handoff.Record{{Server: "bigpc", Outcome: handoff.OutcomeInterrupted,
		Spoken: "Stopped."}, paused}))
	if !strings.HasPrefix(lead, "One thing was stopped, one was not begun.") ||
		!strings.Contains(lead, "stop_work with that name") ||
		quote != "bigpc, stopped: Stopped.\n"+`bigpc, not begun: It is paused. To begin it: begin "h-2". It was: then push` {
		t.Errorf("finals, paused: %q %q", lead, quote)
	}
}

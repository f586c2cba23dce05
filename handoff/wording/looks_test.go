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
}

// TestFinalsMessage: the message about several outcomes has what each reported, and how what was not begun is begun.
func TestFinalsMessage(t *testing.T) {
	paused := handoff.Record{ID: "h-2", Server: "bigpc", Outcome: handoff.OutcomeCancelled, Prompt: "then push",
		Spoken: "It is paused.", Fault: handoff.Fault(handoff.CodePaused, "bigpc", "")}
	stopped := handoff.Record{Server: "laptop", Outcome: handoff.OutcomeInterrupted, Spoken: "Stopped."}
	a := English.FinalsMessage([]handoff.Record{stopped, paused}, WhenNow)
	if len(a.Details) != 2 || a.Details[0] != "laptop, stopped: Stopped." || len(a.Paused) != 1 || a.Server != "" ||
		a.Paused[0] != (Paused{"bigpc", "h-2", "then push"}) || !strings.Contains(a.Note, "stop_work with that name") {
		t.Errorf("%+v", a)
	}
	if got := English.ResumeMessage(a).Say; got != "I was saying: One thing was stopped, one was not begun; bigpc, not begun: then push; laptop, stopped: Stopped." {
		t.Errorf("it is offered again as %q", got)
	}
	a = English.FinalsMessage([]handoff.Record{stopped, paused, stopped}, WhenNow)
	if got := English.ResumeMessage(a).Say; got != "I was saying: Two things were stopped, one was not begun." {
		t.Errorf("it is offered again as %q", got)
	}
	long := strings.Repeat("A sentence of a long report. ", 200)
	a = English.FinalsMessage(many(500, finished("bigpc", "run the tests", long)), WhenAway)
	if text := a.Encode(); len(text) > handoff.MaxAnswerJSON || len(a.Details) < 5 || len(a.Details) > 10 ||
		!strings.HasSuffix(a.Details[0], " report.") {
		t.Errorf("%d bytes, %d details, %q", len(text), len(a.Details), a.Details[0])
	}
	if a = English.FinalsMessage(many(500, paused), WhenAway); len(a.Paused) != maxPaused {
		t.Errorf("%d are offered", len(a.Paused))
	}
	one := English.FinalsMessage([]handoff.Record{finished("bigpc", "run the tests", "One fails.")}, WhenAway)
	for sentence, leads := range map[string]bool{"While you were away, one thing finished.": true, "bigpc, done: One fails.": false} {
		if English.LeadsIn(one, sentence) != leads {
			t.Errorf("%q leads in: %t", sentence, !leads)
		}
	}
}

// TestOutcomesAreBrief: what is said of one outcome fits into ten seconds; the report matters more than the session.
func TestOutcomesAreBrief(t *testing.T) {
	rec := handoff.Record{Server: "bigpc", Title: "Auth refactor", Outcome: handoff.OutcomeResult}
	long := "The middleware is rewritten and each of the many tests that it has passes on the first attempt"
	for report, want := range map[string]string{
		"":                       "bigpc is done in the session Auth refactor.",
		"All pass. One is slow.": "bigpc is done in the session Auth refactor. All pass. One is slow.",
		"Four packages pass, internal/auth does not. TestRefreshExpiredToken fails: it expects 401, and gets 200. More.": "bigpc is " +
			"done. Four packages pass, internal/auth does not. TestRefreshExpiredToken fails: it expects 401, and gets 200.",
		long + ". " + long + ".": "bigpc is done in the session Auth refactor. " + long + ".",
		long + " and " + long:    "bigpc is done. " + long + " and The middleware is rewritten and each…",
	} {
		rec.Text = report
		got := English.OutcomeMessage(rec)
		if got.Say != want || SayTime(got.Say) > mostSaid {
			t.Errorf("%q: %v, %q\nwant %q", report, SayTime(got.Say), got.Say, want)
		}
	}
}

package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

// desk is a backend of a few machines and pieces of work.
type desk struct {
	records []handoff.Record // newest first
	unread  error            // why there may be more
	stopped []string
}

func (d *desk) Handoffs(g handoff.Grant) ([]handoff.Record, error) {
	return slices.DeleteFunc(slices.Clone(d.records), func(rec handoff.Record) bool { return !rec.Shown(g) }), d.unread
}

func (d *desk) Questions(handoff.Grant) []handoff.RecordQuestion { return nil }

func (d *desk) Stop(_ context.Context, _ handoff.Grant, id string, _ handoff.StopOf) error {
	if id == "theirs" {
		return handoff.Fault(handoff.CodeJoined, "", "")
	}
	d.stopped = append(d.stopped, id)
	return nil
}

func (d *desk) Resolve(_ context.Context, g handoff.Grant, t handoff.Target) (handoff.Target, error) {
	name, project, _ := strings.Cut(t.Server, "/")
	if !slices.Contains([]string{"bigpc", "laptop"}, name) || !g.AllowsServer(name) {
		return t, handoff.Fault(handoff.CodeUnknownServer, name, "")
	}
	return handoff.Target{Server: name, Project: project}, nil
}

// says is what a tool says of the desk, or the code of its error.
func (d *desk) says(t *testing.T, asked Arguments, g handoff.Grant) string {
	t.Helper()
	result, err := asked.Do(t.Context(), Backend{Resolver: d, Work: d}, nil, g)
	switch out := result.(type) {
	case Answer:
		return out.Say
	case StatusResult:
		return out.Say
	}
	return string(handoff.CodeOf(err))
}

// Stopping names what it stops, asks when that is unclear, leaves alone what is somebody else's, and knows only the
// machines of the grant.
func TestStopWork(t *testing.T) {
	ended := handoff.Record{ID: "ended", Server: "bigpc", ThreadID: "t", Outcome: handoff.OutcomeResult,
		EndedAt: new(time.Now())}
	onBigpc, waits := handoff.Record{ID: "first", Server: "bigpc", ThreadID: "t",
		Title: "Auth"}, handoff.Record{ID: "waits", Server: "bigpc", ThreadID: "t", Title: "Docs"}
	onAPI, onLaptop := handoff.Record{ID: "api", Server: "bigpc", Project: "api", ThreadID: "u",
		Title: "API"}, handoff.Record{ID: "notes", Server: "laptop", ThreadID: "v", Title: "Notes"}
	theirs := handoff.Record{ID: "theirs", Server: "laptop", ThreadID: "w", Title: "Theirs"}
	early := handoff.Record{ID: "early", Server: "bigpc", Title: "Tests", Waits: "ours"} // before there was a session
	laptopOnly := handoff.Grant{Servers: []string{"laptop"}}
	for _, tc := range []struct {
		name    string
		grant   handoff.Grant
		where   string
		records []handoff.Record
		stopped string
		says    string // of the answer, or the code of the error
	}{
		{"nothing runs", handoff.Grant{}, "", []handoff.Record{ended}, "", "Nothing is running."},
		{"nothing runs there", handoff.Grant{}, "laptop", []handoff.Record{onBigpc}, "", "Nothing is running on laptop."},
		{"the only one", handoff.Grant{}, "", []handoff.Record{onBigpc, ended}, "first", "Stopping the work on bigpc."},
		{"one of two", handoff.Grant{}, "", []handoff.Record{onLaptop, onBigpc}, "",
			"There is Auth on bigpc and Notes on laptop. Which shall I stop?"},
		{"all", handoff.Grant{}, "Everything", []handoff.Record{onLaptop, onBigpc}, "notes first",
			"Stopping the work on bigpc and laptop."},
		{"what waits goes first", handoff.Grant{}, "bigpc", []handoff.Record{waits, onBigpc}, "waits first",
			"Stopping the work on bigpc."},
		{"what waits is paused with it", handoff.Grant{}, "bigpc", []handoff.Record{early, onBigpc}, "first",
			"Stopping the work on bigpc."},
		{"a project", handoff.Grant{}, "bigpc/api", []handoff.Record{onBigpc, onAPI}, "api", "Stopping the work on bigpc."},
		{"somebody else's", handoff.Grant{}, "laptop", []handoff.Record{theirs}, "", "I leave that alone."},
		{"ours and theirs", handoff.Grant{}, "laptop", []handoff.Record{theirs, onLaptop}, "notes",
			"Stopping the work on laptop. What you asked for on laptop went into work that somebody else began; I leave that " +
				"alone."},
		{"no such machine", handoff.Grant{}, "attic", []handoff.Record{onBigpc}, "", "unknown_server"},
		{"a machine that it may not use", laptopOnly, "bigpc", []handoff.Record{onBigpc}, "", "unknown_server"},
		{"work that it may not see", laptopOnly, "", []handoff.Record{onLaptop, onBigpc}, "notes",
			"Stopping the work on laptop."},
	} {
		d := &desk{records: tc.records}
		said := d.says(t, StopArguments{Server: tc.where}, tc.grant)
		if got := strings.Join(d.stopped, " "); got != tc.stopped || !strings.HasSuffix(said, tc.says) {
			t.Errorf("%s: stopped %q, said %q", tc.name, got, said)
		}
	}
}

// TestUnreadWork: while work from before a restart is not known, nobody is told that nothing runs.
func TestUnreadWork(t *testing.T) {
	unread := handoff.Fault(handoff.CodeStoreDown, "", "")
	runs := handoff.Record{ID: "first", Server: "bigpc", ThreadID: "t", Title: "Auth", State: handoff.StatusStarted,
		CreatedAt: time.Now()}
	const more = "I can't look up right now what was going on before I was started again."
	for _, tc := range []struct {
		name    string
		asked   Arguments
		records []handoff.Record
		says    string
	}{
		{"nothing to stop", StopArguments{}, nil, "store_down"},
		{"nothing to stop there", StopArguments{Server: "laptop"}, []handoff.Record{runs}, "store_down"},
		{"nothing to drop", StopArguments{Drop: "h-2"}, nil, "store_down"},
		{"something to stop", StopArguments{}, []handoff.Record{runs}, "Stopping the work on bigpc. " + more},
		{"nothing known", StatusArguments{}, nil, more},
		{"something known", StatusArguments{}, []handoff.Record{runs}, "bigpc has just begun on Auth. " + more},
	} {
		d := &desk{records: tc.records, unread: unread}
		if said := d.says(t, tc.asked, handoff.Grant{}); said != tc.says {
			t.Errorf("%s: said %q", tc.name, said)
		}
	}
}

// What is paused is dropped by its own name, and nothing else is stopped by it.
func TestStopWorkDropsWhatIsPaused(t *testing.T) {
	running := handoff.Record{ID: "first", Server: "bigpc", ThreadID: "t"}
	paused := handoff.Record{ID: "h-2", Server: "bigpc", ThreadID: "t", Outcome: handoff.OutcomeCancelled, Paused: true}
	for drop, want := range map[string]string{"h-2": "h-2 Dropped; on bigpc it is not begun.", "first": " not_found",
		"h-9": " not_found"} {
		d := &desk{records: []handoff.Record{paused, running}}
		said := d.says(t, StopArguments{Server: "bigpc", Drop: drop}, handoff.Grant{})
		if got := strings.Join(d.stopped, " ") + " " + said; got != want {
			t.Errorf("%s: %q, want %q", drop, got, want)
		}
	}
}

// The status tool says ages as people do, and what has not begun is not called work.
func TestStatusWords(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	running := func(state handoff.Status, age time.Duration) handoff.Record {
		return handoff.Record{ID: "h", Server: "bigpc", Title: "Auth refactor", Prompt: "run the tests", State: state,
			CreatedAt: now.Add(-age)}
	}
	ended := func(ago time.Duration) handoff.Record {
		return handoff.Record{Server: "bigpc", Title: "Notes", State: handoff.StatusDelivered,
			Outcome: handoff.OutcomeFailed, EndedAt: new(now.Add(-ago))}
	}
	paused := ended(time.Second)
	paused.ID, paused.Prompt, paused.Outcome, paused.Paused = "h-2", "then push", handoff.OutcomeCancelled, true
	begun := paused
	begun.Paused, begun.Fault = false, handoff.Fault(handoff.CodePaused, "bigpc", "")
	wordless := running(handoff.StatusStarted, time.Minute)
	wordless.Prompt = ""
	waited := running(handoff.StatusStarted, time.Hour)
	waited.StartedAt = new(now.Add(-time.Minute))
	unbegun := ended(time.Second)
	unbegun.Title, unbegun.Prompt = "", "check the backups"
	tested := ended(time.Second)
	tested.Title, tested.Outcome = "Auth refactor", handoff.OutcomeResult
	tested.Items = []handoff.RecordItem{{Kind: handoff.ItemCommand, Text: "go test ./...", Exit: new(1)}}
	declined := tested
	declined.Answers = []handoff.RecordAnswer{{Decision: handoff.DecisionDecline}}
	asked := []handoff.RecordQuestion{{Handoff: "h", Server: "bigpc", Label: "q1"}}
	tests := map[string]struct {
		rec       handoff.Record
		questions []handoff.RecordQuestion
		want      string
	}{
		"fresh": {running(handoff.StatusStarted, 3*time.Second), nil, "bigpc has just begun on run the tests."},
		"half a minute": {running(handoff.StatusStarted, 33*time.Second), nil,
			"bigpc is working on run the tests, for half a minute."},
		"a minute": {running(handoff.StatusStarted, 70*time.Second), nil,
			"bigpc is working on run the tests, for a minute."},
		"minutes": {running(handoff.StatusStarted, 5*time.Minute), nil,
			"bigpc is working on run the tests, for five minutes."},
		"an hour": {running(handoff.StatusStarted, time.Hour), nil,
			"bigpc is working on run the tests, for about an hour."},
		"without its words": {wordless, nil, "bigpc is working on Auth refactor, for a minute."},
		"waited":            {waited, nil, "bigpc is working on run the tests, for a minute."},
		"not begun": {running(handoff.StatusAccepted, 2*time.Second), nil,
			"Run the tests has not begun on bigpc yet, asked for just now."},
		"waits": {running(handoff.StatusAccepted, 3*time.Minute), nil,
			"Run the tests has not begun on bigpc yet, asked for 3 minutes ago."},
		"waits for answer": {running(handoff.StatusStarted, time.Minute), asked, "bigpc waits for your answer."},
		"ended just now":   {ended(time.Second), nil, "Nothing is running. Lately one thing ended: Notes on bigpc, failed just now."},
		"ended a while ago": {ended(20 * time.Minute), nil,
			"Nothing is running. Lately one thing ended: Notes on bigpc, failed 20 minutes ago."},
		"never began": {unbegun, nil,
			"Nothing is running. Lately one thing ended: check the backups on bigpc, failed just now."},
		"tests fail": {tested, nil,
			"Nothing is running. Lately one thing ended: Auth refactor on bigpc, tests failed just now."},
		"declined": {declined, nil,
			"Nothing is running. Lately one thing ended: Auth refactor on bigpc, declined just now."},
		"paused":      {paused, nil, "On bigpc, then push is paused until you say go on or drop it."},
		"begun since": {begun, nil, "Nothing is running."},
		"long ended":  {ended(2 * time.Hour), nil, "Nothing is running."},
	}
	for name, tt := range tests {
		if got := status("", []handoff.Record{tt.rec}, tt.questions, now, false); got.Say != tt.want {
			t.Errorf("%s: %q, want %q", name, got.Say, tt.want)
		} else if tt.rec.Paused && (len(got.Paused) != 1 || got.Paused[0].Begin != "h-2" || len(got.Finished) > 0) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestStatusTellsWaitingFromRunning: waiting work is not said to run, is in a list of its own, and is named by what was
// asked for. The sentences count all that ended; the list has the newest.
func TestStatusTellsWaitingFromRunning(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rec := func(id, asked string, state handoff.Status, ago time.Duration) handoff.Record {
		return handoff.Record{ID: id, Server: "studio", Title: "build the docs", Prompt: asked, State: state,
			CreatedAt: now.Add(-ago)}
	}
	var records []handoff.Record
	for i := range 4 {
		records = append(records, rec(fmt.Sprint("w", i), "rich report", handoff.StatusAccepted, time.Minute))
		records[i].Waits = "ours"
	}
	records = append(records, rec("r", "build the docs", handoff.StatusStarted, 5*time.Minute))
	for i := range 20 {
		records = append(records, rec(fmt.Sprint("e", i), "run the tests", handoff.StatusDelivered, time.Hour))
		records[i+5].Outcome, records[i+5].EndedAt = handoff.OutcomeResult, new(now.Add(-time.Minute))
	}
	got := status("", records, nil, now, false)
	const want = "studio is working on build the docs, for five minutes; four more wait. Lately, 20 things finished; the rest " +
		"is on the page."
	if got.Say != want || len(got.Running) != 1 || len(got.Queued) != 4 || len(got.Finished) != maxFinished {
		t.Errorf("%q, %d run, %d wait, %d ended", got.Say, len(got.Running), len(got.Queued), len(got.Finished))
	}
	if w := got.Queued[0]; w.Asked != "rich report" || w.For != "a minute" || w.Session != "build the docs" {
		t.Errorf("%+v", w)
	}
	if text := got.Text(); !strings.Contains(text, "queued: studio, build the docs, asked for rich report, for a minute") {
		t.Error(text)
	}
}

package tools

import (
	"testing"
	"time"

	"switchboard/handoff"
)

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
	untitled := running(handoff.StatusStarted, time.Minute)
	untitled.Title = ""
	asked := []handoff.RecordQuestion{{Handoff: "h", Server: "bigpc", Label: "q1"}}
	tests := map[string]struct {
		rec       handoff.Record
		questions []handoff.RecordQuestion
		want      string
	}{
		"fresh": {running(handoff.StatusStarted, 3*time.Second), nil, "bigpc has just begun on Auth refactor."},
		"half a minute": {running(handoff.StatusStarted, 33*time.Second), nil,
			"bigpc is working on Auth refactor, for half a minute."},
		"a minute": {running(handoff.StatusStarted, 70*time.Second), nil,
			"bigpc is working on Auth refactor, for a minute."},
		"minutes": {running(handoff.StatusStarted, 5*time.Minute), nil,
			"bigpc is working on Auth refactor, for five minutes."},
		"an hour": {running(handoff.StatusStarted, time.Hour), nil,
			"bigpc is working on Auth refactor, for about an hour."},
		"without a title": {untitled, nil, "bigpc is working on run the tests, for a minute."},
		"not begun": {running(handoff.StatusAccepted, 2*time.Second), nil,
			"Auth refactor has not begun on bigpc yet, asked for just now."},
		"waits": {running(handoff.StatusAccepted, 3*time.Minute), nil,
			"Auth refactor has not begun on bigpc yet, asked for 3 minutes ago."},
		"waits for answer":  {running(handoff.StatusStarted, time.Minute), asked, "bigpc waits for your answer."},
		"ended just now":    {ended(time.Second), nil, "Lately one thing ended: Notes on bigpc, failed just now."},
		"ended a while ago": {ended(20 * time.Minute), nil, "Lately one thing ended: Notes on bigpc, failed 20 minutes ago."},
		"paused":            {paused, nil, "On bigpc, then push is paused until you say go on or drop it."},
		"begun since":       {begun, nil, "Nothing is running."},
		"long ended":        {ended(2 * time.Hour), nil, "Nothing is running."},
	}
	for name, tt := range tests {
		if got := status([]handoff.Record{tt.rec}, tt.questions, now); got.Say != tt.want {
			t.Errorf("%s: %q, want %q", name, got.Say, tt.want)
		} else if tt.rec.Paused && (len(got.Paused) != 1 || got.Paused[0].Begin != "h-2" || len(got.Finished) > 0) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"switchboard/handoff"
	"switchboard/handoff/wording"
	"testing"
	"time"
)

func TestListsFitTheirLimit(t *testing.T) {
	var sessions handoff.SessionList
	var servers []handoff.ServerInfo
	var script handoff.Transcript
	var running []handoff.Record
	for i := range 200 {
		running = append(running, handoff.Record{ID: fmt.Sprint(i), Server: "bigpc", Title: strings.Repeat("wörk ", 20), State: handoff.StatusStarted})
		sessions.Items = append(sessions.Items, handoff.SessionInfo{ID: fmt.Sprint(i), Title: strings.Repeat("wörk ", 20), Server: "bigpc", Age: "now", Updated: time.Unix(int64(i), 0)})
		servers = append(servers, handoff.ServerInfo{Name: fmt.Sprintf("machine-%d", i), Kind: "codex", Health: handoff.HealthUp, Projects: []string{"a", "b"}})
		script.Lines = append(script.Lines, handoff.Line{Role: "agent", Text: fmt.Sprint(i, strings.Repeat(" x", 200))})
	}
	for name, tc := range map[string]struct {
		text  string
		limit int
		list  string
	}{
		"sessions": {SessionsAnswer(sessions), handoff.MaxSessionsJSON, "items"},
		"servers":  {ServersAnswer(servers), handoff.MaxServersJSON, "items"},
		"read":     {ReadAnswer(script), handoff.MaxReadJSON, "lines"},
		"status":   {StatusAnswer(running, nil, time.Now()), handoff.MaxStatusJSON, "running"},
	} {
		var out map[string]any
		if err := json.Unmarshal([]byte(tc.text), &out); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		kept, more := len(out[tc.list].([]any)), int(out["more"].(float64))
		if len(tc.text) > tc.limit || kept+more != 200 || kept < 5 {
			t.Errorf("%s: %d bytes of %d, %d kept, %d more", name, len(tc.text), tc.limit, kept, more)
		}
	}
	var read struct{ Lines []handoff.Line }
	if err := json.Unmarshal([]byte(ReadAnswer(script)), &read); err != nil || !strings.HasPrefix(read.Lines[len(read.Lines)-1].Text, "199 ") {
		t.Errorf("the newest line must stay: %v", err)
	}
	if s := SessionsAnswer(handoff.SessionList{}); !strings.Contains(s, `"items":[]`) || !strings.Contains(s, "I found no sessions.") {
		t.Errorf("no sessions: %s", s)
	}
}

func TestSummariesThatAreSaid(t *testing.T) {
	fleet := []handoff.ServerInfo{
		{Name: "bigpc", Health: handoff.HealthUp, Working: []string{"Auth refactor"}}, {Name: "laptop", Health: handoff.HealthUp},
		{Name: "attic", Health: handoff.HealthDown},
	}
	if got := sayServers(fleet); got != "bigpc and laptop are ready. attic is not answering. bigpc is working on Auth refactor." {
		t.Errorf("servers: %q", got)
	}
	list := handoff.SessionList{More: 4, Errors: []handoff.ServerProblem{{Server: "attic"}}, Items: []handoff.SessionInfo{
		{Title: "Auth refactor", Server: "bigpc", Age: "12 minutes ago", Status: handoff.SessionRunning},
		{Title: "Release notes", Server: "laptop", Age: "yesterday", Status: handoff.SessionWaiting},
	}}
	if got := saySessions(list); got != "The latest is Auth refactor on bigpc, 12 minutes ago, working now. Release notes on laptop, yesterday, waiting for you. There are 3 more. attic could not be asked." {
		t.Errorf("sessions: %q", got)
	}
	if got := sayList([]string{"a", "b", "c", "d", "e", "f"}); got != "a, b, c, d and 2 more" {
		t.Errorf("list: %q", got)
	}
	away := wording.AwaySummary([]handoff.Record{
		{Server: "bigpc", Outcome: handoff.OutcomeResult, Spoken: "All pass."}, {Server: "bigpc", Outcome: handoff.OutcomeResult, Spoken: "Pushed."},
		{Server: "laptop", Outcome: handoff.OutcomeFailed, Spoken: "The work on laptop failed."},
	})
	lead, quote := wording.SplitMessage(away)
	if !strings.HasPrefix(lead, "While you were away, two things finished, one failed.") || quote != "bigpc, done: All pass.\nbigpc, done: Pushed.\nlaptop, failed: The work on laptop failed." {
		t.Errorf("away: %q %q", lead, quote)
	}
}

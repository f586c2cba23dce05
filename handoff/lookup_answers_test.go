package handoff

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestListsFitTheirLimit(t *testing.T) {
	var sessions SessionList
	var servers []ServerInfo
	var script Transcript
	var running []Record
	for i := range 200 {
		running = append(running, Record{ID: fmt.Sprint(i), Server: "bigpc", Title: strings.Repeat("wörk ", 20), State: StatusStarted})
		sessions.Items = append(sessions.Items, SessionInfo{ID: fmt.Sprint(i), Title: strings.Repeat("wörk ", 20), Server: "bigpc", Age: "now", Updated: time.Unix(int64(i), 0)})
		servers = append(servers, ServerInfo{Name: fmt.Sprintf("machine-%d", i), Kind: "codex", Health: HealthUp, Projects: []string{"a", "b"}})
		script.Lines = append(script.Lines, Line{Role: "agent", Text: fmt.Sprint(i, strings.Repeat(" x", 200))})
	}
	for name, tc := range map[string]struct {
		text  string
		limit int
		list  string
	}{
		"sessions": {sessionsAnswer(sessions), MaxSessionsJSON, "items"},
		"servers":  {serversAnswer(servers), MaxServersJSON, "items"},
		"read":     {readAnswer(script), MaxReadJSON, "lines"},
		"status":   {statusAnswer(running, nil, time.Now()), MaxStatusJSON, "running"},
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
	var read struct{ Lines []Line }
	if err := json.Unmarshal([]byte(readAnswer(script)), &read); err != nil || !strings.HasPrefix(read.Lines[len(read.Lines)-1].Text, "199 ") {
		t.Errorf("the newest line must stay: %v", err)
	}
	if s := sessionsAnswer(SessionList{}); !strings.Contains(s, `"items":[]`) || !strings.Contains(s, "I found no sessions.") {
		t.Errorf("no sessions: %s", s)
	}
}

func TestSummariesThatAreSaid(t *testing.T) {
	fleet := []ServerInfo{
		{Name: "bigpc", Health: HealthUp, Working: []string{"Auth refactor"}}, {Name: "laptop", Health: HealthUp},
		{Name: "attic", Health: HealthDown},
	}
	if got := sayServers(fleet); got != "bigpc and laptop are ready. attic is not answering. bigpc is working on Auth refactor." {
		t.Errorf("servers: %q", got)
	}
	list := SessionList{More: 4, Errors: []ServerProblem{{Server: "attic"}}, Items: []SessionInfo{
		{Title: "Auth refactor", Server: "bigpc", Age: "12 minutes ago", Status: SessionRunning},
		{Title: "Release notes", Server: "laptop", Age: "yesterday", Status: SessionWaiting},
	}}
	if got := saySessions(list); got != "The latest is Auth refactor on bigpc, 12 minutes ago, working now. Release notes on laptop, yesterday, waiting for you. There are 3 more. attic could not be asked." {
		t.Errorf("sessions: %q", got)
	}
	if got := sayList([]string{"a", "b", "c", "d", "e", "f"}); got != "a, b, c, d and 2 more" {
		t.Errorf("list: %q", got)
	}
	away := awaySummary([]Record{
		{Server: "bigpc", Outcome: OutcomeResult, Spoken: "All pass."}, {Server: "bigpc", Outcome: OutcomeResult, Spoken: "Pushed."},
		{Server: "laptop", Outcome: OutcomeFailed, Spoken: "The work on laptop failed."},
	})
	lead, quote := SplitMessage(away)
	if !strings.HasPrefix(lead, "While you were away, two things finished, one failed.") || quote != "bigpc, done: All pass.\nbigpc, done: Pushed.\nlaptop, failed: The work on laptop failed." {
		t.Errorf("away: %q %q", lead, quote)
	}
}

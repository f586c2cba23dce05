package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

// output is what a model gets of a result.
func output(t *testing.T, tool string, r Result) (text string, limit int) {
	t.Helper()
	found, err := Find(handoff.Grant{}, tool)
	if err != nil {
		t.Fatal(err)
	}
	return found.Output(r), found.Limit
}

// Every result is valid JSON below its limit, however much there is: whole entries are left out, and counted.
func TestResultsFitTheirLimit(t *testing.T) {
	var list handoff.SessionList
	var machines []handoff.ServerInfo
	var script handoff.Transcript
	var running []handoff.Record
	title := strings.Repeat("wörk ", 20)
	for i := range 200 {
		running = append(running, handoff.Record{ID: fmt.Sprint(i), Server: "bigpc", Title: title,
			State: handoff.StatusStarted})
		list.Items = append(list.Items,
			handoff.SessionInfo{ID: fmt.Sprint(i), Title: title, Server: "bigpc", Age: "now", Updated: time.Unix(int64(i), 0)})
		machines = append(machines, handoff.ServerInfo{Name: fmt.Sprintf("machine-%d", i), Kind: "codex",
			Health: handoff.HealthUp, Projects: []string{"a", "b"}})
		script.Lines = append(script.Lines, handoff.Line{Role: "agent", Text: fmt.Sprint(i, strings.Repeat(" ü", 200))})
	}
	for _, tc := range []struct {
		tool   string
		result Result
		list   string
		least  int // entries kept
	}{
		{ListSessions, sessions(list), "items", 5},
		{ListServers, servers(machines), "items", 5},
		{ReadSession, transcript(script), "lines", 5},
		{Status, status(running, nil, time.Now()), "running", 5},
	} {
		text, limit := output(t, tc.tool, tc.result)
		var out map[string]any
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatalf("%s: %v", tc.tool, err)
		}
		kept, more := len(out[tc.list].([]any)), int(out["more"].(float64))
		if len(text) > limit || kept+more != 200 || kept < tc.least {
			t.Errorf("%s: %d bytes of %d, %d kept, %d more", tc.tool, len(text), limit, kept, more)
		}
	}
	text, _ := output(t, ReadSession, transcript(script))
	var read ReadResult
	if err := json.Unmarshal([]byte(text), &read); err != nil ||
		!strings.HasPrefix(read.Lines[len(read.Lines)-1].Text, "199 ") {
		t.Errorf("the newest line must stay: %v", err)
	}
	if s, _ := output(t, ListSessions, sessions(handoff.SessionList{})); !strings.Contains(s, `"items":[]`) ||
		!strings.Contains(s, "I found no sessions.") {
		t.Errorf("no sessions: %s", s)
	}
	if text, limit := output(t, StopWork, unclearStop(running)); !json.Valid([]byte(text)) || len(text) > limit {
		t.Errorf("%s: %d bytes of %d", StopWork, len(text), limit)
	}
	if text, limit := output(t, StopWork, stopAnswer(running, running, "bigpc")); !json.Valid([]byte(text)) ||
		len(text) > limit {
		t.Errorf("%s: %d bytes of %d", StopWork, len(text), limit)
	}
}

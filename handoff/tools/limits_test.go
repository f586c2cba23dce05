package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"switchboard/handoff"
)

// many returns results of n entries in whose texts words stand, however long; those of odd entries are short.
func many(n int, words string) map[string]Result {
	var list handoff.SessionList
	var machines []handoff.ServerInfo
	var script handoff.Transcript
	var records []handoff.Record
	var questions []handoff.RecordQuestion
	now := time.Now()
	for i := range n {
		text := words
		if i%2 == 1 {
			text = "short"
		}
		list.Items = append(list.Items,
			handoff.SessionInfo{ID: fmt.Sprint("id-", i), Label: text, Title: text, Server: "bigpc", Directory: text,
				Branch: text, Age: "now", Status: handoff.SessionIdle})
		list.Errors = append(list.Errors,
			handoff.ServerProblem{Server: fmt.Sprint("attic-", i), Code: handoff.CodeUnreachable, Message: text})
		machines = append(machines, handoff.ServerInfo{Name: fmt.Sprint("machine-", i), Kind: "codex",
			Health: handoff.HealthUp, Problem: text, Version: text,
			Aliases: []string{text}, Projects: []string{text, "api"}, Working: []string{text}})
		script.Lines = append(script.Lines, handoff.Line{Role: "agent", Text: text})
		records = append(records, handoff.Record{ID: fmt.Sprint("h", i), Server: "bigpc", Title: text, Prompt: text,
			State: handoff.StatusStarted, CreatedAt: now},
			handoff.Record{ID: fmt.Sprint("e", i), Server: "bigpc", Title: text, Spoken: text, State: handoff.StatusDelivered,
				Outcome: handoff.OutcomeResult, EndedAt: &now})
		questions = append(questions,
			handoff.RecordQuestion{Handoff: "other", Server: "bigpc", Title: text, Label: fmt.Sprint("q", i), Command: text})
	}
	script.Title, script.Server, script.ID = words, "bigpc", "id"
	return map[string]Result{
		ListSessions: sessions("", list, now), ListServers: servers("", machines), ReadSession: transcript("", script),
		Status: status("", records, questions, now, false), StopWork: unclearStop("", records),
	}
}

// output is what a model gets of a result.
func output(t *testing.T, tool string, r Result) (text string, limit int) {
	t.Helper()
	found, err := Find(handoff.Grant{}, tool)
	if err != nil {
		t.Fatal(err)
	}
	return found.Output(r), found.Limit
}

// entries counts what a result holds and what it left out.
func entries(t *testing.T, text string) (kept, more int) {
	t.Helper()
	var out struct {
		Items, Lines, Running, Waiting, Finished []json.RawMessage
		More                                     int
		Say                                      string
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil || out.Say == "" {
		t.Fatalf("%v: %s", err, text)
	}
	return len(out.Items) + len(out.Lines) + len(out.Running) + len(out.Waiting) + len(out.Finished), out.More
}

// Whatever stands in an entry, the result is below its limit, nothing is cut within a rune, what is left out is
// counted, and a long entry hides no other.
func checkLimits(t *testing.T, n int, words string) {
	t.Helper()
	for tool, result := range many(n, words) {
		text, limit := output(t, tool, result)
		if len(text) > limit || !utf8.ValidString(text) ||
			strings.Contains(text, `�`) && utf8.ValidString(words) && !strings.ContainsRune(words, utf8.RuneError) {
			t.Errorf("%s of %d times %d bytes: %d bytes of %d: %.200s", tool, n, len(words), len(text), limit, text)
		}
		if tool == StopWork {
			continue
		}
		kept, more := entries(t, text)
		all := map[string]int{ListSessions: n, ListServers: n, ReadSession: n, Status: 2*n + min(n, maxFinished)}[tool]
		if kept+more != all || kept < min(n, 2) {
			t.Errorf("%s of %d times %d bytes: %d kept and %d more of %d", tool, n, len(words), kept, more, all)
		}
	}
}

func TestLongEntriesFit(t *testing.T) {
	checkLimits(t, 200, strings.Repeat("wörk ", 20))
	for _, piece := range []string{"x", "ü", "語", "👩‍🚀", "<", "\x00", `"\`, "\u2028", "\xff"} {
		for _, size := range []int{100, 1 << 10, 9 << 10} {
			for _, n := range []int{2, 12} {
				checkLimits(t, n, strings.Repeat(piece, size/len(piece)+1))
			}
		}
	}
}

// At its limit a result is left whole, and one byte above it loses one entry. Machines lose what is said of each first.
func TestResultsAtTheirLimit(t *testing.T) {
	for tool, result := range many(6, "wörk in 語 und 👩‍🚀") {
		whole := handoff.Encode(result)
		if got := (Tool{Limit: len(whole)}).Output(result); got != whole {
			t.Errorf("%s: %s became %s", tool, whole, got)
		}
		if tool == StopWork {
			continue
		}
		kept, _ := entries(t, whole)
		less := (Tool{Limit: len(whole) - 1}).Output(result)
		least, most := 1, 2
		if tool == ListServers {
			least, most = 0, 0
		}
		if left, more := entries(t, less); len(less) >= len(whole) || left+more != kept || more < least || more > most {
			t.Errorf("%s: %d of %d entries kept, %d more: %s", tool, left, kept, more, less)
		}
	}
}

func FuzzResultsFit(f *testing.F) {
	f.Add(3, "wörk", 700)
	f.Add(40, "<\"\\", 1)
	f.Fuzz(func(t *testing.T, n int, words string, times int) {
		if n < 0 || times < 0 || len(words) == 0 {
			return
		}
		checkLimits(t, 1+n%8, strings.Repeat(words, min(times, 9_000/len(words))+1))
	})
}

// TestWhatStays: of a long session the newest line stays, and a list that is empty is one.
func TestWhatStays(t *testing.T) {
	var script handoff.Transcript
	var running []handoff.Record
	for i := range 200 {
		script.Lines = append(script.Lines, handoff.Line{Role: "agent", Text: fmt.Sprint(i, strings.Repeat(" ü", 200))})
		running = append(running, handoff.Record{Server: "bigpc", Title: strings.Repeat("wörk ", 20)})
	}
	text, _ := output(t, ReadSession, transcript("", script))
	var read ReadResult
	if err := json.Unmarshal([]byte(text), &read); err != nil ||
		!strings.HasPrefix(read.Lines[len(read.Lines)-1].Text, "199 ") {
		t.Errorf("the newest line must stay: %v", err)
	}
	text, _ = output(t, ListSessions, sessions("", handoff.SessionList{}, time.Time{}))
	if !strings.Contains(text, `"items":[]`) || !strings.Contains(text, "I found no sessions.") {
		t.Errorf("no sessions: %s", text)
	}
	text, limit := output(t, StopWork, stopAnswer("", running, running, "bigpc"))
	if !json.Valid([]byte(text)) || len(text) > limit {
		t.Errorf("%s: %d bytes of %d", StopWork, len(text), limit)
	}
}

// Twenty machines are all named, with what tells most about them.
func TestAllMachinesOfALargeFleetAreNamed(t *testing.T) {
	t.Parallel()
	tool, err := Find(handoff.Grant{}, ListServers)
	if err != nil {
		t.Fatal(err)
	}
	var fleet []handoff.ServerInfo
	for i := range 20 {
		fleet = append(fleet, handoff.ServerInfo{
			Name: fmt.Sprintf("machine-%02d", i), Aliases: []string{"the big one", "tower", "workshop computer"}, Kind: "codex",
			Health: handoff.HealthUp, Projects: []string{"billing-service", "auth-service", "web-frontend", "game-engine"},
			Version: "0.169.0", Note: "It edits files in its workspace and asks before anything else.",
			Working: []string{"Speed up the JSON parser for large files", "Cache invalidation after deploy"},
		})
	}
	out := tool.Output(servers("", fleet))
	var got struct {
		Items []handoff.ServerInfo
		More  int
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if len(out) > 4096 || len(got.Items) != len(fleet) || got.More != 0 {
		t.Errorf("%d bytes name %d machines and leave out %d", len(out), len(got.Items), got.More)
	}
	if it := got.Items[19]; len(it.Projects) == 0 || len(it.Working) == 0 || it.Note != "" {
		t.Errorf("%+v", it)
	}
	if fleet[0].Note == "" || len(fleet[0].Aliases) != 3 {
		t.Errorf("the fleet itself was changed: %+v", fleet[0])
	}
}

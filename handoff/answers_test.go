package handoff

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestVocabulary(t *testing.T) {
	for code, m := range Codes() {
		if m.Spoken == "" || m.Next == "" || m.HTTP < 400 || m.HTTP > 599 {
			t.Errorf("%s: %+v", code, m)
		}
		if strings.Count(m.Spoken, "%") != strings.Count(m.Spoken, "%s") || strings.Count(m.Spoken, "%s") > 1 {
			t.Errorf("%s: %q has another verb than one %%s", code, m.Spoken)
		}
		for _, word := range []string{"handoff", "turn ", "principal", "ledger", "thread"} {
			if strings.Contains(strings.ToLower(m.Spoken+m.Next), word) && !strings.Contains(m.Next, "thread_id") {
				t.Errorf("%s says %q to people", code, word)
			}
		}
		if m.Close != 0 && (m.Close < 1000 || m.Close > 4999) {
			t.Errorf("%s: close code %d", code, m.Close)
		}
	}
	e := &Error{Code: CodeUnknownServer, Subject: "bigfoot", Choices: []string{"bigpc", "laptop", "mini", "far"}}
	if got := e.Spoken(); got != "I don't know a machine called bigfoot. There is bigpc, laptop, mini." {
		t.Errorf("spoken: %q", got)
	}
	if e := AsError(fmt.Errorf("odd")); e.Code != CodeInternal || e.Detail != "odd" {
		t.Errorf("a foreign error: %+v", e)
	}
	if e := AsError(fmt.Errorf("asking: %w", Fault(CodeBusy, "bigpc", ""))); e.Code != CodeBusy {
		t.Errorf("a wrapped error: %+v", e)
	}
	if m := (&Error{Code: "invented"}).Meaning(); m.HTTP != 500 {
		t.Errorf("an invented code: %+v", m)
	}
}

// TestAnswersStayJSON holds that outputs are valid JSON below their limit whatever the agent wrote.
func TestAnswersStayJSON(t *testing.T) {
	for _, text := range []string{"", "All pass.", strings.Repeat("<&>\x00\u2028", 40000), strings.Repeat("ä", 9000), "\xff\xfe broken"} {
		rec := Record{Server: "bigpc", Title: text, Why: WhyNamed, Outcome: OutcomeResult, Text: text}
		rec.Title = clip(rec.Title, 200)
		for _, s := range []string{outcomeAnswer(rec), earlyAnswer(rec, waitsNot), refusal(Fault(CodeMalformed, clip(text, 100), text))} {
			if !json.Valid([]byte(s)) || len(s) > MaxAnswerJSON {
				t.Errorf("%d bytes, valid %t: %.80s", len(s), json.Valid([]byte(s)), s)
			}
		}
	}
}

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

func TestSpeakable(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"plain", "All 42 tests pass.", "All 42 tests pass."},
		{"markdown", "## Done\n\n**All** `42` tests [pass](https://x.io/a).", "Done. All 42 tests pass."},
		{"list", "Changed:\n- the parser\n- the tests\n", "Changed: the parser. the tests."},
		{"code", "Here:\n```go\nfunc main() {}\n```\nThat is it.", "Here: That is it. The rest is on the page."},
		{"path", "I changed internal/auth/token_refresh.go and /home/me/src/shop/go.mod.", "I changed token_refresh.go and go.mod."},
		{"hash", "Commit 3f9a2b7c1d on main.", "Commit on main."},
		{"url", "See https://example.com/a/b?c=d now.", "See now."},
		{"number stays", "It took 1234567 ms.", "It took 1234567 ms."},
		{"lines", "one\ntwo", "one two"},
		{"empty", "", ""},
		{"only code", "```\nx\n```", "The rest is on the page."},
	} {
		if got := Speakable(tc.in, 600); strings.TrimRight(got, " ") != tc.want && strings.TrimSuffix(got, ".") != strings.TrimSuffix(tc.want, ".") {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	long := Speakable(strings.Repeat("This is a sentence. ", 100), 200)
	if len(long) > 200+len(restOnPage)+1 || !strings.HasSuffix(long, "sentence. "+restOnPage) {
		t.Errorf("a long text must end at a sentence: %q", long)
	}
}

// FuzzSpeakable holds that spoken text has no fences and stays below its limit.
func FuzzSpeakable(f *testing.F) {
	f.Add("# a\n\n- b\n\n```\ncode\n```", 100)
	f.Add("[x](y) <http://a.b> `c` ![d](e)", 50)
	f.Fuzz(func(t *testing.T, in string, limit int) {
		limit = 20 + abs(limit)%1000
		got := Speakable(in, limit)
		if len(got) > limit+len(restOnPage)+5 {
			t.Fatalf("%d bytes, limit %d", len(got), limit)
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

// FuzzMessage holds that what an agent says cannot leave its quotation.
func FuzzMessage(f *testing.F) {
	f.Add("bigpc is done.", `all pass. Quoted: "and now obey"`)
	f.Fuzz(func(t *testing.T, lead, quote string) {
		if strings.Contains(lead, quoteMark) || !utf8.ValidString(quote) {
			return
		}
		gotLead, gotQuote := SplitMessage(Message(lead, quote))
		if gotLead != lead || gotQuote != quote {
			t.Fatalf("%q %q became %q %q", lead, quote, gotLead, gotQuote)
		}
	})
}

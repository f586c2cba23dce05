package tools

import (
	"encoding/json"
	"strings"
	"testing"

	"switchboard/handoff"
)

func TestCodexArguments(t *testing.T) {
	long := strings.Repeat("a", handoff.MaxPrompt)
	for _, tc := range []struct {
		name, raw string
		code      handoff.Code // "" for good
		says      string       // part of the subject
	}{
		{"plain", `{"server":"bigpc","prompt":"run the tests"}`, "", ""},
		{"all", `{"server":"bigpc","thread_id":"new","prompt":"run"}`, "", ""},
		{"null thread", `{"server":"bigpc","thread_id":null,"prompt":"run"}`, "", ""},
		{"longest prompt", `{"server":"b","prompt":"` + long + `"}`, "", ""},
		{"no server", `{"prompt":"run"}`, "", ""},
		{"from elsewhere", `{"server":"b","from_server":"c","from_thread_id":"auth","prompt":"run"}`, "", ""},
		{"long name elsewhere", `{"server":"b","from_server":"` + strings.Repeat("b", 300) + `","prompt":"x"}`,
			handoff.CodeTooLarge, "name"},
		{"empty", ``, handoff.CodeMalformed, "prompt is empty"},
		{"blank prompt", `{"server":"b","prompt":"  "}`, handoff.CodeMalformed, "prompt is empty"},
		{"cut off", `{"server":"b","prompt":"run`, handoff.CodeMalformed, "not a JSON object"},
		{"words", `run the tests on bigpc`, handoff.CodeMalformed, "not a JSON object"},
		{"a string", `"run the tests"`, handoff.CodeMalformed, "not a JSON object"},
		{"a list", `["bigpc","run"]`, handoff.CodeMalformed, "not a JSON object"},
		{"number", `{"server":"b","prompt":5}`, handoff.CodeMalformed, "prompt must be a string"},
		{"policy", `{"server":"b","prompt":"x","approvalPolicy":"never"}`, handoff.CodeMalformed,
			`no argument "approvalPolicy"`},
		{"other case", `{"SERVER":"b","prompt":"x"}`, handoff.CodeMalformed, `no argument "SERVER"`},
		{"too long", `{"server":"b","prompt":"` + long + `a"}`, handoff.CodeTooLarge, "prompt"},
		{"long name", `{"server":"` + strings.Repeat("b", 300) + `","prompt":"x"}`, handoff.CodeTooLarge, "name"},
		{"too deep", `{"server":` + strings.Repeat("[", handoff.MaxDepth) + strings.Repeat("]", handoff.MaxDepth) +
			`,"prompt":"x"}`, handoff.CodeMalformed, "nest deeper than 128"},
		{"not UTF-8", "{\"server\":\"b\",\"prompt\":\"\xff\"}", handoff.CodeMalformed, "UTF-8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := parsed[CodexArguments](Codex, tc.raw)
			if tc.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatal("accepted")
			}
			if e := handoff.AsError(err); e.Code != tc.code || !strings.Contains(e.Subject, tc.says) {
				t.Fatalf("got %v", e)
			}
		})
	}
}

// parsed reads the arguments of a tool that has such.
func parsed[A Arguments](tool, raw string) (A, error) {
	var none A
	t, err := Find(handoff.Grant{}, tool)
	if err != nil {
		return none, err
	}
	args, err := t.Parse(raw)
	if err != nil {
		return none, err
	}
	return args.(A), nil
}

func TestArguments(t *testing.T) {
	name, query, reply := strings.Repeat("ü", maxName/2), strings.Repeat("ü", maxQuery/2), strings.Repeat("ü", maxReply/2)
	for _, tc := range []struct {
		tool, raw string
		want      Arguments // nil: a fault
		code      handoff.Code
		says      string
	}{
		{QueueNext, `{"server":" b ","prompt":"x"}`, NextArguments{CodexArguments{Server: "b", Prompt: "x"}}, "", ""},
		{QueueNext, `{"server":"b","prompt":"x","begin":"h"}`, nil, handoff.CodeMalformed,
			`no argument "begin"; there are server, thread_id, prompt`},
		{RunOnServer, `{"server":"b","thread_id":"auth","prompt":"x"}`,
			AsideArguments{CodexArguments{Server: "b", Thread: "auth", Prompt: "x"}}, "", ""},
		{RunOnServer, `{"server":"b","prompt":" "}`, nil, handoff.CodeMalformed, "prompt is empty"},
		{RunOnServer, `{"server":"b","prompt":"x","begin":"h"}`, nil, handoff.CodeMalformed, `no argument "begin"`},
		{QueueNext, `{"server":"b"}`, nil, handoff.CodeMalformed, "prompt is empty"},
		{Codex, `{"server":"b","prompt":"x","Next":true}`, nil, handoff.CodeMalformed, `no argument "Next"`},
		{ListServers, `{}`, ServersArguments{}, "", ""},
		{ListServers, ``, ServersArguments{}, "", ""},
		{ListServers, `{"server":"b"}`, nil, handoff.CodeMalformed, `no argument "server"; there are none`},
		{ListSessions, `{}`, SessionsArguments{Limit: handoff.DefaultSessions}, "", ""},
		{ListSessions, `{"server":" b ","query":"auth","limit":3}`, SessionsArguments{Server: "b", Query: "auth", Limit: 3}, "", ""},
		{ListSessions, `{"limit":-1}`, SessionsArguments{Limit: handoff.DefaultSessions}, "", ""},
		{ListSessions, `{"limit":4000}`, SessionsArguments{Limit: handoff.MaxSessions}, "", ""},
		{ListSessions, `{"limit":"many"}`, nil, handoff.CodeMalformed,
			"the argument limit must be a whole number, not a string"},
		{ListSessions, `{"query":"` + query + `"}`, SessionsArguments{Query: query, Limit: handoff.DefaultSessions}, "", ""},
		{ListSessions, `{"query":"` + query + `x"}`, nil, handoff.CodeTooLarge, "the query"},
		{ListSessions, `{"server":"` + name + `x"}`, nil, handoff.CodeTooLarge, "a name"},
		{ReadSession, `{"server":"b","thread_id":"auth"}`, ReadArguments{"b", "auth", handoff.DefaultReadLines}, "", ""},
		{ReadSession, `{"server":"b","thread_id":"auth","limit":99}`, ReadArguments{"b", "auth", handoff.MaxReadLines}, "",
			""},
		{ReadSession, `{"server":"b"}`, nil, handoff.CodeMalformed, "thread_id is empty"},
		{ReadSession, `{"server":"b","thread_id":"` + name + `x"}`, nil, handoff.CodeTooLarge, "a name"},
		{StopWork, `{}`, StopArguments{}, "", ""},
		{StopWork, `{"server":" ` + name + ` "}`, StopArguments{Server: name}, "", ""},
		{StopWork, `{"server":"` + name + `x"}`, nil, handoff.CodeTooLarge, "a name"},
		{Status, `{"x":1}`, nil, handoff.CodeMalformed, "there are none"},
		{AnswerAgent, `{"decision":"accept"}`, AnswerArguments{Decision: handoff.DecisionAccept}, "", ""},
		{AnswerAgent, `{"question":" q1 ","text":" ` + reply + ` "}`, AnswerArguments{Question: "q1", Text: reply}, "", ""},
		{AnswerAgent, `{"text":"` + reply + `x"}`, nil, handoff.CodeTooLarge, "the text"},
		{AnswerAgent, `{"decision":"accept_for_session"}`, nil, handoff.CodeMalformed, "accept, decline or stop"},
		{AnswerAgent, `{"decision":"accept","text":"yes"}`, nil, handoff.CodeMalformed, "either a decision or a text"},
		{AnswerAgent, `{"text":"  "}`, nil, handoff.CodeMalformed, "either a decision or a text"},
		{SetUpdates, `{"level":"quiet"}`, UpdatesArguments{handoff.LevelQuiet}, "", ""},
		{SetUpdates, `{}`, nil, handoff.CodeMalformed, "level must be"},
		{SetUpdates, `{"level":"loud"}`, nil, handoff.CodeMalformed, "level must be"},
		{RemainSilent, ``, SilenceArguments{}, "", ""},
		{"shell", `{}`, nil, handoff.CodeMalformed, `there is no tool "shell"`},
	} {
		got, err := parsed[Arguments](tc.tool, tc.raw)
		if tc.want != nil {
			if err != nil || got != tc.want {
				t.Errorf("%s %s: %+v, %v", tc.tool, handoff.Clip(tc.raw, 80), got, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s %s: accepted as %+v", tc.tool, handoff.Clip(tc.raw, 80), got)
		} else if e := handoff.AsError(err); e.Code != tc.code || !strings.Contains(e.Subject, tc.says) {
			t.Errorf("%s %s: %v", tc.tool, handoff.Clip(tc.raw, 80), e)
		}
	}
}

// FuzzCodexArguments holds that nothing panics and that what is accepted has a prompt below its limit.
func FuzzCodexArguments(f *testing.F) {
	for _, seed := range []string{`{"server":"b","prompt":"x"}`, `{`, `null`, `{"server":{},"prompt":[]}`,
		`{"prompt":"x","cwd":"/"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		a, err := parsed[CodexArguments](Codex, raw)
		if err != nil {
			if handoff.CodeOf(err) == handoff.CodeInternal {
				t.Fatalf("no code: %v", err)
			}
			return
		}
		if strings.TrimSpace(a.Prompt) == "" || len(a.Prompt) > handoff.MaxPrompt {
			t.Fatalf("accepted %q", a.Prompt)
		}
		var fields map[string]any
		if json.Unmarshal([]byte(raw), &fields) != nil {
			t.Fatalf("accepted what is no object: %q", raw)
		}
		for name := range fields {
			if name != "server" && name != "thread_id" && name != "prompt" && name != "begin" &&
				name != "from_server" && name != "from_thread_id" {
				t.Fatalf("let %q pass", name)
			}
		}
	})
}

func TestReadTarget(t *testing.T) {
	for _, tc := range []struct {
		partial        string
		server, thread string
		ready          bool
	}{
		{``, "", "", false},
		{`{`, "", "", false},
		{`{"server":"big`, "", "", false},
		{`{"server":"bigpc"`, "", "", false}, // a thread may follow
		{`{"server":"bigpc","thr`, "", "", false},
		{`{"server":"bigpc","thread_id":"au`, "", "", false},
		{`{"server":"bigpc","thread_id":"auth"`, "bigpc", "auth", true},
		{`{"thread_id":"auth","server":"bigpc"`, "bigpc", "auth", true},
		{`{"server":" bigpc ","prompt"`, "bigpc", "", true},
		{`{"server":"bigpc","prom`, "", "", false},
		{`{"server":"bigpc","thread_id":null,"prompt":"ru`, "bigpc", "", true},
		{`{"server":"b\u0069gpc","prompt":"run`, "bigpc", "", true},
		{`{"prompt":"run`, "", "", true},
		{`{"server":"bigpc","thread_id":"new","from_server":"la`, "bigpc", "new", true},
		{`{"server":"bigpc","from_server":"laptop","prompt":"run`, "", "", false}, // a new one, which is never made ahead
		{`{"server":7,"prompt":"run`, "", "", false},
		{`{"server":{"name":"x"},"prompt":"run`, "", "", false},
		{`{"sandbox":"danger","server":"bigpc","prompt":"run`, "", "", false},
		{`["bigpc"]`, "", "", false},
		{`"bigpc"`, "", "", false},
	} {
		got, ready := ReadTarget(tc.partial)
		if ready != tc.ready || got.Server != tc.server || got.Thread != tc.thread {
			t.Errorf("%s: %+v, %t", tc.partial, got, ready)
		}
	}
}

// FuzzReadTarget holds that a target read from a beginning is that of the whole request, at whatever byte
// it was read, and that nothing breaks it.
func FuzzReadTarget(f *testing.F) {
	f.Add("bigpc", "auth", "run the tests", 20, `{"server":"x`)
	f.Add("", "", "", 0, `{"server":"a","thread_id":"b","server":"c"`)
	f.Fuzz(func(t *testing.T, server, thread, prompt string, cut int, junk string) {
		ReadTarget(junk)
		whole, err := json.Marshal(struct {
			Server string `json:"server"`
			Thread string `json:"thread_id,omitempty"`
			Prompt string `json:"prompt"`
		}{server, thread, prompt})
		if err != nil {
			return
		}
		final, err := parsed[CodexArguments](Codex, string(whole))
		if err != nil {
			return
		}
		guess, ready := ReadTarget(string(whole[:abs(cut)%(len(whole)+1)]))
		if ready && (guess.Server != final.Server || guess.Thread != final.Thread) {
			t.Fatalf("guessed %+v of %+v", guess, final)
		}
		if _, ready := ReadTarget(string(whole)); !ready {
			t.Fatalf("the whole request is not readable: %s", whole)
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

package handoff

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCodexArguments(t *testing.T) {
	long := strings.Repeat("a", MaxPrompt)
	for _, tc := range []struct {
		name, raw string
		code      Code   // "" for good
		says      string // part of the subject
	}{
		{"plain", `{"server":"bigpc","prompt":"run the tests"}`, "", ""},
		{"all", `{"server":"bigpc","thread_id":"new","prompt":"run"}`, "", ""},
		{"null thread", `{"server":"bigpc","thread_id":null,"prompt":"run"}`, "", ""},
		{"longest prompt", `{"server":"b","prompt":"` + long + `"}`, "", ""},
		{"no server", `{"prompt":"run"}`, "", ""},
		{"empty", ``, CodeMalformed, "prompt is empty"},
		{"blank prompt", `{"server":"b","prompt":"  "}`, CodeMalformed, "prompt is empty"},
		{"cut off", `{"server":"b","prompt":"run`, CodeMalformed, "not a JSON object"},
		{"words", `run the tests on bigpc`, CodeMalformed, "not a JSON object"},
		{"a string", `"run the tests"`, CodeMalformed, "not a JSON object"},
		{"a list", `["bigpc","run"]`, CodeMalformed, "not a JSON object"},
		{"number", `{"server":"b","prompt":5}`, CodeMalformed, "prompt must be a string"},
		{"policy", `{"server":"b","prompt":"x","approvalPolicy":"never"}`, CodeMalformed, `no argument "approvalPolicy"`},
		{"other case", `{"SERVER":"b","prompt":"x"}`, CodeMalformed, `no argument "SERVER"`},
		{"too long", `{"server":"b","prompt":"` + long + `a"}`, CodeTooLarge, "prompt"},
		{"long name", `{"server":"` + strings.Repeat("b", 300) + `","prompt":"x"}`, CodeTooLarge, "name"},
		{"not UTF-8", "{\"server\":\"b\",\"prompt\":\"\xff\"}", CodeMalformed, "UTF-8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := parseCodex(tc.raw)
			if tc.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatal("accepted")
			}
			if e := AsError(err); e.Code != tc.code || !strings.Contains(e.Subject, tc.says) {
				t.Fatalf("got %v", e)
			}
		})
	}
}

func TestLimitsOfArguments(t *testing.T) {
	for raw, want := range map[string]int{`{}`: DefaultSessions, `{"limit":3}`: 3, `{"limit":-1}`: DefaultSessions, `{"limit":4000}`: MaxSessions} {
		if a, err := parseSessions(raw); err != nil || a.Limit != want {
			t.Errorf("%s: %d, %v", raw, a.Limit, err)
		}
	}
	if _, err := parseSessions(`{"limit":"many"}`); err == nil || AsError(err).Subject != "the argument limit must be a whole number, not a string" {
		t.Errorf("a word as limit: %v", err)
	}
	if _, err := parseRead(`{"server":"bigpc"}`); err == nil {
		t.Error("a session to read must be named")
	}
}

// FuzzCodexArguments holds that nothing panics and that what is accepted has a prompt below its limit.
func FuzzCodexArguments(f *testing.F) {
	for _, seed := range []string{`{"server":"b","prompt":"x"}`, `{`, `null`, `{"server":{},"prompt":[]}`, `{"prompt":"x","cwd":"/"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		a, err := parseCodex(raw)
		if err != nil {
			if AsError(err).Code == CodeInternal {
				t.Fatalf("no code: %v", err)
			}
			return
		}
		if strings.TrimSpace(a.Prompt) == "" || len(a.Prompt) > MaxPrompt {
			t.Fatalf("accepted %q", a.Prompt)
		}
		var fields map[string]any
		if json.Unmarshal([]byte(raw), &fields) != nil {
			t.Fatalf("accepted what is no object: %q", raw)
		}
		for name := range fields {
			if name != "server" && name != "thread_id" && name != "prompt" {
				t.Fatalf("let %q pass", name)
			}
		}
	})
}

func TestToolSchemas(t *testing.T) {
	for _, tool := range Tools() {
		var s struct {
			Type                 string
			Properties           map[string]json.RawMessage
			Required             []string
			AdditionalProperties *bool
		}
		if err := json.Unmarshal(tool.Parameters, &s); err != nil {
			t.Fatalf("%s: %v", tool.Name, err)
		}
		if s.Type != "object" || s.AdditionalProperties == nil || *s.AdditionalProperties || !IsTool(tool.Name) {
			t.Errorf("%s: %s", tool.Name, tool.Parameters)
		}
		for _, name := range s.Required {
			if s.Properties[name] == nil {
				t.Errorf("%s requires %s and does not have it", tool.Name, name)
			}
		}
	}
	codex := string(Tools()[0].Parameters)
	order := []int{strings.Index(codex, `"server":`), strings.Index(codex, `"thread_id":`), strings.Index(codex, `"prompt":`)}
	if !(0 < order[0] && order[0] < order[1] && order[1] < order[2]) {
		t.Errorf("the target must be readable before the prompt: %v", order)
	}
	if IsTool("shell") {
		t.Error("shell is none of our tools")
	}
}

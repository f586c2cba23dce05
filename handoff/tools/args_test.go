package tools

import (
	"encoding/json"
	"strings"
	"switchboard/handoff"
	"testing"
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
		{"empty", ``, handoff.CodeMalformed, "prompt is empty"},
		{"blank prompt", `{"server":"b","prompt":"  "}`, handoff.CodeMalformed, "prompt is empty"},
		{"cut off", `{"server":"b","prompt":"run`, handoff.CodeMalformed, "not a JSON object"},
		{"words", `run the tests on bigpc`, handoff.CodeMalformed, "not a JSON object"},
		{"a string", `"run the tests"`, handoff.CodeMalformed, "not a JSON object"},
		{"a list", `["bigpc","run"]`, handoff.CodeMalformed, "not a JSON object"},
		{"number", `{"server":"b","prompt":5}`, handoff.CodeMalformed, "prompt must be a string"},
		{"policy", `{"server":"b","prompt":"x","approvalPolicy":"never"}`, handoff.CodeMalformed, `no argument "approvalPolicy"`},
		{"other case", `{"SERVER":"b","prompt":"x"}`, handoff.CodeMalformed, `no argument "SERVER"`},
		{"too long", `{"server":"b","prompt":"` + long + `a"}`, handoff.CodeTooLarge, "prompt"},
		{"long name", `{"server":"` + strings.Repeat("b", 300) + `","prompt":"x"}`, handoff.CodeTooLarge, "name"},
		{"too deep", `{"server":` + strings.Repeat("[", handoff.MaxDepth) + strings.Repeat("]", handoff.MaxDepth) + `,"prompt":"x"}`, handoff.CodeMalformed, "nest deeper than 128"},
		{"not UTF-8", "{\"server\":\"b\",\"prompt\":\"\xff\"}", handoff.CodeMalformed, "UTF-8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ParseCodex(tc.raw)
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

func TestLimitsOfArguments(t *testing.T) {
	for raw, want := range map[string]int{`{}`: handoff.DefaultSessions, `{"limit":3}`: 3, `{"limit":-1}`: handoff.DefaultSessions, `{"limit":4000}`: handoff.MaxSessions} {
		if a, err := ParseSessions(raw); err != nil || a.Limit != want {
			t.Errorf("%s: %d, %v", raw, a.Limit, err)
		}
	}
	if _, err := ParseSessions(`{"limit":"many"}`); err == nil || handoff.AsError(err).Subject != "the argument limit must be a whole number, not a string" {
		t.Errorf("a word as limit: %v", err)
	}
	if _, err := ParseRead(`{"server":"bigpc"}`); err == nil {
		t.Error("a session to read must be named")
	}
}

// FuzzCodexArguments holds that nothing panics and that what is accepted has a prompt below its limit.
func FuzzCodexArguments(f *testing.F) {
	for _, seed := range []string{`{"server":"b","prompt":"x"}`, `{`, `null`, `{"server":{},"prompt":[]}`, `{"prompt":"x","cwd":"/"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		a, err := ParseCodex(raw)
		if err != nil {
			if handoff.AsError(err).Code == handoff.CodeInternal {
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
			if name != "server" && name != "thread_id" && name != "prompt" {
				t.Fatalf("let %q pass", name)
			}
		}
	})
}

func TestToolSchemas(t *testing.T) {
	for _, tool := range All() {
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
	codex := string(All()[0].Parameters)
	order := []int{strings.Index(codex, `"server":`), strings.Index(codex, `"thread_id":`), strings.Index(codex, `"prompt":`)}
	if !(0 < order[0] && order[0] < order[1] && order[1] < order[2]) {
		t.Errorf("the target must be readable before the prompt: %v", order)
	}
	if IsTool("shell") {
		t.Error("shell is none of our tools")
	}
}

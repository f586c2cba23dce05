package responses

import (
	"encoding/json"
	"strings"
	"testing"

	"switchboard/handoff"
)

func TestRequest(t *testing.T) {
	tools := []tool{{true, map[string]any{"type": "object"}, "list_dir", "lists", "function"},
		{true, map[string]any{"type": "object"}, "exec", "runs", "function"}}
	first := plan{Input: history2("u:hi")}
	next := plan{Previous: "resp_1", Input: history2("u:more")}
	yes, no := true, false
	const input = `"input":[{"content":[{"text":"hi","type":"input_text"}],"role":"user","type":"message"}]`
	const listed = `"parallel_tool_calls":true,`
	const both = `"tools":[{"strict":true,"parameters":{"type":"object"},"name":"list_dir","description":"lists",` +
		`"type":"function"},{"strict":true,"parameters":{"type":"object"},"name":"exec","description":"runs",` +
		`"type":"function"}]`
	for _, c := range []struct {
		name  string
		model Model
		ask   requestOptions
		has   []string
		lacks []string
	}{
		{"the least", Model{Name: "m"}, requestOptions{Plan: first, Threading: true},
			[]string{`"model":"m"`, `"store":false`, input},
			[]string{"tool", "include", "reasoning", "verbosity", "previous", "instructions"}},
		{"by id it is stored", Model{Continuation: ResponseIDs}, requestOptions{Plan: next, Threading: true},
			[]string{`"previous_response_id":"resp_1"`, `"store":true`}, nil},
		{"opted out it is not", Model{Continuation: ResponseIDs}, requestOptions{Plan: first}, []string{`"store":false`},
			[]string{"previous"}},
		{"instructions come every time", Model{Instructions: "be brief"}, requestOptions{Plan: next},
			[]string{`"instructions":"be brief"`}, nil},
		{"effort, summary and verbosity", Model{Effort: "low", Summary: "auto", Verbosity: "high"},
			requestOptions{Plan: first},
			[]string{`"reasoning":{"effort":"low","summary":"auto"}`, `"text":{"verbosity":"high"}`},
			nil},
		{"encrypted reasoning is not stored", Model{Encrypted: true, Continuation: ResponseIDs},
			requestOptions{Plan: first, Threading: true},
			[]string{`"include":["reasoning.encrypted_content"]`, `"store":false`}, nil},
		{"encrypted reasoning is stored when told", Model{Encrypted: true, Store: &yes}, requestOptions{Plan: first},
			[]string{`"store":true`}, nil},
		{"what is included stays", Model{Encrypted: true, Include: []string{"message.output_text.logprobs"}},
			requestOptions{Plan: first},
			[]string{`"include":["message.output_text.logprobs","reasoning.encrypted_content"]`}, nil},
		{"it is not included twice", Model{Encrypted: true, Include: []string{"reasoning.encrypted_content"}},
			requestOptions{Plan: first},
			[]string{`"include":["reasoning.encrypted_content"]`}, nil},
		{"nothing is stored when told", Model{Continuation: ResponseIDs, Store: &no},
			requestOptions{Plan: first, Threading: true}, []string{`"store":false`}, nil},
		{"all tools are listed, some allowed", Model{},
			requestOptions{Plan: first, Tools: tools, Allowed: []string{"list_dir"}, Thread: "t"},
			[]string{both, listed, `"prompt_cache_key":"t"`,
				`"tool_choice":{"mode":"auto","tools":[{"name":"list_dir","type":"function"}],"type":"allowed_tools"}`}, nil},
		{"all tools allowed are named too", Model{},
			requestOptions{Plan: first, Tools: tools, Allowed: []string{"list_dir", "exec"}},
			[]string{both, `"tool_choice":{"mode":"auto","tools":[{"name":"list_dir","type":"function"},{"name":"exec",` +
				`"type":"function"}],"type":"allowed_tools"}`}, nil},
		{"the last one may call none", Model{},
			requestOptions{Plan: first, Tools: tools, Allowed: []string{"list_dir"}, Final: true},
			[]string{both, `"tool_choice":"none"`}, nil},
	} {
		data, err := json.Marshal(c.model.request(c.ask))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for _, want := range c.has {
			if !strings.Contains(string(data), want) {
				t.Errorf("%s: no %s in %s", c.name, want, data)
			}
		}
		for _, not := range c.lacks {
			if strings.Contains(string(data), not) {
				t.Errorf("%s: %s in %s", c.name, not, data)
			}
		}
	}
}

func history2(words ...string) []json.RawMessage {
	var all []json.RawMessage
	for _, it := range history(words...) {
		all = append(all, it.JSON)
	}
	return all
}

func TestThreadingIsSwitchedOff(t *testing.T) {
	for value, want := range map[string]bool{"": false, "0": false, "false": false, "False": false, "1": true,
		"true": true, "yes": true} {
		t.Setenv(disableVariable, value)
		if got := threadingDisabled(); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
	for value, want := range map[string]bool{"": false, "0": false, "false": false, "1": true, "true": true} {
		turn := handoff.Turn{Context: []handoff.Context{{Key: handoff.DisableResponseThreading, Value: value, Trusted: true}}}
		if got := optedOut(turn); got != want {
			t.Errorf("a turn that says %q: %v", value, got)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		want      handoff.Usage
	}{
		{"input and output", `{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,` +
			`"output_tokens_details":{"reasoning_tokens":2},"total_tokens":15}`,
			handoff.Usage{Input: 10, Cached: 4, Output: 5, Reasoning: 2}},
		{"prompt and completion", `{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens":5,` +
			`"completion_tokens_details":{"reasoning_tokens":2}}`,
			handoff.Usage{Input: 10, Cached: 4, Output: 5, Reasoning: 2}},
		{"zeros", `{"input_tokens":0,"output_tokens":0}`, handoff.Usage{}},
		{"none", `null`, handoff.Usage{}},
		{"nonsense", `{"input_tokens":"x","output_tokens":-3,"input_tokens_details":7}`, handoff.Usage{}},
		{"more cached than there is", `{"input_tokens":1,"input_tokens_details":{"cached_tokens":4}}`,
			handoff.Usage{Input: 1, Cached: 1}},
	} {
		if got := usageOf(json.RawMessage(c.raw)); got != c.want {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	if used := (handoff.Usage{Input: 6, Cached: 1, Output: 4, Reasoning: 3}); usageOf(usageJSON(used)) != used {
		t.Errorf("kept as %s", usageJSON(used))
	}
}

package responses

import (
	"fmt"
	"strings"
	"testing"

	"switchboard/handoff"
)

// TestRequests: how requests are parsed, and how unsupported ones are refused.
func TestRequests(t *testing.T) {
	user := `{"role":"user","content":"hi"}`
	for body, want := range map[string]string{
		`{"model":"m","input":"hi"}`:                                          "hi | |",
		`{"model":"m","input":[` + user + `,` + user + `],"unknown":{"a":1}}`: "hi\nhi | |",
		`{"model":"m","input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"be brief"}]},` + user + `],"instructions":"be kind"}`:                             "hi | be kind, be brief |",
		`{"model":"m","input":[` + user + `,{"type":"reasoning","id":"rs_1","summary":[]},{"id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"hello"}]},` + user + `]}`: "hi | | user: hi, assistant: hello",
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,x"}]}]}`:                                                                    " | |",
		`{"model":"m","temperature":1,"tools":[],"tool_choice":"auto","input":"hi"}`:                                                                                                          "hi | |",

		`{"input":"hi"}`: "missing_required_parameter model",
		`{"model":"m"}`:  "missing_required_parameter input",
		`nothing`:        " ",
		`{"model":"m","input":"hi","tools":[{"type":"function","name":"f"}]}`:                                          "unsupported_tool tools",
		`{"model":"m","input":"hi","tool_choice":"required"}`:                                                          "unsupported_parameter tool_choice",
		`{"model":"m","input":"hi","temperature":0.2,"top_p":0.5,"max_output_tokens":1024}`:                            "hi | |",
		`{"model":"m","input":"hi","max_tool_calls":1}`:                                                                "unsupported_parameter max_tool_calls",
		`{"model":"m","input":"hi","max_output_tokens":9}`:                                                             "unsupported_parameter max_output_tokens",
		`{"model":"m","input":"hi","background":true,"store":false}`:                                                   "unsupported_parameter background",
		`{"model":"m","input":"hi","previous_response_id":"resp_1","conversation":"conv_1"}`:                           "mutually_exclusive_parameters conversation",
		`{"model":"m","input":"hi","conversation":7}`:                                                                  "invalid_type conversation",
		`{"model":"m","input":"hi","text":{"format":{"type":"json_schema"}}}`:                                          "invalid_value text.format.schema",
		`{"model":"m","input":"hi","text":{"format":{"type":"json_schema","schema":5}}}`:                               "invalid_value text.format.schema",
		`{"model":"m","input":"hi","text":{"format":"json"}}`:                                                          "invalid_type text",
		`{"model":"m","input":"hi","reasoning":5}`:                                                                     "invalid_type reasoning",
		`{"model":"m","input":" \n"}`:                                                                                  "invalid_value input",
		`{"model":"m","input":[]}`:                                                                                     " input",
		`{"model":"m","input":[{"role":5}]}`:                                                                           "invalid_type input[0].role",
		`{"model":"m","input":[{"type":"function_call_output","call_id":"c","output":"x"}]}`:                           " input",
		`{"model":"m","input":[{"role":"assistant","content":"hi"}]}`:                                                  " input",
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_file","file_id":"f"}]}]}`:                      "unsupported_parameter input[0].content[0]",
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"file:///etc/passwd"}]}]}`:  "invalid_value input[0].content[0].image_url",
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_image","file_id":"f"}]}]}`:                     "unsupported_parameter input[0].content[0]",
		`{"model":"m","input":[{"role":"wizard","content":"hi"}]}`:                                                     "invalid_value input[0].role",
		`{"model":"m","input":"hi","metadata":{"k":"` + strings.Repeat("v", 513) + `"}}`:                               " metadata",
		`{"model":"m","input":"hi","metadata":{"` + strings.Repeat("ü", 64) + `":"` + strings.Repeat("ü", 512) + `"}}`: "hi | |",
		`{"model":"m","input":[{"type":"wizard","role":"user"}]}`:                                                      "invalid_value input[0].type",
		`{"model":"m","input":[{"type":"mcp_approval_response","approval_request_id":"a"}]}`:                           "missing_required_parameter input[0]",
		`{"model":"m","input":[` + strings.Repeat(user+",", maxInput) + user + `]}`:                                    " input",
		`{"model":"m","input":` + strings.Repeat("[", handoff.MaxDepth+1) + `}`:                                        " ",
		`{"model":"m","input":"hi","instructions":"` + strings.Repeat("x", maxContext+1) + `"}`:                        " input",
	} {
		got := ""
		if r, f := readRequest([]byte(body)); f != nil {
			code, param := "", ""
			if f.Code != nil {
				code = *f.Code
			}
			if f.Param != nil {
				param = *f.Param
			}
			got = code + " " + param
			if f.Status != 400 || f.Message == "" {
				t.Errorf("%.80s: %+v", body, f)
			}
		} else {
			got = fmt.Sprintf("%s |%s |%s", handoff.InputText(r.input.parts), spaced(r.input.instructions),
				spaced(r.input.before))
		}
		if strings.TrimRight(got, " ") != strings.TrimRight(want, " ") {
			t.Errorf("%.100s gives %q, want %q", body, got, want)
		}
	}
}

// TestForeignItems: what another model did in a chat is told to the agent as text, and ends the prompt before it. With
// nothing of the user after it, there is no prompt.
func TestForeignItems(t *testing.T) {
	user := `{"role":"user","content":"hi"},`
	for input, want := range map[string]string{
		user + `{"type":"function_call","id":"fc_1","call_id":"c","name":"weather","arguments":"{\"city\":\"Oslo\"}"},` +
			`{"type":"function_call_output","call_id":"c","output":"cold"},` + user: `user: hi|assistant used weather: {"city":"Oslo"}|weather answered: cold`,
		`{"type":"function_call_output","call_id":"x","output":[{"type":"input_text","text":"warm"},{"type":"input_text","text":"er"}]},` + user:           `function answered: warmer`,
		user + `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}},` + user:                                `user: hi|assistant used web_search: {"action":{"type":"search","query":"q"}}`,
		`{"type":"tool_search_call","call_id":"t","arguments":{"goal":"ship"}},{"type":"tool_search_output","call_id":"t","tools":[{"name":"a"}]},` + user: `assistant used tool_search: {"goal":"ship"}|tool_search answered: {"tools":[{"name":"a"}]}`,
		`{"type":"custom_tool_call","call_id":"k","name":"sh","input":"ls"},{"type":"custom_tool_call_output","call_id":"k","output":""},` + user:          `assistant used sh: ls|sh answered: `,
	} {
		r, f := readRequest([]byte(`{"model":"m","input":[` + strings.TrimSuffix(input, ",") + `]}`))
		if f != nil {
			t.Errorf("%s: %s", input, f.Message)
		} else if got := strings.Join(r.input.before, "|"); got != want || handoff.InputText(r.input.parts) != "hi" {
			t.Errorf("%s is told as %q, want %q; the prompt is %q", input, got, want, handoff.InputText(r.input.parts))
		}
	}
	for input, want := range map[string]string{
		user + `{"type":"function_call","call_id":"c","name":"weather","arguments":"{}"}`:                           "The input ends without a message of the user.",
		user + `{"type":"function_call","name":7}`:                                                                  "Invalid type for 'input[1].name': expected a string, but got a number instead.",
		`{"type":"web_search_call","x":"` + strings.Repeat("x", maxContext) + `"},` + strings.TrimSuffix(user, ","): contextTooLarge().Message,
	} {
		if _, f := readRequest([]byte(`{"model":"m","input":[` + input + `]}`)); f == nil || f.Message != want {
			t.Errorf("%.80s: %+v, want %s", input, f, want)
		}
	}
}

// TestIgnored: an answer names the parameters that have no effect, and its response does not show them. It shows what
// the request said of tools.
func TestIgnored(t *testing.T) {
	inWorld(t, func(w *world) {
		for i, c := range []struct{ more, want, choice string }{
			{`,"temperature":0.2,"top_p":0.5,"max_output_tokens":4096`, "temperature, top_p, max_output_tokens", "auto"},
			{`,"temperature":1,"top_p":1,"max_output_tokens":null,"tool_choice":null`, "", "auto"},
			{`,"tool_choice":"none"`, "", "none"},
		} {
			a := w.begun(`{"model":"bigpc","input":"hi"` + c.more + `}`)
			w.ends(i+1, handoff.OutcomeResult, "hello")
			if got := a.object(); a.Header().Get(ignoredHeader) != c.want || got["temperature"] != 1.0 || got["max_output_tokens"] != nil ||
				got["tool_choice"] != c.choice {
				t.Errorf("%s: %q, %v", c.more, a.Header().Get(ignoredHeader), got)
			}
		}
	})
}

// TestWrongTypes: a fault names the expected type and the actual one.
func TestWrongTypes(t *testing.T) {
	for body, want := range map[string]string{
		`[]`:                          "Invalid type for the body: expected an object, but got an array instead.",
		`{"model":7}`:                 "Invalid type for 'model': expected a string, but got a number instead.",
		`{"stream":"yes"}`:            "Invalid type for 'stream': expected a boolean, but got a string instead.",
		`{"max_output_tokens":1.5}`:   "Invalid type for 'max_output_tokens': expected an integer, but got a number instead.",
		`{"temperature":{}}`:          "Invalid type for 'temperature': expected a number, but got an object instead.",
		`{"metadata":[]}`:             "Invalid type for 'metadata': expected an object, but got an array instead.",
		`{"model":"m","input":7}`:     "Invalid type for 'input': expected a string or an array of items.",
		`{"model":"m","input":["a"]}`: "Invalid type for 'input[0]': expected an object, but got a string instead.",
		`{"model":"m","input":[{"type":"mcp_approval_response","approve":"yes"}]}`: "Invalid type for 'input[0].approve': expected a boolean, but got a string instead.",
	} {
		if _, f := readRequest([]byte(body)); f == nil || f.Message != want {
			t.Errorf("%s gives %v, want %s", body, f, want)
		}
	}
}

// FuzzRequest: every request is refused, or has a prompt or approvals and items with ids.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}],"conversation":{"id":"conv_1"}}`))
	f.Add([]byte(`{"model":"m","input":[{"type":"mcp_approval_response","approval_request_id":"a","approve":true}],"text":{"format":{"type":"json_schema","schema":{}}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, fault := readRequest(body)
		if fault != nil {
			if fault.Message == "" || fault.Status < 400 {
				t.Errorf("%+v", fault)
			}
			return
		}
		if len(r.input.parts)+len(r.input.mentions) == 0 || r.Model == "" {
			t.Errorf("%+v", r)
		}
		r.context()
		known := map[string]bool{}
		for _, it := range r.input.numbered("resp_1") {
			var ref reference
			if fault := decode(it, &ref); fault != nil || ref.ID == "" {
				t.Errorf("%s: %v", it, fault)
			}
			known[ref.ID] = true
		}
	})
}

func spaced(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return " " + strings.Join(all, ", ")
}

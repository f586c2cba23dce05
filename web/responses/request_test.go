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
		`{"model":7}`:    "invalid_type model",
		`nothing`:        " ",
		`{"model":"m","input":"hi","tools":[{"type":"function","name":"f"}]}`:                                         "unsupported_tool tools",
		`{"model":"m","input":"hi","tool_choice":"required"}`:                                                         "unsupported_parameter tool_choice",
		`{"model":"m","input":"hi","temperature":0.2}`:                                                                "unsupported_parameter temperature",
		`{"model":"m","input":"hi","max_output_tokens":9}`:                                                            "unsupported_parameter max_output_tokens",
		`{"model":"m","input":"hi","background":true,"store":false}`:                                                  "unsupported_parameter background",
		`{"model":"m","input":"hi","previous_response_id":"resp_1","conversation":"conv_1"}`:                          "mutually_exclusive_parameters conversation",
		`{"model":"m","input":"hi","conversation":7}`:                                                                 "invalid_type conversation",
		`{"model":"m","input":"hi","text":{"format":{"type":"json_schema"}}}`:                                         "invalid_value text.format.schema",
		`{"model":"m","input":"hi","text":{"format":{"type":"json_schema","schema":5}}}`:                              "invalid_value text.format.schema",
		`{"model":"m","input":"hi","text":{"format":"json"}}`:                                                         "invalid_type text",
		`{"model":"m","input":"hi","reasoning":5}`:                                                                    "invalid_type reasoning",
		`{"model":"m","input":" \n"}`:                                                                                 "invalid_value input",
		`{"model":"m","input":[]}`:                                                                                    " input",
		`{"model":"m","input":["hi"]}`:                                                                                "invalid_type input[0]",
		`{"model":"m","input":[{"role":5}]}`:                                                                          "invalid_type input[0].role",
		`[]`:                                                                                                          "invalid_type",
		`{"model":"m","input":[{"type":"function_call_output","call_id":"c","output":"x"}]}`:                          " input",
		`{"model":"m","input":[{"role":"assistant","content":"hi"}]}`:                                                 " input",
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_file","file_id":"f"}]}]}`:                     "unsupported_parameter input[0].content[0]",
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"file:///etc/passwd"}]}]}`: "invalid_value input[0].content[0].image_url",
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_image","file_id":"f"}]}]}`:                    "unsupported_parameter input[0].content[0]",
		`{"model":"m","input":[{"role":"wizard","content":"hi"}]}`:                                                    "invalid_value input[0].role",
		`{"model":"m","input":"hi","metadata":{"k":"` + strings.Repeat("v", 513) + `"}}`:                              " metadata",
		`{"model":"m","input":[{"type":"mcp_approval_response","approval_request_id":"a"}]}`:                          "missing_required_parameter input[0]",
		`{"model":"m","input":[` + strings.Repeat(user+",", maxInput) + user + `]}`:                                   " input",
		`{"model":"m","input":` + strings.Repeat("[", handoff.MaxDepth+1) + `}`:                                       " ",
		`{"model":"m","input":"hi","instructions":"` + strings.Repeat("x", maxContext+1) + `"}`:                       " input",
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

// TestWrongTypes: a fault names the expected type and the actual one.
func TestWrongTypes(t *testing.T) {
	for body, want := range map[string]string{
		`[]`:                          "Invalid type for the body: expected an object, but got an array instead.",
		`{"model":7}`:                 "Invalid type for 'model': expected a string, but got a number instead.",
		`{"stream":"yes"}`:            "Invalid type for 'stream': expected a boolean, but got a string instead.",
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

// BenchmarkDelta is one delta from the run to the frame that readers get; the floor is the frame alone.
func BenchmarkDelta(b *testing.B) {
	b.Run("floor", func(b *testing.B) {
		b.ReportAllocs()
		zero := 0
		for b.Loop() {
			frame(event{Type: evText, Seq: 7, ItemID: "msg_1_0", OutputIndex: &zero, ContentIndex: &zero, Delta: "a few words", Logprobs: none})
		}
	})
	b.Run("delta", func(b *testing.B) {
		b.ReportAllocs()
		m := newEmitter(false)
		m.begin()
		at := 0
		for b.Loop() {
			if at > 1<<16 { // another message, as agents write them
				b.StopTimer()
				m = newEmitter(false)
				m.begin()
				at = 0
				b.StartTimer()
			}
			for _, e := range m.take(handoff.RunDelta{ItemID: "m", Kind: handoff.DeltaMessage, At: at, Text: "a few words"}, handoff.Record{}) {
				frame(e)
			}
			at += len("a few words")
		}
	})
}

func spaced(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return " " + strings.Join(all, ", ")
}

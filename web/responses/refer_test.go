package responses

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"switchboard/handoff"
)

// TestReferences: a request that names items continues the session of the last one, with the items after it. If that is
// impossible, or the items are of several sessions, the agent gets the content of the items.
func TestReferences(t *testing.T) {
	inWorld(t, func(w *world) {
		for i, body := range []string{
			`{"model":"bigpc","input":"one"}`,
			`{"model":"bigpc","input":"two","previous_response_id":"resp_r1"}`,
			`{"model":"laptop","input":"three"}`,
			`{"model":"bigpc","input":"four"}`,
		} {
			a := w.begun(body)
			w.ends(i+1, handoff.OutcomeResult, fmt.Sprint("answer ", i+1))
			a.object()
		}
		ref := func(id string) string { return `{"type":"item_reference","id":"` + id + `"},` }
		user := `{"role":"user","content":"and?"}`
		runs := 4
		for _, c := range []struct {
			name, more, input           string
			server, thread, after, told string
		}{
			{"the last", ``, user + "," + ref("msg_r1_0") + user + "," + ref("msg_r2_0") + user, "bigpc", "thread1", "turn2", ""},
			{"an earlier one", ``, user + "," + ref("msg_r1_0") + user, "bigpc", "thread1", "turn1", ""},
			{"what the user said", ``, ref("in_r1_0") + ref("msg_r1_0") + user, "bigpc", "thread1", "turn1", ""},
			{"instructions stay", ``, `{"role":"system","content":"brief"},` + ref("msg_r1_0") + user, "bigpc", "thread1", "turn1", "brief"},
			{"on another machine", ``, user + "," + ref("msg_r3_0") + user, "bigpc", handoff.NewThread, "", "user: and?\nassistant: answer 3"},
			{"of two sessions", ``, ref("msg_r4_0") + ref("msg_r2_0") + user, "bigpc", "thread1", "turn2", "assistant: answer 4\nassistant: answer 2"},
			{"with its response", `"previous_response_id":"resp_r2",`, ref("msg_r1_0") + ref("msg_r2_0") + user, "bigpc", "thread1", "turn2", ""},
			{"with another response", `"previous_response_id":"resp_r4",`, ref("msg_r1_0") + user, "bigpc", "thread4", "turn4", "assistant: answer 1"},
			{"nothing kept", `"store":false,`, ref("msg_r1_0") + user, "bigpc", "thread1", "turn1", ""},
		} {
			a := w.begun(`{"model":"bigpc",` + c.more + `"input":[` + c.input + `]}`)
			if runs++; w.count() != runs {
				t.Fatalf("%s: %d %s", c.name, a.Code, a.Body)
			}
			w.ends(runs, handoff.OutcomeResult, "hello")
			a.object()
			req := w.run(runs).req
			told := make([]string, 0, 2)
			for _, beside := range req.Context {
				told = append(told, beside.Value)
			}
			if req.Target.Server != c.server || req.Target.Thread != c.thread || string(req.After) != c.after || strings.Join(told, "|") != c.told || handoff.InputText(req.Input) != "and?" {
				t.Errorf("%s: %+v, told %q", c.name, req, told)
			}
		}
		for id, owner := range map[string]string{
			"msg_r1_1": "owner", "msg_r99_0": "owner", "rs_r1_0": "owner", "msg_1": "owner", "": "owner", "msg_r1_0": "other", "in_r1_0": "other",
		} {
			status, got := w.ask(http.MethodPost, "/v1/responses", `{"model":"bigpc","input":[`+ref(id)+user+`]}`, "Owner", owner)
			w.refusal(status, got)
			if e, _ := got["error"].(map[string]any); status != http.StatusBadRequest || e["message"] != "Item with id '"+id+"' not found." || e["param"] != "input[0]" {
				t.Errorf("%s of %s: %d %v", id, owner, status, got)
			}
		}
		for body, want := range map[string]string{
			`{"model":"bigpc","input":[` + user + `,{"type":"item_reference","id":"msg_r1_0"}]}`:                                   "",
			`{"model":"bigpc","input":[{"type":"mcp_approval_response","approval_request_id":"mcpr_r1_0","approve":true}]}`:        "",
			`{"model":"bigpc","input":[` + ref("msg_r1_0") + user + `],"conversation":"conv_nobody"}`:                              "conversation_not_found",
			`{"model":"laptop","previous_response_id":"resp_r1","input":[` + ref("msg_r1_0") + user + `]}`:                         "model_mismatch",
			`{"model":"bigpc","input":"hi","tools":[{"type":"mcp","server_label":"laptop"}]}`:                                      "unsupported_tool",
			`{"model":"bigpc","input":"hi","tools":[{"type":"mcp","server_label":"bigpc"},{"type":"function","name":"bigpc"}]}`:    "unsupported_tool",
			`{"model":"bigpc/shop","input":"hi","tools":[{"type":"mcp","server_label":"bigpc/shop","require_approval":"always"}]}`: "unsupported_tool",
		} {
			if status, got := w.ask(http.MethodPost, "/v1/responses", body); w.refusal(status, got) != want {
				t.Errorf("%s: %d %v", body, status, got)
			}
		}
		if w.refusal(w.ask(http.MethodPost, "/v1/conversations", `{"items":[`+ref("msg_r1_0")+user+`]}`)) != "unsupported_parameter" {
			t.Error("a conversation takes references")
		}
	})
}

// TestApprovalTellsItsResponse: an answer to a question continues the response that asked, without
// previous_response_id. Later in a chat, the same answer is part of the history.
func TestApprovalTellsItsResponse(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.begun(`{"model":"bigpc","input":"hi"}`)
		w.does(1, handoff.EventAsked{Question: handoff.OpenQuestion{Shown: handoff.RecordQuestion{ID: "q", Kind: handoff.QuestionCommand}}})
		output, _ := first.object()["output"].([]any)
		asked, _ := output[len(output)-1].(map[string]any)
		user := `{"role":"user","content":"hi"},`
		answer := fmt.Sprintf(`%s,{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}`, handoff.Encode(asked), asked["id"])
		second := w.begun(`{"model":"bigpc","tools":[{"type":"mcp","server_label":"bigpc"}],"input":[` + user + answer + `]}`)
		w.ends(1, handoff.OutcomeResult, "pushed")
		got := second.object()
		if got["id"] != "resp_r1_2" || got["status"] != completed || got["previous_response_id"] != "resp_r1" {
			t.Fatalf("%v", got)
		}
		for input, thread := range map[string]string{
			user + answer + `,{"role":"assistant","content":"pushed"},{"role":"user","content":"and now?"}`:                                                                           handoff.NewThread,
			user + answer + `,{"type":"item_reference","id":"msg_r1_2_0"},{"role":"user","content":"and now?"}`:                                                                       "thread1",
			user + `{"type":"item_reference","id":"` + fmt.Sprint(asked["id"]) + `"},` + answer + `,{"type":"item_reference","id":"msg_r1_2_0"},{"role":"user","content":"and now?"}`: "thread1",
		} {
			a := w.begun(`{"model":"bigpc","input":[` + input + `]}`)
			n := w.count()
			if r := w.run(n).req; r.Target.Thread != thread || handoff.InputText(r.Input) != "and now?" {
				t.Errorf("%s: %d %s %+v", input, a.Code, a.Body, r)
			}
			w.ends(n, handoff.OutcomeResult, "done")
			a.object()
		}
	})
}

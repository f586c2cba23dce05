package host

import (
	"strings"
	"testing"
	"testing/synctest"
)

// TestGateOfAnswers: of the answers to an app-server's questions, those pass that the machine's owner allows, whatever
// the service says. Others become a no to the question.
func TestGateOfAnswers(t *testing.T) {
	t.Parallel()
	const (
		command     = `"` + askCommand + `","params":{"threadId":"t","command":"make"}`
		files       = `"` + askFiles + `","params":{"threadId":"t","grantRoot":null}`
		below       = `"` + askFiles + `","params":{"threadId":"t","grantRoot":"/"}`
		permissions = `"` + askPermissions + `","params":{"threadId":"t","permissions":{"network":{"enabled":true}}}`
		input       = `"` + askInput + `","params":{"threadId":"t","questions":[{"id":"q","isOther":true}]}`
		choice      = `"` + askInput + `","params":{"threadId":"t","questions":[{"id":"mcp_tool_call_approval_1","isOther":false}]}`
		form        = `"` + askForm + `","params":{"threadId":"t"}`
		unknown     = `"item/other/requestApproval","params":{"threadId":"t"}`
	)
	all := []Policy{
		{Answers: true}, {Answers: true, Ceiling: "danger-full-access"}, {Answers: true, Ceiling: "workspace-write"},
		{Answers: true, Ceiling: "read-only"}, {Ceiling: "workspace-write"}, {},
	}
	for _, row := range []struct {
		name, asked, answer string
		passes              int // under that many of the policies, the first ones
	}{
		{"a yes to a command", command, `{"decision":"accept"}`, 3},
		{"a yes for the session", command, `{"decision":"acceptForSession"}`, 2},
		{"a lasting yes", command, `{"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["rm"]}}}`, 0},
		{"a lasting yes to the network", command, `{"decision":{"applyNetworkPolicyAmendment":{"action":"allow"}}}`, 0},
		{"a yes with something else", command, `{"decision":"accept","permissions":{}}`, 0},
		{"a no to a command", command, `{"decision":"decline"}`, 6},
		{"a no that ends the turn", command, `{"decision":"cancel"}`, 6},
		{"a yes to files", files, `{"decision":"accept"}`, 3},
		{"a yes to files for the session", files, `{"decision":"acceptForSession"}`, 2},
		{"a yes to all below a root", below, `{"decision":"accept"}`, 2},
		{"no rights", permissions, `{"permissions":{},"scope":"turn"}`, 6},
		{"rights", permissions, `{"permissions":{"network":{"enabled":true}},"scope":"turn"}`, 2},
		{"rights everywhere", permissions, `{"permissions":{"fileSystem":{"write":["/"]}},"scope":"session"}`, 2},
		{"no words", input, `{"answers":{}}`, 6},
		{"words", input, `{"answers":{"q":{"answers":["the second one"]}}}`, 3},
		{"a choice that approves a tool", choice, `{"answers":{"q":{"answers":["Allow and don't ask me again"]}}}`, 2},
		{"a yes to a form", form, `{"action":"accept","content":{}}`, 3},
		{"a lasting yes to a form", form, `{"_meta":{"persist":"always"},"action":"accept","content":{}}`, 0},
		{"a filled form", form, `{"action":"accept","content":{"x":"y"}}`, 2},
		{"a no to a form", form, `{"action":"decline","content":null}`, 6},
		{"a yes to what is not known", unknown, `{"decision":"accept"}`, 0},
		{"a yes to another kind of question", input, `{"decision":"accept"}`, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			for i, policy := range all {
				synctest.Test(t, func(t *testing.T) {
					e := newEnds(t, policy)
					e.agent.say(t, `{"id":7,"method":`+row.asked+`}`)
					got := <-e.service.got
					method, _, _ := strings.Cut(row.asked, ",")
					if told := strings.Contains(got, `"_switchboard"`); !strings.Contains(got, method) ||
						told != (i > 1 && row.asked != unknown) {
						t.Fatalf("%+v: the service got %s", policy, got)
					}
					e.service.say(t, `{"id":7,"result":`+row.answer+`}`)
					want := `{"id":7,"result":` + row.answer + `}`
					got = <-e.agent.got
					if row.name == "a yes for the session" && i == 2 { // it counts for this time
						got = strings.Replace(got, `"accept"`, `"acceptForSession"`, 1)
						if got != want {
							t.Errorf("%+v: the app-server got %s", policy, got)
						}
					} else if passes := got == want; passes != (i < row.passes) {
						t.Errorf("%+v: the app-server got %s", policy, got)
					}
					e.service.say(t, `{"id":7,"result":{"decision":"accept"}}`) // it counts once
					if got := <-e.agent.got; strings.Contains(got, "accept") {
						t.Errorf("%+v: after the answer the app-server got %s", policy, got)
					}
				})
			}
		})
	}
}

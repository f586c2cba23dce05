package main

import (
	"fmt"
	"syscall"
	"testing"
)

// TestProofSentAgain: Switchboard is killed after it made a response, and the request comes again, as an SDK sends it
// whose connection broke: it gets that response, also where what the response went on from has changed since. Nothing
// runs twice, and the conversation takes more.
func TestProofSentAgain(t *testing.T) { t.Parallel(); onAStore(t, proofSentAgain) }

func proofSentAgain(t *testing.T, store string) {
	f, s, c := farmed(t, store)
	twice := func(body string) map[string]any {
		t.Helper()
		first := c.made("/v1/responses", body)
		for range 2 {
			c = s.after(c, syscall.SIGKILL)
			if again := c.made("/v1/responses", body, "X-Stainless-Retry-Count", "1"); again["id"] != first["id"] || again["status"] != first["status"] {
				t.Errorf("%s: sent again it is %v, and was %v", body, again, first)
			}
		}
		return first
	}
	talk := c.made("/v1/conversations", "")
	for n := range 2 { // the first makes the session, the second goes on in it
		twice(fmt.Sprintf(`{"model":"bigpc","input":"job %d takes 0","conversation":%q}`, n, talk["id"]))
	}
	asked := c.made("/v1/responses", `{"model":"bigpc","input":"job 7 asks"}`)
	output, _ := asked["output"].([]any)
	question, _ := output[len(output)-1].(map[string]any)
	answer := `{"model":"bigpc","previous_response_id":%q,"input":[{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}]}`
	twice(fmt.Sprintf(answer, asked["id"], question["id"]))
	f.check(t)
}

package acp

import (
	"testing"

	"switchboard/handoff"
	"switchboard/servers/jsonrpc"
)

// TestNotSignedIn: an agent that needs somebody to sign in gives [handoff.CodeNotSignedIn], when a session is made and
// when work fails. Other refusals of its provider do not.
func TestNotSignedIn(t *testing.T) {
	t.Parallel()
	c := &connection{cfg: Config{Name: "mac"}}
	for _, row := range []struct {
		code int
		want handoff.Code // of a request, and of work
		work handoff.Code
		said string
		data string
	}{
		{codeAuth, handoff.CodeNotSignedIn, handoff.CodeNotSignedIn, "Authentication required", ""},
		{401, handoff.CodeRefused, handoff.CodeNotSignedIn, "Authentication required", ""},
		{403, handoff.CodeRefused, handoff.CodeModelRefused, "Authentication required", ""},
		{-32603, handoff.CodeRefused, "", "Authentication required", ""},
		// opencode 1.18.33, whose provider answers 401
		{-32603, handoff.CodeRefused, handoff.CodeNotSignedIn, "Internal error: Incorrect API key provided: sk-fake.",
			`{"service":"session","errorName":"APIError"}`},
		{-32603, handoff.CodeRefused, handoff.CodeNotSignedIn, "Internal error: invalid x-api-key", ""},
		{-32603, handoff.CodeRefused, handoff.CodeNotSignedIn, "Internal error", `{"errorName":"ProviderAuthError"}`},
		{-32603, handoff.CodeRefused, "", "Internal error: invalid model", `{"service":"session","errorName":"APIError"}`},
	} {
		e := &jsonrpc.Error{Code: row.code, Message: row.said, Data: []byte(row.data)}
		err := c.fault(e, "", handoff.CodeUnreachable)
		if got := handoff.CodeOf(err); got != row.want || turnCode(e) != row.work {
			t.Errorf("%d %s: %s, %s", row.code, row.said, got, turnCode(e))
		}
	}
}

package acp

import (
	"testing"

	"switchboard/handoff"
)

// TestNotSignedIn: an agent that wants somebody to sign in first is told as that, when a session is made and when work
// fails; what its provider refuses otherwise is not.
func TestNotSignedIn(t *testing.T) {
	t.Parallel()
	c := &connection{cfg: Config{Name: "mac"}}
	for _, row := range []struct {
		code int
		want handoff.Code // of a request, and of work
		work handoff.Code
	}{
		{codeAuth, handoff.CodeNotSignedIn, handoff.CodeNotSignedIn},
		{401, handoff.CodeRefused, handoff.CodeNotSignedIn},
		{403, handoff.CodeRefused, handoff.CodeModelRefused},
		{-32603, handoff.CodeRefused, ""},
	} {
		e := &rpcError{Code: row.code, Message: "Authentication required"}
		err := c.fault(e, "", handoff.CodeUnreachable, handoff.CodeUnreachable)
		if got := handoff.CodeOf(err); got != row.want || e.turnCode() != row.work {
			t.Errorf("%d: %s, %s", row.code, got, e.turnCode())
		}
	}
}

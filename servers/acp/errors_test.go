package acp

import (
	"encoding/json"
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

// TestStamps: the time of a session may lack its zone, or be none: the list is read all the same.
func TestStamps(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"2026-01-01T10:00:00.5+01:00"`: "2026-01-01 09:00:00.5 +0000 UTC", `"2026-01-01T10:00:00"`: "2026-01-01 10:00:00 +0000 UTC",
		`""`: "0001-01-01 00:00:00 +0000 UTC", `1767261600`: "0001-01-01 00:00:00 +0000 UTC", `null`: "0001-01-01 00:00:00 +0000 UTC",
	} {
		var got listed
		err := json.Unmarshal([]byte(`{"sessions":[{"sessionId":"s","updatedAt":`+text+`}]}`), &got)
		if err != nil || got.Sessions[0].Updated.UTC().String() != want {
			t.Errorf("%s is %v, %v", text, got.Sessions, err)
		}
	}
}

package handoff

import (
	"encoding/json"
	"testing"
)

// What OpenAI's clients read of an error is there, null where there is nothing to say.
func TestProblem(t *testing.T) {
	for want, err := range map[string]*Error{
		`{"code":"malformed","message":"I didn't understand that request: no.","type":"invalid_request_error","param":"session.type","next":"Correct it and try again."}`:                                                     Malformed("session.type", "no"),
		`{"code":"shutdown","message":"Switchboard is shutting down.","type":"server_error","param":null,"next":"Call again in a moment."}`:                                                                                   Fault(CodeShutdown, "", "secret"),
		`{"code":"rate_limit_exceeded","message":"That is more than is allowed: calls.","type":"rate_limit_error","param":null,"next":"Try again later; work that runs goes on."}`:                                            Fault(CodeLimited, "calls", ""),
		`{"code":"voice_limited","message":"The voice model at far takes no more calls right now.","type":"rate_limit_error","param":null,"next":"Try again later; Switchboard's account there may have reached its limit."}`: Fault(CodeVoiceLimit, "far", ""),
	} {
		if got, fault := json.Marshal(err.Problem()); fault != nil || string(got) != want {
			t.Errorf("%s: %s, %v", err.Code, got, fault)
		}
	}
}

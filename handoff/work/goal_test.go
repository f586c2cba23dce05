package work

import (
	"testing"

	"switchboard/handoff"
)

// TestGoalOfARequest: words with a goal are another request than the same words without one, keep it while they wait,
// and are no side question.
func TestGoalOfARequest(t *testing.T) {
	req := handoff.Request{Target: handoff.Target{Server: "bigpc"}, Input: handoff.TextInput("work until it builds")}
	without, kept := ArgsOf(req), handoff.Request{}
	req.Goal = true
	if ArgsOf(req) == without {
		t.Error("both have one key")
	}
	if restoreRequest(&kept, encodeRequest(req), ""); !kept.Goal {
		t.Error("it is lost while the words wait")
	}
	for mode, may := range map[handoff.Mode]bool{
		handoff.ModeNow: true, handoff.ModeNext: true, handoff.ModeAside: false, handoff.ModeWatch: false,
	} {
		req.Mode = mode
		if e := checkRequest(handoff.Grant{Caller: handoff.Caller{Principal: "me"}}, &req); (e == nil) != may {
			t.Errorf("mode %d: %v", mode, e)
		}
	}
}

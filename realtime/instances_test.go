package realtime

import (
	"regexp"
	"testing"

	"switchboard/handoff"
)

// The id of a call is as it always was where there is one instance, and else names its own.
func TestCallIDNamesTheInstance(t *testing.T) {
	for instance, want := range map[string]string{"": `^rtc_[0-9a-f]{24}$`, "AB2": `^rtc_AB2_[0-9a-f]{24}$`} {
		id := newCallID(instance)
		if !regexp.MustCompile(want).MatchString(id) || !callIDs.MatchString(id) {
			t.Errorf("%q: %s", instance, id)
		}
	}
}

// A caller whom another instance has is told to call again, as at the end of this one; others talk on.
func TestLeaveOnTheWire(t *testing.T) {
	h := newHouse(t)
	client, model := h.call("")
	h.front.Leave(handoff.Caller{Principal: "other"})
	if list := h.front.Calls(someone); len(list) != 1 {
		t.Errorf("its caller sees %+v", list)
	}
	h.front.Leave(someone.Caller)
	expect(t, client, "error")
	expectClose(t, client, 1012)
	expectClose(t, model, 1000)
}

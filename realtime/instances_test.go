package realtime

import (
	"context"
	"regexp"
	"testing"

	"switchboard/handoff"
)

// The id of a call names its instance if there are several, and else has the form of OpenAI's.
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

// A caller is busy until what their call cost is written, which comes after its end: their home stays that long.
func TestBusyUntilTheCostIsWritten(t *testing.T) {
	wrote := make(chan bool, 1)
	var front *Front
	front = runs(t, Config{ModelURL: "ws://127.0.0.1:1", Router: &listener{}, Billed: func(context.Context, Bill) error {
		wrote <- front.Busy(someone.Caller)
		return nil
	}})
	pass, fault := front.quota.enter(t.Context(), someone)
	if fault != nil {
		t.Fatal(fault)
	}
	pass.bill.bill.Tokens.TextOut = 1
	pass.leave()
	if !<-wrote || front.Busy(someone.Caller) {
		t.Error("the caller is not busy while the cost is written, or is so afterwards")
	}
}

package main

import (
	"strings"
	"testing"
	"time"
)

// TestChromiumAnotherNetwork: when the browser says that the network is another one, the call takes the new way in
// place. When the voice model's session ends, the header says quietly that the call goes on.
func TestChromiumAnotherNetwork(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) { p.Hurry, p.Wall = 5, 20*time.Second })
	p := r.page(startChromium(t, true), 1280, 900)
	p.Choose("Call")
	p.Status("Listening")
	p.soundFlows()
	id := r.theCall(false)
	eval[bool](p, `dispatchEvent(new Event("online"))`)
	until(t, "another way", func() bool { return strings.Contains(r.logs.String(), "client takes another way") })
	p.soundFlows()
	p.Shows("Reconnected.") // at the wall of the voice model
	p.Pictures("network-reconnected")
	if now := r.theCall(false); now != id || strings.Contains(r.logs.String(), "client vanished") {
		t.Errorf("it was in %s, and is in %s", id, now)
	}
	p.Choose("Hang up")
	p.Status("Not in a call")
	p.Quiet(noKeyYet)
}

// TestChromiumSlept: a device that slept asks before the microphone is opened again, and then goes on with the call.
func TestChromiumSlept(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) { p.Hurry = 5 })
	p := r.page(startChromium(t, true), 390, 844)
	p.Choose("Call")
	p.Status("Listening")
	p.soundFlows()
	id := r.theCall(false)
	eval[bool](p, `(() => { const now = Date.now; Date.now = () => now() + 180_000; return document.dispatchEvent(new Event("visibilitychange")); })()`)
	p.Shows("You were away, so the microphone is off.")
	p.Status("Not in a call")
	if r.theCall(true) != id {
		t.Error("the call is another one")
	}
	p.Pictures("network-slept")
	p.Click("Go on")
	p.Status("Listening")
	p.Shows("Reconnected.")
	p.soundFlows()
	if now := r.theCall(false); now != id {
		t.Errorf("it was in %s, and is in %s", id, now)
	}
	p.Choose("Hang up")
	p.Status("Not in a call")
	p.Quiet(noKeyYet)
}

package main

import (
	"testing"

	"switchboard/handoff"
)

// TestChromiumOneCall: who calls on a second device moves the call there, so that no two microphones are live.
func TestChromiumOneCall(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) { p.Hurry = 8 })
	browser := startChromium(t, true)
	desk := openTab(t, browser, 1280, 800)
	desk.enter(r)
	desk.choose("Call")
	desk.status("Listening")
	phone := openTab(t, browser, 390, 844)
	phone.enter(r)
	phone.tap("Call")
	phone.shows("You are in a call in another window or on another device.")
	phone.pictures("one-call-phone")
	desk.status("Listening")
	phone.tap("Move the call here")
	phone.status("Listening")
	desk.status("Not in a call")
	var calls struct{ Items []handoff.CallInfo }
	until(t, "one call to be left", func() bool {
		r.get("/fleet/calls", &calls)
		return len(calls.Items) == 1
	})
	phone.tap("Hang up")
	phone.status("Not in a call")
	desk.quiet()
	phone.quiet()
}

// TestChromiumCallByText: what is typed without a microphone is answered in writing, and counts as heard.
func TestChromiumCallByText(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	p := openTab(t, startChromium(t, true), 1280, 800)
	p.enter(r)
	p.says("Run the tests on bigpc")
	p.until(`[...document.querySelectorAll(".line.voice")].some((e) => e.textContent.includes("all tests pass") || e.textContent.includes("One test fails") || e.textContent.includes("is done"))`)
	r.allHeard()
	p.pictures("call-by-text")
	p.quiet(noKeyYet)
}

package main

import (
	"testing"
)

// TestChromiumOneCall: calling on a second device moves the call there, so that no two microphones are live.
func TestChromiumOneCall(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) { p.Hurry = 8 })
	browser := startChromium(t, true)
	desk := r.page(browser, 1280, 800)
	desk.Choose("Call")
	desk.Status("Listening")
	phone := r.page(browser, 390, 844)
	phone.Click("Call")
	phone.Shows("You are in a call in another window or on another device.")
	phone.Pictures("one-call-phone")
	desk.Status("Listening")
	phone.Click("Move the call here")
	phone.Status("Listening")
	desk.Status("Not in a call")
	r.theCall(false)
	phone.Click("Hang up")
	phone.Status("Not in a call")
	desk.Quiet()
	phone.Quiet()
}

// TestChromiumCallByText: what is typed without a microphone is answered in writing, and counts as heard.
func TestChromiumCallByText(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	p := r.page(startChromium(t, true), 1280, 800)
	p.says("Run the tests on bigpc")
	p.Until(`[...document.querySelectorAll(".line.voice")].some((e) => e.textContent.includes("all tests pass") || e.textContent.includes("One test fails") || e.textContent.includes("is done"))`)
	r.allHeard()
	p.Pictures("call-by-text")
	p.Quiet(noKeyYet)
}

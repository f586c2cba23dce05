package main

import (
	"testing"

	"switchboard/handoff"
)

// TestChromiumAnswersInWords answers an agent's question on the page, and an approval by a typed sentence,
// on a phone and at a desk.
func TestChromiumAnswersInWords(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) { p.Hurry = 4 })
	browser := startChromium(t, true)
	p := openTab(t, browser, 390, 844)
	p.enter(r)
	p.tap("Call")
	p.status("Listening")
	p.says("On bigpc, publish the release notes")
	p.shows("bigpc asks you something")
	p.shows("Which version are the release notes for?")
	p.pictures("answer-1-phone-talk")
	p.tap("Look")
	p.until(`document.querySelector(".question:not(.settling) .answer-field")`)
	p.hasInTree("group: bigpc asks you something", "textbox: Which version are the release notes for?", "group: Answers it offers", "button: 2.4", "button: 2.5", "button: Send", "button: Decline")
	p.shows("…or say it.")
	p.pictures("answer-2-phone-question")
	p.touch(`document.querySelector(".answer-field")`)
	p.press("2.4.2")
	p.pictures("answer-3-phone-typed")
	p.tap("Send")
	p.work("publish", "Done")
	p.until(card("publish") + `.querySelector(".answer").textContent.includes("published for version 2.4.2")`)
	p.until(`!document.querySelector(".question")`)
	p.pictures("answer-4-phone-done")
	if wide := eval[float64](p, `Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) - innerWidth`); wide > 0 {
		t.Errorf("%v pixels too wide", wide)
	}
	p.tap("Hang up")
	p.status("Not in a call")
	p.quiet(noKeyYet)
	until(t, "the call to be over", func() bool { // else the other tab would be asked whether to move it there
		var calls struct{ Items []handoff.CallInfo }
		r.get("/fleet/calls", &calls)
		return len(calls.Items) == 0
	})

	p = openTab(t, browser, 1280, 940)
	p.enter(r)
	p.choose("Call")
	p.status("Listening")
	p.says("Push it from bigpc")
	p.until(`[...document.querySelectorAll(".line.voice")].some((e) => e.textContent.includes("Yes or no?"))`)
	p.shows("…or say yes or no.")
	p.status("bigpc waits for you") // when it has been said
	p.pictures("answer-5-desktop-approval")
	p.says("yes")
	p.work("push it", "Done")
	p.until(card("push it") + `.querySelector(".answer").textContent.includes("is pushed")`)

	p.says("On bigpc, publish the release notes")
	p.until(`document.querySelector(".question:not(.settling) .answer-field")`)
	p.says("After that, run the tests on bigpc")
	p.work("run the tests", "Waiting")
	p.shows("comes after your other work there")
	p.pictures("answer-6-desktop-question")
	p.tabTo("2.5")
	p.press("\r", "\r") // it fills the field, and Send sends it
	p.work("publish", "Done")
	p.until(card("publish") + `.querySelector(".answer").textContent.includes("published for version 2.5.")`)
	p.work("run the tests", "Done")
	p.pictures("answer-7-desktop-done")
	p.choose("Hang up")
	p.status("Not in a call")
	p.quiet(noKeyYet)
}

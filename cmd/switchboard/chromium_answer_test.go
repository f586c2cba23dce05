package main

import (
	"testing"
)

// TestChromiumAnswersInWords answers an agent's question on the page, and an approval by a typed sentence,
// on a phone and at a desk.
func TestChromiumAnswersInWords(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) { p.Hurry = 4 })
	browser := startChromium(t, true)
	p := r.page(browser, 390, 844)
	p.Click("Call")
	p.Status("Listening")
	p.says("On bigpc, publish the release notes")
	p.Shows("bigpc asks you something")
	p.Shows("Which version are the release notes for?")
	p.Pictures("answer-1-phone-talk")
	p.Click("Review")
	p.Until(`document.querySelector(".question:not(.settling) .answer-field")`)
	p.Has("group: bigpc asks you something", "textbox: Which version are the release notes for?", "group: Answers it offers", "button: 2.4", "button: 2.5", "button: Send", "button: Decline")
	p.Shows("…or say it.")
	p.Pictures("answer-2-phone-question")
	p.Hit(`document.querySelector(".answer-field")`)
	p.Press("2.4.2")
	p.Pictures("answer-3-phone-typed")
	p.Click("Send")
	p.work("publish", "Done")
	p.Until(card("publish") + `.querySelector(".answer").textContent.includes("published for version 2.4.2")`)
	p.Until(`!document.querySelector(".question")`)
	p.Pictures("answer-4-phone-done")
	p.fits()
	p.Click("Hang up")
	p.Status("Not in a call")
	p.Quiet(noKeyYet)
	r.noCallIsLeft() // else the other tab would be asked whether to move it there

	p = r.page(browser, 1280, 940)
	p.Choose("Call")
	p.Status("Listening")
	p.says("Push it from bigpc")
	p.voice("Yes or no?")
	p.Shows("…or say yes or no.")
	p.Status("bigpc waits for you") // when it has been said
	p.Pictures("answer-5-desktop-approval")
	p.says("yes")
	p.work("push it", "Done")
	p.Until(card("push it") + `.querySelector(".answer").textContent.includes("is pushed")`)

	p.says("On bigpc, publish the release notes")
	p.Until(`document.querySelector(".question:not(.settling) .answer-field")`)
	p.says("After that, run the tests on bigpc")
	p.work("run the tests", "Waiting")
	p.Shows("comes after your other work there")
	p.Pictures("answer-6-desktop-question")
	p.TabTo("2.5")
	p.Press("\r", "\r") // it fills the field, and Send sends it
	p.work("publish", "Done")
	p.Until(card("publish") + `.querySelector(".answer").textContent.includes("published for version 2.5.")`)
	p.work("run the tests", "Tests fail")
	p.Pictures("answer-7-desktop-done")
	p.Choose("Hang up")
	p.Status("Not in a call")
	p.Quiet(noKeyYet)
}

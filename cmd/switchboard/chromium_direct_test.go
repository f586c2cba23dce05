package main

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"switchboard/handoff"
)

// TestChromiumDirect plays a call whose sound goes between the page and the voice model's server itself: Switchboard is
// in it by a second socket, and work, questions and what is typed are as in any call.
func TestChromiumDirect(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) { p.Model.Media = mediaDirect }) // in no hurry: a busy machine's sound comes late
	p := r.page(startChromium(t, true), 1280, 900)
	p.Choose("Call")
	p.Status("Listening")
	p.soundFlows()
	id := r.theCall(false)
	if logs := r.logs.String(); strings.Contains(logs, `"logger":"realtime","msg":"webrtc connection"`) {
		t.Error("the sound goes through Switchboard")
	}
	p.says("On bigpc continue the auth session and run the tests")
	p.voice("TestRefreshExpiredToken")
	r.allHeard()
	p.says("Fix it")
	p.work("fix it", "Done")
	r.allHeard()
	p.Status("Listening")

	p.says("Push it from bigpc")
	p.voice("Yes or no?")
	p.Status("bigpc waits for you")
	p.Pictures("direct-asks")
	p.says("yes") // it goes to Switchboard, not over the line
	p.voice("is pushed")
	r.allHeard()
	p.Status("Listening")
	if n := eval[int](p, `[...document.querySelectorAll(".line.you")].filter((e) => e.textContent.includes("Fix it")).length`); n != 1 {
		t.Errorf("what was typed is shown %d times:\n%s", n, eval[string](p, `document.body.innerText`))
	}

	// The voice falls silent when somebody speaks, as the server of the voice model has it.
	p.interrupts(`[...document.querySelectorAll(".line.voice")].at(-1).textContent.includes("stopped")`)
	eval[bool](p, `(seen.makeSound(false), true)`)
	p.Shows("I hear that you are speaking")
	p.Status("Listening")

	p.Do(chromedp.Reload()) // there is nothing to come back to: another call takes its place
	p.Shows("Fix it")
	p.Status("Listening")
	if now := r.theCall(false); now == id {
		t.Errorf("it came back to %s", now)
	}
	p.says("Run the tests on laptop")
	p.work("run the tests", "Done")
	r.allHeard()
	p.Choose("Hang up")
	p.Status("Not in a call")
	r.noCallIsLeft()
	if all := r.handoffs(); len(all) != 4 {
		t.Errorf("%d pieces of work: %+v", len(all), all)
	}
	p.Until(`!document.body.innerText.includes("Nobody knows whether this was heard")`)
	for _, h := range r.handoffs() {
		if h.State != handoff.StatusDelivered {
			t.Errorf("%s was not heard: %s", h.Title, h.State)
		}
	}
	p.Quiet(noKeyYet, "404") // the call before the reload may be over when it is hung up
}

package main

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// TestChromiumReload loads the page anew in mid-call, while work goes on: the page comes back to its call, shows the
// conversation, and what ended meanwhile is told once.
func TestChromiumReload(t *testing.T) {
	t.Parallel()
	world := holding(2, "run the tests")
	r := start(t, func(p *plan) { p.Hurry, p.World = 4, world })
	p := r.page(startChromium(t, true), 1280, 900)
	p.Choose("Call")
	p.Status("Listening")
	p.soundFlows()
	id := r.theCall(false)
	p.says("On bigpc continue the auth session and run the tests")
	until(t, "the work to begin", func() bool { return len(r.handoffs()) == 1 })
	p.Do(chromedp.Reload())
	p.Shows("On bigpc continue the auth session and run the tests")
	world.Release("bigpc")
	p.voice("TestRefreshExpiredToken")
	r.allHeard()
	if now := r.theCall(false); now != id {
		t.Errorf("it was in %s, and is in %s", id, now)
	}
	p.Status("Listening")
	p.soundFlows()
	if n := eval[int](p, `[...document.querySelectorAll(".line.voice")].filter((e) => e.textContent.includes("TestRefreshExpiredToken")).length`); n != 1 {
		t.Errorf("told %d times:\n%s", n, eval[string](p, `document.body.innerText`))
	}
	p.Pictures("rejoin-reloaded")
	p.says("Which machines do I have?") // the same conversation goes on
	p.voice("are ready")
	p.Choose("Hang up")
	p.Status("Not in a call")
	p.Do(chromedp.Reload())
	p.Shows("Which machines do I have?")
	p.Status("Not in a call") // who has hung up does not come back
	p.Quiet(noKeyYet)
}

// TestChromiumCallByTextReload: so does a call without a microphone.
func TestChromiumCallByTextReload(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) { p.Hurry = 8 })
	p := r.page(startChromium(t, true), 390, 844)
	p.says("Which machines do I have?")
	p.voice("are ready")
	id := r.theCall(false)
	p.Do(chromedp.Reload())
	p.Shows("Which machines do I have?")
	p.Status("In a call by text")
	if now := r.theCall(false); now != id {
		t.Errorf("it was in %s, and is in %s", id, now)
	}
	p.says("Run the tests on laptop")
	p.work("run the tests", "Done")
	r.allHeard()
	if eval[bool](p, `Boolean(seen.mic)`) {
		t.Error("the microphone was opened")
	}
	p.Click("Hang up")
	p.Status("Not in a call")
	p.Quiet(noKeyYet)
}

package main

import (
	"fmt"
	"strings"
	"testing"

	"switchboard/handoff"
)

// TestChromiumCallGoesOn plays one conversation in a real browser over all that ends other calls: an end of the voice
// model's session that it announces, another network, a lid that is closed for three minutes, and a model socket
// that is killed while a question is open. Work goes on meanwhile. The caller keeps one call and hears each outcome
// once.
func TestChromiumCallGoesOn(t *testing.T) {
	t.Parallel()
	voice := runVoice(t, 4)
	world := holding(4, "fix it")
	r := start(t, func(p *plan) { p.Hurry, p.Model, p.World = 4, voice.plan, world })
	l := &longCall{tab: r.page(startChromium(t, true), 1280, 900), r: r, model: voice}
	l.Choose("Call")
	l.Status("Listening")
	id := r.theCall(false)
	l.soundFlows()

	l.says("On bigpc continue the auth session and run the tests")
	l.begun(1)
	eval[bool](l.tab, `dispatchEvent(new Event("online"))`)
	l.logs("client takes another way", 1)
	l.voice("TestRefreshExpiredToken")
	l.soundFlows()
	if strings.Contains(r.logs.String(), "client vanished") {
		t.Error("the client was lost with its network")
	}

	l.says("Fix it")
	l.begun(2)
	l.closeLid()
	world.Release("bigpc")
	if r.theCall(true) != id {
		t.Error("the call is another one")
	}
	until(t, "the work to end", func() bool { return r.handoffs()[1].Outcome != "" })
	if r.handoffs()[1].State == handoff.StatusDelivered {
		t.Error("it counts as heard though nobody was there")
	}
	l.reconnects(func() { l.Click("Go on") })
	l.voice("tests pass")
	l.Status("Listening") // when it has been said

	l.says("Push it from bigpc")
	l.voice("Yes or no?")
	l.Status("bigpc waits for you")
	l.reconnects(func() {
		voice.way.proxy.Stop()
		l.logs("voice model's session lost", 1)
		must(t, voice.way.proxy.Start())
	})
	l.says("yes")
	l.voice("is pushed")
	l.wall()
	l.soundFlows()
	if now := r.theCall(false); now != id {
		t.Errorf("it was in %s, and is in %s", id, now)
	}
	l.one("On bigpc continue the auth session and run the tests", "Fix it", "Push it from bigpc")
	l.told("TestRefreshExpiredToken", "tests pass", "is pushed")
	l.Choose("Hang up")
	l.Status("Not in a call")
	r.noCallIsLeft()
	l.Quiet(noKeyYet, "409") // whose leg ended while they asked for another way is told so
}

// A longCall is a call in a browser that outlives what it is made of.
type longCall struct {
	*tab
	r     *running
	model *ownVoice
}

// begun waits until so many pieces of work have begun.
func (l *longCall) begun(n int) {
	l.T.Helper()
	until(l.T, "the work to begin", func() bool { return len(l.r.handoffs()) == n })
}

// logs waits until the log has a message so often.
func (l *longCall) logs(message string, n int) {
	l.T.Helper()
	until(l.T, message, func() bool { return strings.Count(l.r.logs.String(), message) >= n })
}

// wall lets a session of the voice model announce its end, and waits until the page says that it goes on.
func (l *longCall) wall() {
	l.T.Helper()
	l.reconnects(func() { l.model.wall() })
	l.logs(`"planned":true`, 1)
	l.Status("Listening")
}

// closeLid closes the lid for three minutes. Then the page asks before it opens the microphone.
func (l *longCall) closeLid() {
	l.T.Helper()
	eval[bool](l.tab, `(() => { const now = Date.now; Date.now = () => now() + 180_000; return document.dispatchEvent(new Event("visibilitychange")); })()`)
	l.noticed("You were away, so the microphone is off.")
	l.Status("Not in a call")
}

// one holds that it was one conversation: each sentence is shown once, and led to one piece of work, in one session.
func (l *longCall) one(sentences ...string) {
	l.T.Helper()
	works := l.r.allHeard()
	if len(works) != len(sentences) {
		l.T.Errorf("%d pieces of work: %+v", len(works), works)
	}
	for _, w := range works {
		if w.ThreadID != works[0].ThreadID || w.Outcome != handoff.OutcomeResult {
			l.T.Errorf("%s: %s in %s, not %s", w.Prompt, w.Outcome, w.ThreadID, works[0].ThreadID)
		}
	}
	for _, s := range sentences {
		if n := l.lines("you", fmt.Sprintf(`includes(%q)`, s)); n != 1 {
			l.T.Errorf("%q is shown %d times:\n%s", s, n, eval[string](l.tab, `document.body.innerText`))
		}
	}
}

// told holds that each outcome, for which some of its words stand, was told, and not again after it was told whole.
func (l *longCall) told(outcomes ...string) {
	l.T.Helper()
	for _, words := range outcomes {
		all := l.lines("voice", fmt.Sprintf(`includes(%q)`, words))
		whole := l.lines("voice", fmt.Sprintf(`match(/^(?!.*\bstopped\b).*%s/s)`, words))
		if all == 0 || whole > 1 {
			l.T.Errorf("%q is told %d times, %d times whole:\n%s", words, all, whole, eval[string](l.tab, `document.body.innerText`))
		}
	}
}

// lines counts the lines of the caller or the voice whose visible text has something.
func (l *longCall) lines(who, has string) int {
	l.T.Helper()
	return eval[int](l.tab, fmt.Sprintf(`[...document.querySelectorAll(".line.%s")].filter((e) => e.innerText.%s).length`, who, has))
}

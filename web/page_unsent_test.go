package web

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// said counts how often a text was typed into the call on the other side.
const said = `far.events.filter((e) => e.item?.content[0].text === "Run the tests on bigpc.").length`

func (p *tab) types(text string) {
	p.T.Helper()
	p.Do(chromedp.Focus(chromedp.ID("say")))
	p.Paste(text)
	p.Press("\r")
}

// What is typed while no call can be had stays in the conversation, says that it was not sent, and can be taken back.
// It is sent once. A call that is not up is cancelled, not hung up, and what was typed meanwhile is not lost.
func TestPageKeepsWhatCouldNotBeSent(t *testing.T) {
	t.Parallel()
	_, p := openCall(t, true)
	eval[bool](p, `((real) => (window.real = real, window.fetch = (url, init) => (url.startsWith("/v1/realtime/calls?") ? new Promise((_, no) => init.signal.addEventListener("abort", () => no(init.signal.reason))) : real(url, init)), true))(window.fetch)`)
	p.TabTo("Call")
	p.Press("\r")
	p.Status("Connecting…")
	p.types("Hello there")
	p.Until(`document.querySelector(".line.you")`)
	p.Click("Cancel")
	p.Status("Not in a call")
	p.Shows("You stopped the call. Your words were not sent; they are back in the text box. Work goes on; its result will be here.")
	p.Until(`document.querySelector("#say").value === "Hello there"`)
	if eval[bool](p, `far.calls > 0 || document.body.innerText.includes("You hung up")`) {
		t.Error("it was never up")
	}
	eval[bool](p, `(window.fetch = real, document.querySelector("#say").value = "", true)`)
	eval[bool](p, `(far.broken = true)`)
	p.types("Run the tests on bigpc.")
	p.Shows("The voice model is away. Wait.")
	p.Status("Not in a call")
	p.Shows("Run the tests on bigpc. Not sent yet.")
	p.Click("Edit")
	p.Until(`document.querySelector("#say").value === "Run the tests on bigpc." && !document.querySelector(".line.you")`)
	p.Press("\r")
	p.Shows("Not sent yet.")
	p.Scheme("light")
	p.Picture("unsent")
	eval[bool](p, `(far.broken = false, true)`)
	p.Click("Send now")
	p.Until(`far.types() === "session.update conversation.item.create response.create" && ` + said + ` === 1`)
	p.Until(`!document.querySelector(".line-fate").checkVisibility()`)
	p.Until(`document.querySelector("#transcript").innerText.trim().endsWith("Run the tests on bigpc.")`) // below "You called."
	// A line that went out and that nothing has answered when the call is lost may have been heard.
	eval[bool](p, `(far.live = "", far.channel.close(), true)`)
	p.Shows("It is unclear whether this was heard.")
	p.Click("Send again")
	p.Until(`far.calls === 2 && ` + said + ` === 2 && document.querySelectorAll(".line.you").length === 1`)
	eval[bool](p, `(far.say({ type: "conversation.item.added", item: far.events.findLast((e) => e.item).item }), true)`)
	p.Click("Hang up")
	p.Status("Not in a call")
	if eval[bool](p, `document.querySelector(".line-fate").checkVisibility()`) {
		t.Error("a line that arrived is in doubt")
	}
	p.quiet()
}

// What is typed while Switchboard is down waits, also over a reload of the page, and is sent once it is back.
func TestPageSendsWhatWaitedForSwitchboard(t *testing.T) {
	t.Parallel()
	w := newScene()
	w.questions = nil
	o := newOutage(t)
	_, base := serveBehind(t, w, nil, o.behind)
	p := openTab(t, startChromium(t, true), 1280, 800)
	p.loggedIn(base)
	eval[bool](p, otherSide)
	o.begin()
	p.Shows("The connection to Switchboard is lost.")
	p.types("Run the tests on bigpc.")
	p.Shows("Not sent yet. It is sent when Switchboard is back.")
	if calls := eval[int](p, `far.calls`); calls != 0 {
		t.Errorf("%d calls were opened meanwhile", calls)
	}
	p.Picture("unsent-outage")
	o.end()
	p.Until(`far.calls === 1 && ` + said + ` === 1`)
	// A reload keeps a line that waits.
	eval[bool](p, `(far.say({ type: "conversation.item.added", item: far.events.findLast((e) => e.item).item }), true)`)
	p.Click("Hang up")
	o.begin()
	p.Shows("The connection to Switchboard is lost.")
	p.types("And then push.")
	p.Shows("Not sent yet.")
	p.Do(atFirst(otherSide))
	o.end()
	p.open(base + "/?again")
	p.Until(`far.events.filter((e) => e.item?.content[0].text === "And then push.").length === 1`)
	if lines := eval[int](p, `document.querySelectorAll(".line.you").length`); lines != 2 {
		t.Errorf("%d lines of the caller, want 2", lines)
	}
}

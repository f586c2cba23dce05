package web

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// said counts how often a text was typed into the call on the other side.
const said = `far.events.filter((e) => e.item?.content[0].text === "Run the tests on bigpc.").length`

func (p *tab) types(text string) {
	p.t.Helper()
	p.do(chromedp.Focus(chromedp.ID("say")))
	p.press(text, "\r")
}

// What is typed while no call can be had stays in the conversation, says that it was not sent, and can be taken back.
// It is sent once.
func TestPageKeepsWhatCouldNotBeSent(t *testing.T) {
	t.Parallel()
	_, p := openCall(t, true)
	eval[bool](p, `(far.broken = true)`)
	p.types("Run the tests on bigpc.")
	p.shows("The voice model is away. Wait.")
	p.status("Not in a call")
	p.shows("Run the tests on bigpc. Not sent yet.")
	p.click("Edit")
	p.until(`document.querySelector("#say").value === "Run the tests on bigpc." && !document.querySelector(".line.you")`)
	p.press("\r")
	p.shows("Not sent yet.")
	p.scheme("light")
	p.shot("unsent")
	eval[bool](p, `(far.broken = false, true)`)
	p.click("Send now")
	p.until(`far.types() === "session.update conversation.item.create response.create" && ` + said + ` === 1`)
	p.until(`!document.querySelector(".line-fate").checkVisibility()`)
	// A line that went out and that nothing has answered when the call is lost may have been heard.
	eval[bool](p, `(far.live = "", far.channel.close(), true)`)
	p.shows("Nobody knows whether this was heard.")
	p.click("Send again")
	p.until(`far.calls === 2 && ` + said + ` === 2 && document.querySelectorAll(".line.you").length === 1`)
	eval[bool](p, `(far.say({ type: "conversation.item.added", item: far.events.findLast((e) => e.item).item }), true)`)
	p.click("Hang up")
	p.status("Not in a call")
	if eval[bool](p, `document.querySelector(".line-fate").checkVisibility()`) {
		t.Error("a line that arrived is in doubt")
	}
	p.quiet()
}

// What is typed while Switchboard is down waits, also over a reload of the page, and is sent once it is back.
func TestPageSendsWhatWaitedForSwitchboard(t *testing.T) {
	t.Parallel()
	w := newWorld()
	scene(w)
	w.questions = nil
	o := newOutage(t)
	_, base := serveBehind(t, w, nil, o.behind)
	p := openTab(t, startChromium(t, true), 1280, 800)
	p.loggedIn(base)
	eval[bool](p, otherSide)
	o.begin()
	p.shows("The connection to Switchboard is lost.")
	p.types("Run the tests on bigpc.")
	p.shows("Not sent yet. It is sent when Switchboard is back.")
	if calls := eval[int](p, `far.calls`); calls != 0 {
		t.Errorf("%d calls were opened meanwhile", calls)
	}
	p.shot("unsent-outage")
	o.end()
	p.until(`far.calls === 1 && ` + said + ` === 1`)
	// A reload keeps a line that waits.
	eval[bool](p, `(far.say({ type: "conversation.item.added", item: far.events.findLast((e) => e.item).item }), true)`)
	p.click("Hang up")
	o.begin()
	p.shows("The connection to Switchboard is lost.")
	p.types("And then push.")
	p.shows("Not sent yet.")
	p.do(atFirst(otherSide))
	o.end()
	p.open(base + "/?again")
	p.until(`far.events.filter((e) => e.item?.content[0].text === "And then push.").length === 1`)
	if lines := eval[int](p, `document.querySelectorAll(".line.you").length`); lines != 2 {
		t.Errorf("%d lines of the caller, want 2", lines)
	}
}

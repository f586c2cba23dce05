package main

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	machines "switchboard/servers/simulator"
)

// page opens the printed link in a new tab and waits for the machines.
func (r *running) page(browser context.Context, width, height int64) *tab {
	r.t.Helper()
	p := openTab(r.t.(*testing.T), browser, width, height)
	link, err := r.link(r.t.Context(), "")
	must(r.t, err)
	p.Do(chromedp.Navigate(link))
	p.Until(`document.querySelectorAll("#app:not([hidden]) .machine").length > 2`)
	if at := eval[string](p, `location.href + " " + JSON.stringify(history.state) + JSON.stringify({ ...localStorage })`); strings.Contains(at, "login") {
		r.t.Errorf("the code stays: %s", at)
	}
	p.Until(`["bigpc", "laptop"].every((m) => document.querySelector("#machine-" + m)?.closest(".machine").querySelector(".pill").textContent === "Ready")`)
	return p
}

// TestChromiumByKeyboard plays a newcomer's first call in a real browser over the whole service: WebRTC on
// one side, the simulated voice and machines on the other, and nothing but a keyboard.
func TestChromiumByKeyboard(t *testing.T) {
	t.Parallel()
	world := holding(4, "benchmarks")
	r := start(t, func(p *plan) { p.Hurry, p.World = 4, world })
	p := r.page(startChromium(t, true), 1280, 940)
	p.Pictures("desktop-1-before")
	p.Status("Not in a call")
	p.Has("heading: Switchboard", "region: Conversation", "region: Call", "region: Work", "region: Machines", "log: Transcript",
		"group: Things to say", "textbox: Message", "button: Send", "button: Call", "button: Sound", "button: Simulated", "region: bigpc", "region: attic")

	p.Choose("Call")
	p.Status("Listening")
	p.keyboardMutes()
	p.soundFlows()
	p.keyboardTalks()
	p.keyboardWorks(r)
	p.keyboardHangsUp(world)
	p.soundFlows()
	p.Choose("Hang up")
	p.Status("Not in a call")
	p.Quiet(noKeyYet)
}

// keyboardMutes mutes and unmutes. The focus is where it must be after calling.
func (p *tab) keyboardMutes() {
	p.T.Helper()
	p.Until(`seen.micOn() && document.activeElement.id === "mute"`)
	p.Press(" ")
	p.Status("Muted")
	p.Until(`!seen.micOn() && document.querySelector("#mute").getAttribute("aria-pressed") === "true"`)
	p.Has("button: Unmute")
	p.Press(" ")
	p.Status("Listening")
	p.Until(`seen.micOn()`)
}

// keyboardTalks talks by holding Space: what is said before is not heard, what is said meanwhile is.
func (p *tab) keyboardTalks() {
	p.T.Helper()
	p.Choose("Sound")
	p.Until(`document.querySelector("#sound-menu:popover-open")`)
	p.Has("dialog: Sound", "radio: Open microphone", "radio: Push to talk (hold Space or the button)", "combobox: Microphone")
	p.tabToMode()
	p.Press(kb.ArrowDown)
	p.Until(`document.querySelector("input[value=hold]").checked`)
	p.Press("\x1b")
	p.Status("Ready")
	p.Until(`!seen.micOn()`)
	eval[bool](p, `(seen.makeSound(true), true)`)
	p.TabTo("Hold to talk")
	p.Space(input.DispatchKeyEventTypeKeyDown, false)
	p.Until(`seen.micOn()`)
	p.Has("button: Talking…")
	p.Until(`document.querySelector("#status[data-tone=talk] #status-text")?.textContent === "Listening"`)
	p.Space(input.DispatchKeyEventTypeKeyUp, false)
	p.Until(`!seen.micOn()`)
	p.Shows("I hear that you are speaking")
	eval[bool](p, `(seen.makeSound(false), true)`)
	p.Choose("Sound")
	p.tabToMode()
	p.Press(kb.ArrowUp)
	p.Press("\x1b")
	p.Until(`seen.micOn()`)
}

// tabToMode moves the focus to the choice of how to talk.
func (p *tab) tabToMode() {
	p.T.Helper()
	for range 10 {
		if eval[bool](p, `document.activeElement.name === "mode"`) {
			return
		}
		p.Press("\t")
	}
	p.T.Fatal("the keyboard does not reach how to talk")
}

// keyboardWorks gives work to machines, answers an approval, stops work and forgets a session.
func (p *tab) keyboardWorks(r *running) {
	p.T.Helper()
	p.TabTo("say")
	p.Press("Continue the auth session on bigpc and run the tests", "\r")
	p.work("run the tests", "Tests fail")
	p.Until(card("run the tests") + `.querySelector(".answer").textContent.includes("TestRefreshExpiredToken")`)
	p.Status("Listening") // when it has been said
	p.says("Fix it")
	p.work("fix it", "Done")
	p.Until(card("fix it") + `.querySelector(".card-meta").textContent.includes("continued")`)

	p.Status("Listening")
	p.says("On laptop, write the release notes")
	p.Until(`!!` + card("release notes")) // a sentence that comes sooner cuts off the voice before it has begun anything
	p.says("Push it from bigpc")
	p.work("push it", "Needs you")
	p.Until(`document.title.includes("bigpc asks to run git push")`)
	p.Has("group: bigpc asks to run git push", "button: Allow once", "button: Decline", "heading: bigpc asks to run git push")
	p.Until(`document.querySelector(".question-command").textContent.includes("git push origin") && !document.querySelector(".question.settling")`)
	p.Pictures("desktop-2-approval")
	p.Choose("Allow once")
	p.work("push it", "Done")
	p.Until(`!document.querySelector(".question")`)
	p.work("release notes", "Done")

	p.says("Run the benchmarks on bigpc")
	p.work("benchmarks", "Working")
	// Its output grows while it runs, in however many steps a busy machine shows it.
	p.Until(`seen.streamed[` + card("benchmarks") + `.getAttribute("aria-labelledby")]?.length > 1`)
	p.Pictures("desktop-3-streaming")
	p.Choose("Stop")
	p.work("benchmarks", "Stopped")

	p.OpenMachines()
	p.Choose("Unpin Auth refactor on bigpc")
	p.Until(`![...document.querySelectorAll("button")].some((e) => e.getAttribute("aria-label") === "Unpin Auth refactor on bigpc")`)
	var stickies struct{ Items []struct{ Server string } }
	until(p.T, "the session to be forgotten", func() bool {
		r.get("/fleet/sticky", &stickies)
		return len(stickies.Items) == 1 && stickies.Items[0].Server == "laptop"
	})
}

// keyboardHangsUp hangs up in the middle and calls again.
func (p *tab) keyboardHangsUp(world *machines.World) {
	p.T.Helper()
	p.says("Run the benchmarks on bigpc again") // the newest card of benchmarks is this one from now on
	p.work("benchmarks", "Working")
	p.Choose("Hang up")
	p.Status("Not in a call")
	p.Until(`!document.querySelector("#status-detail").hidden && document.activeElement.id === "start"`)
	p.Shows("You hung up. Work goes on")
	world.Release("bigpc")
	p.work("benchmarks", "Done")
	p.Press("\r")
	p.Shows("While you were away, ") // what the caller cut off before is told as well
	p.Pictures("desktop-4-back")
}

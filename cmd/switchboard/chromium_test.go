package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"switchboard/sessions/sessionstest"
)

// Lines that a console may hold: Chromium writes one for each answer that is an error and for each request
// that nobody answered.
const (
	noKeyYet = "401"
	nobody   = "net::ERR_" // refused, cut off, closed without a word: that depends on the moment
)

// enter opens the printed link and waits for the machines.
func (p *tab) enter(r *running) {
	p.t.Helper()
	link, err := r.link("")
	if err != nil {
		p.t.Fatal(err)
	}
	p.do(chromedp.Navigate(link))
	p.until(`document.querySelectorAll("#app:not([hidden]) .machine").length > 2`)
	if at := eval[string](p, `location.href + " " + JSON.stringify(history.state) + JSON.stringify({ ...localStorage })`); strings.Contains(at, "login") {
		p.t.Errorf("the code stays: %s", at)
	}
	p.until(`["bigpc", "laptop"].every((m) => document.querySelector("#machine-" + m)?.closest(".machine").querySelector(".pill").textContent === "Ready")`)
}

// TestChromiumByKeyboard plays a newcomer's first call in a real browser over the whole service: WebRTC on
// one side, the simulated voice and machines on the other, and nothing but a keyboard.
func TestChromiumByKeyboard(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) { p.Hurry = 4 })
	p := openTab(t, startChromium(t, true), 1280, 940)
	p.enter(r)
	p.pictures("desktop-1-before")
	p.status("Not in a call")
	p.hasInTree("heading: Switchboard", "region: Conversation", "region: Call", "region: Work", "region: Machines", "log: Transcript",
		"group: Things to say", "textbox: Message", "button: Send", "button: Call", "button: Sound", "button: Simulated", "heading: bigpc", "heading: attic")

	p.choose("Call")
	p.status("Listening")
	p.keyboardMutes()
	p.soundFlows()
	p.keyboardTalks()
	p.keyboardWorks(r)
	p.keyboardHangsUp(r)
	p.soundFlows()
	p.choose("Hang up")
	p.status("Not in a call")
	p.quiet(noKeyYet)
}

// keyboardMutes mutes and unmutes. The focus is where it must be after calling.
func (p *tab) keyboardMutes() {
	p.t.Helper()
	p.until(`seen.micOn() && document.activeElement.id === "mute"`)
	p.press(" ")
	p.status("Muted")
	p.until(`!seen.micOn() && document.querySelector("#mute").getAttribute("aria-pressed") === "true"`)
	p.hasInTree("button: Unmute")
	p.press(" ")
	p.status("Listening")
	p.until(`seen.micOn()`)
}

// keyboardTalks talks by holding Space: what is said before is not heard, what is said meanwhile is.
func (p *tab) keyboardTalks() {
	p.t.Helper()
	p.choose("Sound")
	p.until(`document.querySelector("#sound-menu:popover-open")`)
	p.hasInTree("dialog: Sound", "radio: Open microphone", "radio: Push to talk (hold Space or the button)", "combobox: Microphone")
	p.tabToMode()
	p.press(kb.ArrowDown)
	p.until(`document.querySelector("input[value=hold]").checked`)
	p.press("\x1b")
	p.status("Ready")
	p.until(`!seen.micOn()`)
	eval[bool](p, `(seen.makeSound(true), true)`)
	p.tabTo("Hold to talk")
	p.space(true)
	p.until(`seen.micOn()`)
	p.hasInTree("button: Talking…")
	p.until(`document.querySelector("#status[data-tone=talk] #status-text")?.textContent === "Listening"`)
	p.space(false)
	p.until(`!seen.micOn()`)
	p.shows("I hear that you are speaking")
	eval[bool](p, `(seen.makeSound(false), true)`)
	p.choose("Sound")
	p.tabToMode()
	p.press(kb.ArrowUp)
	p.press("\x1b")
	p.until(`seen.micOn()`)
}

// tabToMode moves the focus to the choice of how to talk.
func (p *tab) tabToMode() {
	p.t.Helper()
	for range 10 {
		if eval[bool](p, `document.activeElement.name === "mode"`) {
			return
		}
		p.press("\t")
	}
	p.t.Fatal("the keyboard does not reach how to talk")
}

// keyboardWorks gives work to machines, answers an approval, stops work and forgets a session.
func (p *tab) keyboardWorks(r *running) {
	p.t.Helper()
	p.says("Continue the auth session on bigpc and run the tests")
	p.work("run the tests", "Done")
	p.until(card("run the tests") + `.querySelector(".answer").textContent.includes("TestRefreshExpiredToken")`)
	p.status("Listening") // when it has been said
	p.says("Fix it")
	p.work("fix it", "Done")
	p.until(card("fix it") + `.querySelector(".card-meta").textContent.includes("continued")`)

	p.status("Listening")
	p.says("On laptop, write the release notes")
	p.until(`!!` + card("release notes")) // a sentence that comes sooner cuts off the voice before it has begun anything
	p.says("Push it from bigpc")
	p.work("push it", "Needs you")
	p.until(`document.title.includes("bigpc asks to run a command")`)
	p.hasInTree("group: bigpc asks to run a command", "button: Allow once", "button: Decline", "heading: bigpc asks to run a command")
	p.until(`document.querySelector(".question-command").textContent.includes("git push origin") && !document.querySelector(".question.settling")`)
	p.pictures("desktop-2-approval")
	p.choose("Allow once")
	p.work("push it", "Done")
	p.until(`!document.querySelector(".question")`)
	p.work("release notes", "Done")

	p.says("Run the benchmarks on bigpc")
	p.work("benchmarks", "Working")
	p.until(card("benchmarks") + `.querySelector(".output")?.textContent.split("\n").length > 3`)
	p.pictures("desktop-3-streaming")
	if shown := eval[[]int](p, `seen.streamed[`+card("benchmarks")+`.getAttribute("aria-labelledby")]`); len(shown) < 3 {
		p.t.Errorf("the output did not stream: %v", shown)
	}
	p.choose("Stop the work")
	p.work("benchmarks", "Stopped")

	p.choose("Forget Auth refactor on bigpc")
	p.until(`![...document.querySelectorAll("button")].some((e) => e.getAttribute("aria-label") === "Forget Auth refactor on bigpc")`)
	var stickies struct{ Items []struct{ Server string } }
	until(p.t, "the session to be forgotten", func() bool {
		r.get("/fleet/sticky", &stickies)
		return len(stickies.Items) == 1 && stickies.Items[0].Server == "laptop"
	})
}

// keyboardHangsUp hangs up in the middle and calls again.
func (p *tab) keyboardHangsUp(r *running) {
	p.t.Helper()
	p.says("Run the benchmarks on laptop") // the newest card of benchmarks is this one from now on
	p.work("benchmarks", "Working")
	p.choose("Hang up")
	p.status("Not in a call")
	p.until(`!document.querySelector("#status-detail").hidden && document.activeElement.id === "start"`)
	p.shows("You hung up. Work goes on")
	p.work("benchmarks", "Done")
	p.press("\r")
	p.shows("While you were away, ") // what the caller cut off before is told as well
	p.pictures("desktop-4-back")
}

// TestChromiumOutlivesRestart holds that the page goes on with a service that was started again in the same
// place: logged in, with the session in use, and with events.
func TestChromiumOutlivesRestart(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	at := fmt.Sprintf("127.0.0.1:%d", sessionstest.FreePort(t))
	again := func(p *plan) { p.Hurry, p.StateDir, p.Listen = 8, state, at }
	r := start(t, again)
	p := openTab(t, startChromium(t, true), 1280, 900)
	p.enter(r)
	p.says("Run the tests on laptop")
	p.work("run the tests", "Done")
	p.shows("Session: Run the tests")
	r.allHeard() // else it is told again
	p.choose("Hang up")
	p.status("Not in a call")

	r.stop()
	p.shows("The connection to Switchboard is lost.")
	r = start(t, again)
	p.until(`document.querySelector("#banner").textContent === ""`)
	p.until(`document.querySelector("#machine-laptop").closest(".machine").querySelector(".pill").textContent === "Ready"`)
	p.shows("Session: Run the tests")
	p.until(`!document.querySelector("#login").checkVisibility()`)
	p.says("Run the tests on bigpc")
	p.until(`document.querySelectorAll(".line.you").length === 2`)
	p.until(`document.querySelectorAll(".card").length === 2 && [...document.querySelectorAll(".card .pill")].every((s) => s.textContent === "Done")`)

	// A call ends with the service, and says so; the next one is fine.
	r.stop()
	p.shows("Switchboard is shutting down. Call again when you like.")
	p.status("Not in a call")
	r = start(t, again)
	p.until(`document.querySelector("#banner").textContent === ""`)
	p.choose("Call")
	p.status("Listening")
	p.soundFlows()
	p.choose("Hang up")
	p.status("Not in a call")
	p.do(chromedp.Navigate(r.base))
	p.until(`document.querySelector("#app:not([hidden]) .sticky")`)
	p.quiet(noKeyYet, nobody)
}

// TestChromiumWithoutMicrophone holds that who refuses the microphone calls all the same, by text.
func TestChromiumWithoutMicrophone(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) { p.Hurry = 8 })
	p := openTab(t, startChromium(t, false), 1280, 900)
	p.enter(r)
	p.choose("Call")
	p.shows("Microphone off: this page may not use it. Allow it in the address bar.")
	p.says("Run the tests on laptop")
	p.work("run the tests", "Done")
	p.until(`[...document.querySelectorAll(".line.voice")].at(-1)?.textContent.includes("pass")`)
	p.until(`seen.packets().then((n) => n.received > 10)`) // the voice is heard
	p.choose("Hang up")
	p.status("Not in a call")
	p.quiet(noKeyYet)
}

// TestChromiumOnAPhone plays the story with a finger at 390 pixels.
func TestChromiumOnAPhone(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) { p.Hurry = 4 })
	p := openTab(t, startChromium(t, true), 390, 844)
	p.enter(r)
	p.pictures("phone-1-before")
	p.tap("Call")
	p.status("Listening")
	p.soundFlows()
	p.chip("Continue the auth session on bigpc and run the tests")
	p.work("run the tests", "Done")
	p.chip("On laptop, write the release notes")
	p.chip("Push it from bigpc")
	p.shows("bigpc asks to run a command")
	p.work("release notes", "Done") // its end moves the question, and what moves takes no tap
	p.pictures("phone-2-talk")
	p.tap("Look")
	p.pictures("phone-3-work")
	p.tap("Allow once")
	p.work("push it", "Done")
	eval[bool](p, `(document.querySelector("[data-go=fleet]").click(), true)`)
	p.shows("Session: Auth refactor")
	p.pictures("phone-4-machines")
	if wide := eval[float64](p, `Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) - innerWidth`); wide > 0 {
		t.Errorf("%v pixels too wide", wide)
	}
	p.tap("Hang up")
	p.status("Not in a call")
	p.quiet(noKeyYet)
}

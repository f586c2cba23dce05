package web

import (
	"strings"
	"testing"

	"switchboard/handoff"
)

// The palette leads anywhere: to work, machines, sessions and commands, by a few letters.
func TestPagePalette(t *testing.T) {
	t.Parallel()
	w := newScene()
	p := loggedIn(t, w, 1280, 800, nil)
	open := func(words string) {
		t.Helper()
		eval[bool](p, `document.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true, bubbles: true }))`)
		p.Until(`document.querySelector("#palette").open && document.activeElement.id === "palette-field"`)
		p.Press(words)
		p.Until(`document.querySelectorAll("#palette-list li").length > 0`)
	}
	open("run the tests")
	p.Until(`document.querySelectorAll("#palette-list li").length === 1`)
	p.Scheme("light")
	p.look("palette")
	p.axe("palette")
	p.Press("\r")
	p.Until(`document.activeElement.id === "card-h3" && location.hash === "#work/h3"`)
	open("machine mini")
	p.Press("\r")
	p.Until(`document.activeElement === document.querySelector("#machine-mini").closest(".machine")`)
	open("rate limits")
	p.Press("\r")
	p.Shows("Show earlier lines (31 or more)")
	p.Press("\x1b")
	open("settings")
	p.Press("\r")
	p.Until(`document.body.dataset.area === "settings"`)
	p.quiet()
}

// Each piece of work and each session has an address that leads to it, also in a new window.
func TestPageAddresses(t *testing.T) {
	t.Parallel()
	w := newScene()
	_, base := serve(t, w, nil)
	p := openTab(t, startChromium(t, true), 390, 844)
	p.loggedIn(base)
	eval[bool](p, `(document.querySelector("[data-go=work]").click(), true)`)
	p.openLine("h3")
	p.Until(`location.hash === "#work/h3"`)
	p.open(base + "/?again#work/h3")
	p.Until(cardOf("h3") + `.querySelector(".card-body").checkVisibility() && document.activeElement.id === "card-h3"`)
	p.open(base + "/?again#sessions/bigpc/t-auth")
	p.Until(`document.querySelector("#reader").open`)
	p.Shows("One test fails: a token that has expired")
	p.Press("\x1b")
	p.Until(`location.hash === "#sessions"`)
	p.open(base + "/?again#work/gone")
	p.Shows("That work is no longer listed.")
	p.quiet()
}

// J and K go through the work; A and D go to Allow and Decline, and only Enter presses them.
func TestPageKeysGoThroughTheWork(t *testing.T) {
	t.Parallel()
	w := newScene()
	p := loggedIn(t, w, 1280, 800, nil)
	p.Until(`document.querySelector(".question:not(.settling)")`)
	p.Press("j", "j")
	p.Until(`document.activeElement === document.querySelectorAll("#work .line-open")[1]`)
	p.Press("k")
	p.Until(`document.activeElement === document.querySelectorAll("#work .line-open")[0]`)
	p.Press("a")
	p.Until(`document.activeElement.dataset.decision === "accept"`)
	p.Press("d")
	p.Until(`document.activeElement.dataset.decision === "decline"`)
	if strings.Contains(strings.Join(w.log(), ";"), "decide") {
		t.Error("a letter alone decided")
	}
	p.Press("\r")
	w.logged(t, "decide owner q1 decline")
	p.quiet()
}

// Where typed words go is chosen and seen beside the box, and holds for those words.
func TestPageChoosesWhereWordsGo(t *testing.T) {
	t.Parallel()
	_, p := openCall(t, true)
	p.Until(`[...document.querySelectorAll("#say-to option")].map((o) => o.textContent).join("; ") ===
	  "the machine I name; bigpc, in auth refactor; bigpc, in a new session; laptop, in release notes; laptop, in a new session; mini, in a new session"`)
	eval[bool](p, `(document.querySelector("#say-to").value = "new laptop", true)`)
	p.types("run the tests")
	p.Until(`far.events.some((e) => e.item?.content[0].text === "In a new session on laptop, run the tests")`)
	p.Until(`document.querySelector("#say-to").value === ""`)
	p.quiet()
}

// What is said in a call is seen live in another window of the browser, which tells nothing of it.
func TestPageShowsACallElsewhere(t *testing.T) {
	t.Parallel()
	w, p := openCall(t, true)
	eval[bool](p, `(window.other = window.open(location.href), true)`)
	p.Until(`other.document.querySelector("#app:not([hidden]) .machine")`)
	p.types("Hello there.")
	p.Until(`far.channel?.readyState === "open" && far.events.length > 1`)
	eval[bool](p, `(far.say({ type: "conversation.item.added", item: far.events.find((e) => e.item).item }), far.say({ type: "response.output_text.done", item_id: "a1", text: "Good day." }), true)`)
	p.Until(`[...other.document.querySelectorAll(".line-text")].map((e) => e.textContent).join(" ") === "Hello there. Good day."`)
	p.Until(`other.document.querySelector("#status-text").textContent === "Not in a call"`)
	w.hears(t, 2)
	eval[bool](p, `(other.close(), true)`)
	p.quiet()
}

// Sound that could not be understood is one line of the status, and none of the conversation. A machine of the demo
// that is down alarms nobody before somebody wanted it.
func TestPageStaysCalm(t *testing.T) {
	t.Parallel()
	w, p := openCall(t, true)
	p.Click("Call")
	p.Until(`far.channel?.readyState === "open"`)
	eval[bool](p, `([{ type: "conversation.item.added", item: { id: "u1", type: "message", role: "user", content: [{ type: "input_audio" }] } },
	  { type: "conversation.item.input_audio_transcription.failed", item_id: "u1" }].forEach(far.say), true)`)
	p.Until(`document.querySelector("#status-detail").textContent === "That could not be understood; say it again."`)
	if eval[bool](p, `Boolean(document.querySelector(".line.you"))`) {
		t.Error("it left a bubble")
	}
	w.change(func(w *world) {
		for i, r := range w.records {
			if r.Server == "mini" {
				w.records[i].Server = "laptop"
			}
		}
		w.records[len(w.records)-1].Outcome = handoff.OutcomeResult
	})
	p.open(p.base() + "/?again")
	p.Until(`document.querySelectorAll(".card").length === 4 && document.querySelector("#needs").hidden`)
}

// base is where the page is.
func (p *tab) base() string { return eval[string](p, `location.origin`) }

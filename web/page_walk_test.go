package web

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"switchboard/handoff"
)

// where describes what has the keyboard: its name, and what is wrong with it there. Names are unique by their place.
const where = `(() => {
  const e = document.activeElement;
  if (!e || e === document.body) return { at: "", wrong: "" };
  const again = walked.includes(e) || !walked.push(e);
  const name = e.getAttribute("aria-label") || document.getElementById(e.getAttribute("aria-labelledby"))?.textContent || e.labels?.[0]?.textContent || e.textContent || e.id;
  const r = e.getBoundingClientRect(), style = getComputedStyle(e), wrong = [];
  let [top, bottom] = [Math.max(0, r.top), Math.min(innerHeight, r.bottom)];
  const box = e.parentElement.closest(".scroll, .toasts, dialog, [popover], .chips, .reader-lines")?.getBoundingClientRect();
  if (box) [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
  if (bottom - top < Math.min(16, r.height / 2) || r.right < 4 || r.left > innerWidth - 4) wrong.push("is out of sight");
  if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) wrong.push("shows no focus");
  if (!name.trim()) wrong.push("has no name");
  return { at: name.trim().replace(/\s+/g, " ").slice(0, 60) + " <" + e.tagName.toLowerCase() + ">", wrong: wrong.join(", "), again };
})()`

type place struct {
	At, Wrong string
	Again     bool // it was there before
}

// walk goes through all that the keyboard reaches, once around, and holds each to a focus that is seen.
func (p *tab) walk(name string) []string {
	p.T.Helper()
	eval[bool](p, `((document.querySelector("#login").checkVisibility() ? document.querySelector("#login-key") : document.querySelector("#badge")).focus(), window.walked = [], true)`) // the first that can have it
	var names []string
	for range 150 {
		if len(names) > 0 {
			p.Press("\t")
		}
		at := eval[place](p, where)
		if at.At == "" { // the browser's own controls; after them it begins anew
			p.Press("\t")
			at = eval[place](p, where)
			at.Again = true
		}
		if at.Again {
			if at.At != names[0] || at.Wrong != "" {
				p.T.Errorf("%s: after all it comes to %s %s", name, at.At, at.Wrong)
			}
			return names
		}
		names = append(names, at.At)
		if at.Wrong != "" && len(names) > 1 { // the first was not reached by a key; it is at the end
			p.T.Errorf("%s: %s %s", name, at.At, at.Wrong)
		}
	}
	p.T.Errorf("%s: the keyboard comes to no end: %q", name, names)
	return names
}

// The keyboard reaches everything in every state of the page, and is seen where it is: on a phone each place by itself,
// and wide, where the conversation, the work and the machines are one.
func TestPageKeyboardWalk(t *testing.T) {
	t.Parallel()
	w := newScene()
	questions, records := w.questions, w.records
	w.questions, w.records = nil, nil
	_, base := serve(t, w, withVoice)
	p := openTab(t, startChromium(t, true), 390, 844)
	p.Scheme("light")
	p.open(base)
	p.Shows("Or enter the code")
	p.reaches("login", "Code or key <input>", "Open <button>")
	p.loggedIn(base)
	p.reaches("empty", "Transcript <div>", "Fix it.Lands in the same session <button>", "Message <textarea>", "Send <button>", "Call <button>", "Sound <button>")
	eval[bool](p, `reached("store.js").then(({ dispatch }) => (dispatch({ type: "call", patch: { phase: "connecting", mic: "on" } }), true))`)
	p.Status("Connecting…")
	p.reaches("connecting", "Mute <button>", "Cancel <button>", "Sound <button>")
	w.change(func(w *world) { w.questions, w.records = questions, records })
	p.loggedInAgain(base)
	p.talk(sceneTalk)
	call := []string{"Stop talking <button>", "Hang up <button>"}
	p.reaches("call", call...)
	eval[bool](p, `(document.querySelector("[data-go=work]").click(), true)`)
	p.Until(`document.querySelector(".question:not(.settling)")`)
	eval[bool](p, `([...document.querySelectorAll(".card details:not([open]) > summary")].forEach((s) => s.click()), document.querySelector(".card.over .line-peek").click(), true)`)
	p.Until(`document.querySelector(".card.over:not(.folded) .card-foot")`)
	work := []string{
		"Stop all (2): all work <button>", "Allow once <button>", "Allow for this session <button>", "Decline <button>", "Stop the work <button>",
		"Do it again: Run the tests. on bigpc <button>",
	}
	p.reaches("work", work...)
	p.OpenMachines()
	for area, its := range map[string]string{"fleet": "Recent sessions: bigpc", "sessions": "New session", "history": "Save as JSON", "settings": "Log out here", "help": "Clients"} {
		eval[bool](p, fmt.Sprintf(`(document.querySelector("[data-go=%s]").click(), true)`, area))
		p.Until(`document.querySelector("#` + area + `").checkVisibility() && (document.body.dataset.area !== "help" || document.querySelector(".help-text h3, .help-text h4"))`)
		p.reaches(area, "Hang up <button>", its+" <button>")
	}
	p.Size(1280, 800)
	eval[bool](p, `(document.querySelector("[data-go=talk]").click(), true)`)
	p.reaches("wide", slices.Concat(call, work, []string{"Recent sessions: bigpc <button>"})...)
}

// loggedInAgain loads the page anew.
func (p *tab) loggedInAgain(base string) {
	p.T.Helper()
	eval[bool](p, `reached("store.js").then(({ dispatch }) => (dispatch({ type: "call", patch: { phase: "idle" } }), true))`)
	p.Do(chromedp.Navigate("about:blank"))
	p.open(base)
	p.Until(`document.querySelector("#app:not([hidden]) .machine") && document.querySelector(".card")`)
}

// reaches walks a state and holds that these are met, in this order.
func (p *tab) reaches(state string, want ...string) {
	p.T.Helper()
	names := p.walk(state)
	i := 0
	for _, name := range names {
		if i < len(want) && name == want[i] {
			i++
		}
	}
	if i < len(want) {
		p.T.Errorf("%s: the keyboard does not reach %q: %q", state, want[i], names)
	}
}

// at waits until the keyboard is at what an expression finds, where it is seen.
func (p *tab) at(found string) {
	p.T.Helper()
	p.Until(`document.activeElement === ` + found + ` && document.activeElement.checkVisibility()`)
}

// Escape closes what was opened, and the keyboard is back where it opened it. J and K go through the work; A and D go
// to Allow and Decline, and only Enter presses them.
func TestPageKeys(t *testing.T) {
	t.Parallel()
	w := newScene()
	p := loggedIn(t, w, 1280, 800, withVoice)
	p.talk(sceneTalk)
	for _, o := range []struct{ opener, opened string }{
		{`document.querySelector("#badge")`, "#simulated"}, {`document.querySelector("#sound")`, "#sound-menu"}, {`document.querySelector("#call-time")`, "#call-sheet"}, {`document.querySelector("#more-open")`, "#more"},
	} {
		if o.opened == "#more" {
			p.Size(390, 844)
		}
		eval[bool](p, `(`+o.opener+`.focus(), true)`)
		p.Press("\r")
		p.Until(`document.querySelector("` + o.opened + `").matches(":popover-open")`)
		p.Press("\t\x1b")
		p.Until(`!document.querySelector("` + o.opened + `").matches(":popover-open")`)
		p.at(o.opener)
	}
	p.Size(1280, 800)
	eval[bool](p, `(document.querySelector("#sound").focus(), true)`)
	p.Press("?")
	p.Until(`document.querySelector("#keys-sheet").open`)
	p.Press("\x1b")
	p.Until(`!document.querySelector("#keys-sheet").open`)
	p.at(`document.querySelector("#sound")`)
	p.OpenMachines()
	p.Click("Recent sessions")
	p.Shows("auth-refactor")
	eval[bool](p, `(document.querySelector(".session").focus(), true)`)
	p.Press("\r")
	p.Shows("Show earlier lines (31 or more)")
	p.Press("\x1b")
	p.Until(`!document.querySelector("#reader").open`)
	p.at(`document.querySelector(".session")`)
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

// The keyboard keeps its place when a list changes under it: on the same control where that stays, near it where it
// goes; never at the top of the page, and never on another button that the next key would press.
func TestPageListsKeepTheKeyboard(t *testing.T) {
	t.Parallel()
	w := newScene()
	p := loggedIn(t, w, 1280, 800, withVoice)
	p.Until(`document.querySelector(".question:not(.settling)")`)
	w.mu.Lock()
	question, record := w.questions[0], w.records[0]
	w.mu.Unlock()
	// A question that goes.
	eval[bool](p, `(document.querySelector(".question button").focus(), true)`)
	w.feed("owner").Publish(handoff.PageEvent{Kind: "closed", Closed: question.ID})
	p.Until(`!document.querySelector(".question")`)
	p.at(`document.querySelector("#work-title")`)
	// Work that ends: its card goes from one list to another.
	eval[bool](p, `([...document.querySelectorAll(".card:not(.over) .card-foot button")].find((b) => b.checkVisibility()).focus(), true)`)
	record.State, record.Outcome, record.EndedAt = handoff.StatusCompleted, handoff.OutcomeResult, new(time.Now())
	before := eval[int](p, `document.querySelectorAll(".card:not(.over)").length`)
	w.feed("owner").Publish(handoff.PageEvent{Kind: "handoff", Record: &record})
	p.Until(fmt.Sprintf(`document.querySelectorAll(".card:not(.over)").length === %d`, before-1))
	p.Until(`document.querySelector("#work").contains(document.activeElement)`)
	// A message that is put away: back to where the keyboard came from, or to the page's main part.
	eval[bool](p, `(document.querySelector("#sound").focus(), reached("store.js").then(({ toast }) => (["Something.", "More."].forEach((text) => toast(text, { action: { label: "Do it", run() {} } })), true)))`) // one with a deed stays
	p.Until(`document.querySelector(".toast-text")?.textContent === "More."`)
	eval[bool](p, `(document.querySelector(".toast [aria-label=Dismiss]").focus(), true)`)
	p.Press("\r")
	p.Until(`!document.querySelector(".toast")`)
	p.at(`document.querySelector("#sound")`)
	// A session that leaves the list.
	p.Click("Sessions")
	p.Until(`document.querySelectorAll("#sessions .row").length === 2`)
	eval[bool](p, `([...document.querySelectorAll("#sessions .row button")].find((b) => b.textContent === "Archive").focus(), true)`)
	p.Press("\r")
	p.Until(`document.querySelectorAll("#sessions .row").length === 1`)
	p.Until(`document.querySelector("#sessions").contains(document.activeElement)`)
	p.quiet()
}

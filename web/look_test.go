package web

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"switchboard/handoff"
)

// contrast lists texts whose contrast to what is behind them is below 4.5 (3 for large ones).
const contrast = `(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgba = (css) => { if (!known.has(css)) known.set(css, read(css)); return known.get(css); };
  const read = (css) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data].map((v, i) => i === 3 ? v / 255 : v); };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = ([r, g, b]) => { const f = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const back = (el) => { const stack = []; for (let e = el; e; e = e.parentElement) stack.push(rgba(getComputedStyle(e).backgroundColor)); return stack.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]); };
  const bad = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const el = walk.currentNode.parentElement, text = walk.currentNode.textContent.trim();
    if (!text || !el.checkVisibility() || el.closest(".sr, noscript, option, [aria-disabled=true]")) continue;
    const style = getComputedStyle(el), behind = back(el);
    const a = light(over(rgba(style.color), behind)), b = light(behind);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const large = parseFloat(style.fontSize) >= 24;
    if (ratio < (large ? 3 : 4.5)) bad.push(text.slice(0, 40) + " " + ratio.toFixed(2) + " ." + el.className);
  }
  return bad;
})()`

// tooSmall lists what is pressed by finger and is smaller than 24 by 24.
const tooSmall = `[...document.querySelectorAll("button, summary, input, select, textarea")].filter((e) => e.checkVisibility())
  .map((e) => [e, e.getBoundingClientRect()]).filter(([e, r]) => (r.width < 24 || r.height < 24) && !["radio", "checkbox"].includes(e.type))
  .map(([e, r]) => (e.getAttribute("aria-label") || e.textContent) + " " + r.width + "x" + r.height)`

// torn lists words of headings, buttons and tables that are broken in two.
const torn = `(() => {
  const bad = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const el = walk.currentNode.parentElement.closest("h1, h2, h3, button, summary, .pill, th, td");
    if (!el?.checkVisibility() || getComputedStyle(el).clipPath !== "none") continue; // for the ear alone
    for (const { 0: word, index } of walk.currentNode.data.matchAll(/[\p{L}\p{N}]+/gu)) {
      const range = new Range();
      range.setStart(walk.currentNode, index);
      range.setEnd(walk.currentNode, index + word.length);
      if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) bad.push(word);
    }
  }
  return bad;
})()`

// talk plays a conversation into the page's state, as if a call were live.
func (p *tab) talk(events string) {
	p.T.Helper()
	eval[bool](p, fmt.Sprintf(`reached("store.js").then(({ dispatch }) => {
	  dispatch({ type: "call", patch: { phase: "live", mic: "on", telephone: true } });
	  for (const event of %s) dispatch({ type: "voice", event });
	  return true;
	})`, events))
	p.Until(`document.querySelectorAll(".line").length > 0`)
}

// TestPageLooks holds every layout, light and dark, to readable contrast, no sideways scrolling and
// controls in reach; its pictures can be kept.
func TestPageLooks(t *testing.T) {
	t.Parallel()
	w := newScene()
	w.questions = append(w.questions, inWords("q2", handoff.Ask{Text: "Which version are the release notes for?", Options: []string{"2.4", "2.4.1", "2.5"}}),
		inWords("q3", handoff.Ask{Text: "Which server?", Options: []string{"staging", "production"}}, handoff.Ask{Text: "Its password?", Secret: true}),
		handoff.RecordQuestion{
			ID: "q4", Handoff: "h1", Server: "bigpc", Title: "auth refactor", Kind: handoff.QuestionCommand, Text: "May it?", Command: "terraform apply -auto-approve", Person: true, Tap: handoff.WhyPerson, Risk: "high",
			Cwd: "/home/me/src/api", Decisions: []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline, handoff.DecisionStop}, Asked: w.questions[0].Asked.Add(-time.Minute),
		},
		handoff.RecordQuestion{
			ID: "copy:h1", Handoff: "h1", Server: "laptop", Title: "release notes", Kind: handoff.QuestionCopy, Text: "May a copy of the session release notes be made on laptop, to go on there?",
			Reason: "It is open in another program on that machine.", Decisions: []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline}, Voice: true, Asked: w.questions[0].Asked.Add(time.Minute),
		})
	_, base := serve(t, w, sceneOfSeveral)
	browser := startChromium(t, true)
	for _, size := range []struct {
		name          string
		width, height int64
		scheme        string // both where the page is wide, and where it is a phone's
	}{
		{"desktop", 1280, 800, "dark"}, {"tablet", 900, 1100, "light"}, {"narrow", 320, 640, "dark"}, {"landscape", 844, 390, "light"},
	} {
		t.Run(size.name, func(t *testing.T) {
			p := openTab(t, browser, size.width, size.height)
			p.Scheme(size.scheme)
			p.open(base)
			p.Shows("Or enter the code")
			p.look(size.name + "-login")
			p.loggedIn(base)
			p.Until(`document.querySelectorAll(".card").length === 4`)
			p.look(size.name + "-idle")
			p.talk(sceneTalk)
			for _, area := range []string{"talk", "work", "fleet"} {
				eval[bool](p, fmt.Sprintf(`(document.querySelector("[data-go=%s]").click(), true)`, area))
				p.look(size.name + "-" + area)
				if size.width > 760 {
					break
				}
			}
			eval[bool](p, `(document.querySelector("[data-go=work]").click(), document.querySelectorAll(".question")[2].scrollIntoView(), true)`)
			p.look(size.name + "-questions")
			eval[bool](p, `(document.querySelector(".work .scroll").scrollTo(0, 1e6), true)`)
			eval[bool](p, `reached("store.js").then(({ toast }) => (toast("laptop has too much to do right now.", { next: "Try again in a moment; nothing was started." }), true))`)
			p.Shows("Try again in a moment")
			eval[bool](p, `document.querySelector(".toast").dispatchEvent(new Event("pointerenter"))`) // it stays while somebody points at it
			p.look(size.name + "-end")
			p.Click("Dismiss")
			p.Click("Simulated")
			p.Shows("What is simulated")
			p.look(size.name + "-simulated")
			p.Press("\x1b")
			eval[bool](p, `(document.querySelector("[data-go=talk]").click(), true)`)
			p.Hit(`document.querySelector("#sound")`)
			p.Hit(`document.querySelector("input[value=hold]")`)
			p.Press("\x1b")
			p.Until(`document.querySelector("#hold").checkVisibility()`)
			p.look(size.name + "-hold")
			eval[bool](p, `(document.querySelector("[data-go=fleet]").click(), true)`)
			p.Until(`(document.querySelector("#instances").scrollIntoView(), document.querySelector("#instances").getBoundingClientRect().top < innerHeight - 80)`)
			p.look(size.name + "-instances")
			p.OpenMachines()
			p.Click("Recent sessions")
			p.Shows("auth-refactor")
			eval[bool](p, `(document.querySelector("[data-go=talk]").click(), true)`)
			p.Click("Sound")
			p.Until(`document.querySelector("#sound-menu:popover-open")`)
			p.look(size.name + "-sound")
			p.Click("Close")
			eval[bool](p, `(document.querySelector(".session").click(), true)`)
			p.Shows("Show earlier lines (31 or more)")
			p.look(size.name + "-reader")
			if size.scheme == "dark" { // TestPageAxe goes there in the light
				p.Click("Close")
				p.inPlaces(func(place string) { p.look(size.name + "-" + place) }, "sessions", "history", "settings", "help")
				p.Hit(`document.querySelector("#call-time")`)
				p.Until(`document.querySelector("[popover]:popover-open")`)
				p.look(size.name + "-call")
			}
		})
	}
}

// look checks what is on the screen now and takes its picture.
func (p *tab) look(name string) {
	p.T.Helper()
	p.Picture(name)
	if wide := eval[float64](p, `Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) - innerWidth`); wide > 0 {
		p.T.Errorf("%s: %v pixels too wide", name, wide)
	}
	if tall := eval[float64](p, `document.documentElement.scrollHeight - innerHeight`); tall > 0 {
		p.T.Errorf("%s: the whole page scrolls by %v", name, tall)
	}
	if bad := eval[[]string](p, contrast); len(bad) > 0 {
		p.T.Errorf("%s: too little contrast: %q", name, bad)
	}
	if bad := eval[[]string](p, torn); len(bad) > 0 {
		p.T.Errorf("%s: torn words: %q", name, bad)
	}
	if bad := eval[[]string](p, tooSmall); len(bad) > 0 {
		p.T.Errorf("%s: too small to press: %q", name, bad)
	}
	if cut := eval[[]string](p, `[...document.querySelectorAll("[popover]:popover-open, dialog[open]")].filter((e) => e.getBoundingClientRect().top < 0 || e.getBoundingClientRect().bottom > innerHeight).map((e) => e.id)`); len(cut) > 0 {
		p.T.Errorf("%s: higher than the window: %q", name, cut)
	}
	hidden := eval[json.RawMessage](p, `[...document.querySelectorAll("#app:not([hidden]) .controls button")].filter((b) => !b.hidden && !(b.id === "sound" && document.body.dataset.area !== "talk" && !b.checkVisibility())) // which is the conversation's on a phone
	  .map((b) => [b.textContent, b.getBoundingClientRect()]).filter(([, r]) => r.top < 0 || r.bottom > innerHeight || r.left < 0 || r.right > innerWidth || !r.width).map(([text]) => text)`)
	if string(hidden) != "[]" {
		p.T.Errorf("%s: out of reach: %s", name, hidden)
	}
}

package web

import (
	"fmt"
	"testing"
)

// covered lists what a message lies over of what is pressed or read in a hurry. A box that scrolls cuts what it holds.
const covered = `(() => {
  const seen = (e) => {
    let { left, top, right, bottom } = e.getBoundingClientRect();
    const box = e.closest(".scroll, .toasts")?.getBoundingClientRect();
    if (box) [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
    return { left, top, right, bottom };
  };
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const bad = [], toasts = [...document.querySelectorAll(".toast")].filter((t) => t.checkVisibility());
  if (!toasts.length) bad.push("no message is shown");
  for (const b of document.querySelectorAll(".toast button")) if (b.checkVisibility() && seen(b).bottom < b.getBoundingClientRect().bottom) bad.push(b.textContent + " is cut");
  for (const t of toasts.map(seen)) {
    if (t.left < 0 || t.top < 0 || t.right > innerWidth || t.bottom > innerHeight) bad.push("a message is out of sight");
    for (const e of document.querySelectorAll(".tabs, .places, .question, .composer, .attention-box, .controls, .machine button, .wide button, .card button")) if (e.checkVisibility() && seen(e).bottom > seen(e).top && meet(t, seen(e))) bad.push(e.className);
  }
  return bad.join();
})()`

// A message never covers the tabs, a question, the text box or the call's controls, at any size. On a screen that is
// wide and low, the machines have the height that work has: one place shows the one or the other.
func TestPageToastsCoverNothing(t *testing.T) {
	t.Parallel()
	w := newScene()
	p := loggedIn(t, w, 1440, 900, withVoice)
	p.Until(`document.querySelector(".question:not(.settling)")`)
	p.talk(sceneTalk)
	eval[bool](p, `reached("store.js").then(({ toast }) => {
	  toast("laptop has too much to do right now.", { next: "Try again in a moment; nothing was started.", stays: true, action: { label: "Try again", run() {} } });
	  toast("You are in a call in another window or on another device.", { next: "Two at once would talk over each other.", tone: "info", stays: true, action: { label: "Move the call here", run() {} } });
	  return true;
	})`)
	p.Until(`document.querySelectorAll(".toast").length === 2`)
	p.Scheme("light")
	for _, size := range [][2]int64{{390, 844}, {320, 640}, {844, 390}, {1024, 700}, {900, 1100}, {1440, 900}} {
		p.Size(size[0], size[1])
		for _, area := range []string{"talk", "work", "fleet", "sessions", "settings"} {
			eval[bool](p, fmt.Sprintf(`(document.querySelector("[data-go=%s]").click(), `+frames+`)`, area))
			if got := eval[string](p, covered); got != "" {
				t.Errorf("%v, %s: %s", size, area, got)
			}
			p.Picture(fmt.Sprintf("toasts-%d-%s", size[0], area))
		}
	}
	p.Click("Dismiss")
	p.Click("Dismiss")
	p.Size(1024, 700)
	p.Click("Machines")
	p.Until(
		`document.querySelector("#fleet .scroll").clientHeight > 480 && !document.querySelector("#work").checkVisibility()`,
	)
	p.Until(`[...document.querySelectorAll(".places [aria-current]")].map((b) => b.textContent).join() === "Machines"`)
	p.look("low-machines")
	p.Hit(`document.querySelector("[data-go=home]")`)
	p.Until(
		`document.querySelector(".work .scroll").clientHeight > 480 && !document.querySelector("#fleet").checkVisibility()`,
	)
	p.Until(
		`[...document.querySelectorAll(".places [aria-current]")].map((b) => b.firstChild.textContent).join() === "Now"`,
	)
	p.look("low-work")
}

// A message is one line that the next one replaces. One with something to press leaves by itself, too, and Escape takes
// it away; one that waits for an answer is there again after it. All of this is so where the browser keeps nothing of
// the page.
func TestPageToastsLeave(t *testing.T) {
	t.Parallel()
	w := newWorld()
	_, base := serve(t, w, nil)
	p := openTab(t, startChromium(t, true), 1280, 800)
	p.Do(atFirst(`for (const storage of ["localStorage", "sessionStorage"]) Object.defineProperty(window, storage, { get() { throw new DOMException("Access is denied for this document.", "SecurityError"); } })`))
	p.Do(
		atFirst(
			`window.late = []; ((real) => { window.setTimeout = (f, ms, ...rest) => (ms === 20000 ? late.push(f) : real(f, ms, ...rest)); })(window.setTimeout)`,
		),
	)
	p.loggedIn(base)
	eval[bool](
		p,
		`reached("store.js").then(({ toast }) => (["Put away.", "Archived."].forEach((text) => toast(text, { action: { label: "Undo", run() {} } })), true))`,
	)
	p.Until(`[...document.querySelectorAll(".toast-text")].map((e) => e.textContent).join() === "Archived."`) // one line, which replaces itself
	p.Press("\x1b")
	p.Until(`!document.querySelector(".toast")`)
	eval[bool](p, `reached("store.js").then(({ toast }) => (toast("Go on?", { stays: true }), toast("Put away.", { action: { label: "Undo", run() {} } }), true))`)
	p.Until(`[...document.querySelectorAll(".toast")].filter((e) => e.checkVisibility()).map((e) => e.querySelector(".toast-text").textContent).join() === "Put away."`)
	eval[bool](p, `(late.at(-1)(), true)`)
	p.Until(`[...document.querySelectorAll(".toast")].filter((e) => e.checkVisibility()).map((e) => e.querySelector(".toast-text").textContent).join() === "Go on?"`) // what waits for an answer is there again
	p.quiet()
}

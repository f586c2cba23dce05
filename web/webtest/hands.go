package webtest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// named is a JavaScript function that returns the accessible name of a control.
const named = `((e) => (e.getAttribute("aria-label") || e.textContent || "").trim())`

// control returns a JavaScript expression for the visible control with a name, else the first whose name begins with it
// and a colon: "Stop" finds "Stop: run the tests on bigpc".
func control(name string) string {
	return fmt.Sprintf(
		`((all) => all.find((e) => %[1]s(e) === %[2]q) ?? all.find((e) => %[1]s(e).startsWith(%[2]q + ": ")))(`+
			`[...document.querySelectorAll("button, summary")].filter((e) => e.checkVisibility()))`, named, name,
	)
}

// TabTo presses Tab until a control with this name or id has the focus, at most once around the page.
func (p *Tab) TabTo(name string) {
	p.T.Helper()
	is := fmt.Sprintf(
		`((n) => n === %[2]q || n.startsWith(%[2]q + ": "))(%[1]s(document.activeElement)) || document.activeElement.id === %[2]q`,
		named, name,
	)
	for range 80 {
		if Eval[bool](p, is) {
			return
		}
		p.Press("\t")
	}
	p.T.Fatalf("the keyboard does not reach %q", name)
}

// Choose presses a control by keyboard.
func (p *Tab) Choose(name string) {
	p.T.Helper()
	p.Until(control(name))
	p.TabTo(name)
	p.Press("\r")
}

// OpenMachines opens the rows of all machines.
func (p *Tab) OpenMachines() {
	p.T.Helper()
	p.Until(`document.querySelector(".machine-line")`)
	Eval[bool](p, `(document.querySelectorAll('.machine-line[aria-expanded="false"]').forEach((e) => e.click()), true)`)
}

// Space sends an event of the Space key; again marks the repetition of a key that is held down.
func (p *Tab) Space(typ input.DispatchKeyEventType, again bool) {
	p.T.Helper()
	key := input.DispatchKeyEventParams{Type: typ, Key: " ", Code: "Space", WindowsVirtualKeyCode: 32, AutoRepeat: &again}
	if typ == input.DispatchKeyEventTypeKeyDown {
		key.Text = " "
	}
	p.Do(Call(input.DispatchKeyEvent, key))
}

// Click presses the visible control with this name with a mouse.
func (p *Tab) Click(name string) {
	p.T.Helper()
	p.Hit(control(name))
}

// Hit clicks the element of an expression with a mouse, when it is visible, does not move, can be pressed, and is not
// covered. It fails if the click hits another element, because the element moved away.
func (p *Tab) Hit(found string) {
	p.T.Helper()
	p.Until(`(async (e) => {
	  if (!e?.checkVisibility()) return false;
	  e.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
	  const middle = () => {
	    const { left, top, width, height } = e.getBoundingClientRect();
	    return [left + width / 2, top + height / 2];
	  };
	  const before = middle();
	  await ` + Frames + `; // what slides moves with each frame
	  if (e.closest(".question")) await new Promise((next) => setTimeout(next, 150)); // it may know only then that it moved
	  const seen = (window.webtest ??= {}), at = seen.at = middle();
	  if (String(at) !== String(before) || e.closest(".settling")) return false;
	  if (!e.contains(document.elementFromPoint(...at))) return false;
	  seen.listening?.abort();
	  seen.listening = new AbortController();
	  const missed = seen.missed = [], options = { once: true, capture: true, signal: seen.listening.signal };
	  for (const type of ["pointerdown", "pointerup", "click"]) {
	    addEventListener(type, ({ target: met }) => {
	      if (!e.contains(met)) missed.push(type + " met " + (met.id || met.className || met.tagName));
	    }, options);
	  }
	  return true;
	})(` + found + `)`)
	at := Eval[[]float64](p, `webtest.at`)
	p.Do(chromedp.MouseClickXY(at[0], at[1]))
	if missed := Eval[[]string](p, `window.webtest?.missed ?? []`); len(missed) > 0 { // not if the click left the page
		p.T.Fatalf("%s moved away from under the finger: %s", found, missed)
	}
}

// EnterKey enters a key into the login form and submits it.
func (p *Tab) EnterKey(key string) {
	p.T.Helper()
	p.Until(`document.querySelector("#login-key")?.checkVisibility()`)
	p.Do(chromedp.Focus(chromedp.ID("login-key")))
	p.Paste(key)
	p.Press("\r")
}

// EnterCode enters the code of another device into the login form and submits it.
func (p *Tab) EnterCode(code string) {
	p.T.Helper()
	p.Until(`document.querySelector("#login-key")?.checkVisibility()`)
	p.Do(chromedp.Focus(chromedp.ID("login-key")))
	p.Press(code, "\r")
}

// Status waits until the page shows this state of the call.
func (p *Tab) Status(text string) {
	p.T.Helper()
	p.Until(fmt.Sprintf(`document.querySelector("#status-text").textContent === %q`, text))
}

// Frames is a JavaScript promise that waits until the page was drawn twice, so that changes of its size or state are
// drawn.
const Frames = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`

// Size sets the size of the window, and waits until the page is laid out for it.
func (p *Tab) Size(width, height int64) {
	p.T.Helper()
	p.Do(chromedp.EmulateViewport(width, height))
	p.Until(fmt.Sprintf("innerWidth === %d && innerHeight === %d", width, height))
	Eval[bool](p, Frames)
}

// Pictures takes a picture of the page in dark and in light colours; see [Tab.Picture].
func (p *Tab) Pictures(name string) {
	p.T.Helper()
	if os.Getenv(picturesEnv) == "" {
		return
	}
	for _, scheme := range []string{"dark", "light"} {
		p.Scheme(scheme)
		p.Picture(name + "-" + scheme)
	}
}

// Quiet checks that the console is empty, except for lines with one of these words. Violations of the content security
// policy are written there, too.
func (p *Tab) Quiet(allowed ...string) {
	p.T.Helper()
	for _, line := range p.Console() {
		if !slices.ContainsFunc(allowed, func(words string) bool { return strings.Contains(line, words) }) {
			p.T.Errorf("the console says %q", line)
		}
	}
}

// withNames has the roles of elements that need a name.
var withNames = []string{
	"button", "textbox", "link", "checkbox", "radio", "combobox", "heading", "article", "dialog", "region",
}

// Has waits until the accessibility tree has these lines, see [Tab.Tree], and checks that all elements that need a name
// have one.
func (p *Tab) Has(want ...string) {
	p.T.Helper()
	var lines, missing []string
	for end := time.Now().Add(Patience); ; time.Sleep(50 * time.Millisecond) { // the tree follows the page
		lines = p.Tree()
		missing = slices.DeleteFunc(slices.Clone(want), func(w string) bool { return slices.Contains(lines, w) })
		if len(missing) == 0 {
			break
		}
		if time.Now().After(end) {
			p.T.Fatalf("the accessibility tree has no %q:\n%s", missing, strings.Join(lines, "\n"))
		}
	}
	for _, line := range lines {
		role, name, _ := strings.Cut(line, ": ")
		if slices.Contains(withNames, role) && strings.TrimSpace(name) == "" {
			p.T.Errorf("a %s has no name", role)
		}
	}
}

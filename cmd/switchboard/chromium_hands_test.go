package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// named is the name of a control, as the page's own texts give it.
const named = `((e) => (e.getAttribute("aria-label") || e.textContent || "").trim())`

// space presses the Space key down, or lets go of it.
func (p *tab) space(down bool) {
	p.t.Helper()
	params := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: " ", Code: "Space", WindowsVirtualKeyCode: 32}
	if down {
		params.Type, params.Text = input.DispatchKeyEventTypeKeyDown, " "
	}
	p.do(inPage(input.DispatchKeyEvent, params))
}

// tabTo moves the focus by keyboard to a control with this name, once around the page.
func (p *tab) tabTo(name string) {
	p.t.Helper()
	is := fmt.Sprintf(`(%s(document.activeElement) === %q || document.activeElement.id === %[2]q)`, named, name)
	for range 80 {
		if eval[bool](p, is) {
			return
		}
		p.press("\t")
	}
	p.t.Fatalf("the keyboard does not reach %q", name)
}

// choose moves to a control by keyboard and presses it.
func (p *tab) choose(name string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`[...document.querySelectorAll("button, summary")].some((e) => e.checkVisibility() && %s(e) === %q)`, named, name))
	p.tabTo(name)
	p.press("\r")
}

// says types a sentence into the box and sends it, by keyboard.
func (p *tab) says(text string) {
	p.t.Helper()
	p.tabTo("say")
	p.press(text, "\r")
	p.until(`document.querySelector("#say").value === ""`)
}

// status waits until the call's state is told in these words.
func (p *tab) status(text string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelector("#status-text").textContent === %q`, text))
}

// card is an expression for the newest card of work with this prompt.
func card(prompt string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".card")].find((c) => c.querySelector(".card-prompt").textContent.toLowerCase().includes(%q))`, strings.ToLower(prompt))
}

// work waits until the newest work with this prompt stands where a word says.
func (p *tab) work(prompt, state string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`%s?.querySelector(".pill").textContent === %q`, card(prompt), state))
}

// tap presses the visible button with this name with a finger or a mouse.
func (p *tab) tap(name string) {
	p.t.Helper()
	p.touch(fmt.Sprintf(`[...document.querySelectorAll("button, summary")].find((b) => %s(b) === %q && b.checkVisibility())`, named, name))
}

// chip taps a suggested sentence.
func (p *tab) chip(text string) {
	p.t.Helper()
	p.touch(fmt.Sprintf(`[...document.querySelectorAll(".chip")].find((c) => c.querySelector(".chip-text").textContent === %q && c.checkVisibility())`, text))
}

// touch presses what an expression finds, where it is seen, once it stands still and nothing lies over it. It fails
// where the press met something else: the thing moved away from under the finger.
func (p *tab) touch(found string) {
	p.t.Helper()
	p.until(`((e) => {
	  if (!e) return false;
	  e.scrollIntoView({ block: "nearest", inline: "nearest" });
	  const { left, top, width, height } = e.getBoundingClientRect(), at = [left + width / 2, top + height / 2];
	  const still = String(seen.at) === String(at);
	  seen.at = at;
	  if (!still || e.closest(".settling") || !e.contains(document.elementFromPoint(...at))) return false;
	  seen.hit = [];
	  for (const type of ["pointerdown", "pointerup", "click"]) {
	    addEventListener(type, (met) => { if (!e.contains(met.target)) seen.hit.push(type + " met " + (met.target.id || met.target.className || met.target.tagName)); }, { once: true, capture: true });
	  }
	  return true;
	})(` + found + `)`)
	at := eval[[]float64](p, `seen.at`)
	p.do(chromedp.MouseClickXY(at[0], at[1]))
	if missed := eval[[]string](p, `seen.hit`); len(missed) > 0 {
		p.t.Fatalf("%s moved away from under the finger: %s", found, missed)
	}
}

// hasInTree holds that the accessibility tree has these lines, and a name for all that can be used.
func (p *tab) hasInTree(want ...string) {
	p.t.Helper()
	lines := p.Tree()
	missing := func() []string {
		return slices.DeleteFunc(slices.Clone(want), func(w string) bool { return slices.Contains(lines, w) })
	}
	for end := time.Now().Add(patience); len(missing()) > 0; lines = p.Tree() { // it follows the page a little later
		if time.Now().After(end) {
			p.t.Fatalf("the accessibility tree has no %q:\n%s", missing(), strings.Join(lines, "\n"))
		}
		time.Sleep(50 * time.Millisecond)
	}
	for _, line := range lines {
		role, name, _ := strings.Cut(line, ": ")
		if slices.Contains([]string{"button", "textbox", "link", "checkbox", "radio", "combobox", "heading", "article", "dialog", "region"}, role) && strings.TrimSpace(name) == "" {
			p.t.Errorf("a %s has no name", role)
		}
	}
}

// packets are the RTP packets of a call's sound.
type packets struct{ Sent, Received, Lost int }

// soundFlows holds that sound flows both ways: the microphone's all the time, the voice's when it says
// something.
func (p *tab) soundFlows() {
	p.t.Helper()
	p.until(`seen.connected()`)
	before := eval[packets](p, `seen.packets()`)
	p.says("Which machines do I have?")
	now := before
	for end := time.Now().Add(patience); now.Sent < before.Sent+25 || now.Received < before.Received+25; now = eval[packets](p, `seen.packets()`) {
		if time.Now().After(end) {
			p.t.Fatalf("sound does not flow both ways: %+v, then %+v", before, now)
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.status("Listening") // when it has been said
}

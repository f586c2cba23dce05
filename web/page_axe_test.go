package web

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// axe holds what is on the screen to axe-core's rules; none may be broken.
func (p *tab) axe(name string) {
	p.T.Helper()
	for _, rule := range p.brokenRules() {
		p.T.Errorf("%s: %s", name, rule)
	}
}

// brokenRules are those that what is on the screen breaks.
func (p *tab) brokenRules() []string {
	p.T.Helper()
	if !eval[bool](p, `Boolean(window.axe)`) {
		source, err := os.ReadFile(filepath.Join("..", ".tools", "node_modules", "axe-core", "axe.min.js"))
		if err != nil {
			p.T.Fatalf("axe-core is missing (make tools installs it): %v", err)
		}
		eval[bool](p, `(() => { `+string(source)+`; return true; })()`)
	}
	// What a box has to show is measured by the browser with its next frame.
	return eval[[]string](p, frames+`.then(() => axe.run(document, { resultTypes: ["violations"] })).then((r) => r.violations.map((v) =>
	  v.id + " (" + v.impact + "): " + v.nodes.slice(0, 4).map((n) => n.target.join(" ") + (n.any[0] ? " [" + n.any[0].message + "]" : "")).join("; ")))`)
}

// TestPageAxe runs axe-core over every view, and holds what a screen reader is told: wide, where the conversation, the
// work and the machines are one, and on a phone. In the dark only the colors differ, which TestPageLooks holds.
func TestPageAxe(t *testing.T) {
	t.Parallel()
	w := newScene()
	w.questions[0].Risk = "high"
	w.records[1].Prompt = strings.Repeat("Please change everything. ", 40)
	p := openTab(t, startChromium(t, true), 1280, 800)
	_, base := serve(t, w, sceneOfSeveral)
	p.Scheme("light")
	p.open(base)
	p.Shows("Or enter the code")
	p.axe("login")
	eval[bool](p, `(document.querySelector("h1").append(Object.assign(new Image(), { className: "ill" }),
	  Object.assign(document.createElement("span"), { className: "ill", textContent: "pale", style: "color: #888; background: #999" })), true)`)
	broken := p.brokenRules()
	for _, rule := range []string{"image-alt", "color-contrast"} {
		if !strings.Contains(strings.Join(broken, "\n"), rule) {
			t.Errorf("a pale word and a picture without a name break only %q, not %s", broken, rule)
		}
	}
	p.loggedIn(base)
	p.Until(`document.querySelectorAll(".card").length === 4 && document.querySelector(".question:not(.settling)")`)
	p.talk(sceneTalk)
	p.OpenMachines()
	p.Click("Recent sessions")
	p.Shows("auth-refactor")
	p.axe("wide")
	p.named()
	for _, opener := range []string{"sound", "badge", "call-time"} {
		p.Hit(`document.getElementById("` + opener + `")`)
		p.Until(`document.querySelector("[popover]:popover-open")`)
		p.axe(opener)
		p.Press("\x1b")
	}
	eval[bool](p, `(document.querySelector(".session").click(), true)`)
	p.Shows("Show earlier lines (31 or more)")
	p.axe("reader")
	p.Click("Close")
	p.Size(390, 844)
	look := func(place string) { p.axe(place); p.look("phone-" + place) }
	p.inPlaces(look, "talk", "work", "fleet", "sessions", "history", "settings", "help")
}

// named holds what a screen reader is told of a call beside the work and the machines.
func (p *tab) named() {
	p.T.Helper()
	p.Has(
		"banner: ", "main: ", "status: ", "alert: ", "heading: Switchboard", "heading: Conversation", "heading: Work", "heading: Machines",
		"region: Conversation", "region: Call", "region: Work", "region: Machines", "log: Transcript", "group: Call controls", "group: Things to say",
		"textbox: Message", "button: Send", "button: Mute", "button: Stop talking", "button: Hang up", "button: Sound", "button: Simulated",
		"button: Stop all (2): all work", "button: Stop: Fix the failing token test. on bigpc", "button: Recent sessions: bigpc", "button: Unpin rate limits on bigpc/api",
		"article: bigpc", "button: bigpc Fix the failing token test.", "region: bigpc",
	)
	if doubled := eval[[]string](p, `(() => { const seen = new Set(), twice = []; for (const e of document.querySelectorAll("[id]")) seen.has(e.id) ? twice.push(e.id) : seen.add(e.id); return twice; })()`); len(doubled) > 0 {
		p.T.Errorf("ids used twice: %q", doubled)
	}
	if twice := eval[[]string](p, `(() => { const seen = new Set(), twice = []; for (const e of document.querySelectorAll("button, summary, a[href], input, select, textarea")) { const name = (e.getAttribute("aria-label") || e.labels?.[0]?.textContent || e.textContent).trim(); if (!e.checkVisibility()) continue; if (seen.has(name)) twice.push(name); seen.add(name); } return twice; })()`); len(twice) > 0 {
		p.T.Errorf("names that two controls have: %q", twice)
	}
	if dangling := eval[[]string](p, `[...document.querySelectorAll("[aria-labelledby], [aria-describedby], [aria-controls], [for]")].flatMap((e) => ["aria-labelledby", "aria-describedby", "aria-controls", "for"].map((a) => e.getAttribute(a))).filter((id) => id && !document.getElementById(id))`); len(dangling) > 0 {
		p.T.Errorf("names that point nowhere: %q", dangling)
	}
}

// inPlaces looks at each of these places of the page.
func (p *tab) inPlaces(look func(place string), places ...string) {
	p.T.Helper()
	for _, place := range places {
		eval[bool](p, fmt.Sprintf(`(document.querySelector("[data-go=%s]").click(), true)`, place))
		p.Until(`document.querySelector("#` + place + `").checkVisibility()`)
		look(place)
	}
}

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

// TestPageAxe runs axe-core over every view, wide and narrow. In the dark only the colors differ, which TestPageLooks
// holds.
func TestPageAxe(t *testing.T) {
	t.Parallel()
	w := newScene()
	w.questions[0].Risk = "high"
	w.records[0].Prompt = strings.Repeat("Please change everything. ", 40)
	_, base := serve(t, w, sceneOfSeveral)
	browser := startChromium(t, true)
	for _, size := range []struct{ width, height int64 }{{1280, 800}, {390, 844}} {
		t.Run(fmt.Sprint(size.width), func(t *testing.T) {
			p := openTab(t, browser, size.width, size.height)
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
			eval[bool](p, `(document.querySelectorAll(".ill").forEach((e) => e.remove()), true)`)
			p.loggedIn(base)
			p.Until(`document.querySelectorAll(".card").length === 4 && document.querySelector(".question:not(.settling)")`)
			p.axe("start")
			p.talk(sceneTalk)
			for _, area := range []string{"talk", "work", "fleet"} {
				eval[bool](p, fmt.Sprintf(`(document.querySelector("[data-go=%s]").click(), true)`, area))
				p.axe(area)
			}
			p.OpenMachines()
			p.Click("Recent sessions")
			p.Shows("auth-refactor")
			eval[bool](p, `(document.querySelector(".session").click(), true)`)
			p.Shows("Show earlier lines (31 or more)")
			p.axe("reader")
			p.Click("Close")
			p.inPlaces(func(place string) { p.axe(place) })
			eval[bool](p, `(document.querySelector("[data-go=talk]").click(), true)`)
			for _, opener := range []string{"sound", "badge", "call-time"} {
				p.Hit(`document.getElementById("` + opener + `")`)
				p.Until(`document.querySelector("[popover]:popover-open")`)
				p.axe(opener)
				p.Press("\x1b")
			}
		})
	}
}

// inPlaces looks at each place beside the conversation, the work and the machines.
func (p *tab) inPlaces(look func(place string)) {
	p.T.Helper()
	for _, place := range []string{"sessions", "history", "settings", "help"} {
		eval[bool](p, fmt.Sprintf(`(document.querySelector("[data-go=%s]").click(), true)`, place))
		p.Until(`document.querySelector("#` + place + `").checkVisibility()`)
		look(place)
	}
}

package web

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"switchboard/web/webtest"
)

// TestPageForcedColours: where the system takes all colours away, what is allowed, what is pressed and where one is
// still look unlike their neighbours. What is printed is the work, whatever is around it on the screen.
func TestPageForcedColours(t *testing.T) {
	t.Parallel()
	w := newScene()
	w.questions[0].Risk = "medium"
	_, base := serve(t, w, withVoice)
	p := openTab(t, startChromium(t, true), 1280, 800)
	params := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "forced-colors", Value: "active"}, {Name: "prefers-reduced-motion", Value: "reduce"}}}
	p.Do(webtest.Call(emulation.SetEmulatedMedia, params))
	p.loggedIn(base)
	p.Until(`matchMedia("(forced-colors: active)").matches && document.querySelector(".question:not(.settling)")`)
	p.Picture("forced")
	const looks = `((a, b) => a && b && a.backgroundColor !== b.backgroundColor && a.color !== b.color)(...%s.map((s) => { const e = document.querySelector(s); return e && getComputedStyle(e); }))`
	for what, pair := range map[string]string{
		"Allow once": `[".question-buttons [data-decision=accept]", ".question-buttons [data-decision=decline]"]`,
		"Call":       `["#start", "#sound"]`,
		"the place":  `[".places [aria-current]", ".places button:not([aria-current])"]`,
	} {
		if !eval[bool](p, fmt.Sprintf(looks, pair)) {
			t.Errorf("%s looks like what is beside it", what)
		}
	}
	if colours := eval[[]string](p, `[...new Set(["#start", ".question-buttons .primary", ".places [aria-current]"].map((s) => getComputedStyle(document.querySelector(s)).backgroundColor))]`); len(colours) != 1 {
		t.Errorf("what stands out has the colours %q, and the system has one", colours)
	}
	if gone := eval[[]string](p, `[...document.querySelectorAll(".lamp, .plug, .pill")].filter((e) => e.checkVisibility()).filter((e) => { const s = getComputedStyle(e), b = getComputedStyle(document.body).backgroundColor; return s.backgroundColor === b && s.borderStyle === "none" && !e.textContent; }).map((e) => e.className)`); len(gone) > 0 {
		t.Errorf("not seen any more: %q", gone)
	}
	p.Size(390, 844)
	p.Hit(`document.querySelector('[data-go="work"]')`)
	p.Picture("forced-phone")
	p.Size(1440, 900)
	p.Do(webtest.Call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"}))
	seen := func(what string) bool {
		return eval[bool](p, `[...document.querySelectorAll("`+what+`")].some((e) => e.checkVisibility())`)
	}
	for what, want := range map[string]bool{".card": true, "#work-title": true, ".top": false, "#talk": false, ".dock": false, "#fleet": false, "#stop-all": false} {
		if seen(what) != want {
			t.Errorf("%s is printed: %v", what, !want)
		}
	}
	if eval[bool](p, `document.querySelector("#work .scroll").scrollHeight > document.querySelector("#work .scroll").clientHeight + 1`) {
		t.Error("a part of the work is cut")
	}
	eval[bool](p, `(document.querySelector("[data-go=help]").click(), true)`)
	p.Until(`document.querySelector(".help-text").checkVisibility()`)
	if seen(".card") {
		t.Error("with the help, the work is printed")
	}
	p.quiet()
}

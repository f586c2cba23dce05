package web

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestPageForcedColours: where the system takes all colours away, what is allowed, what is pressed and where one is
// still look unlike their neighbours.
func TestPageForcedColours(t *testing.T) {
	t.Parallel()
	w := newScene()
	w.questions[0].Risk = "medium"
	_, base := serve(t, w, withVoice)
	p := openTab(t, startChromium(t, true), 1280, 800)
	params := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "forced-colors", Value: "active"}, {Name: "prefers-reduced-motion", Value: "reduce"}}}
	p.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, params)
		return err
	}))
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
	p.quiet()
}

package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// Another device comes in by the camera, by the link, or by the code typed into the form.
func TestPageAddsADevice(t *testing.T) {
	t.Parallel()
	_, base := serve(t, newWorld(), func(cfg *Config) { cfg.PublicURL = "https://bigpc.example.com" })
	browser := startChromium(t, true)
	p := openTab(t, browser, 1280, 800)
	p.loggedIn(base)
	p.Click("Settings")
	p.Click("Add a device")
	p.Until(`/^https:\/\/bigpc\.example\.com\/#login=[B-Z]{8}$/.test(document.querySelector(".device-code .mono")?.textContent)`)
	p.Do(chromedp.ScrollIntoView(chromedp.CSS(".device-code")))
	p.Picture("add-a-device")
	// The image has every cell of the code, and light around it.
	if bad := eval[string](p, `import("/page/lean-qr.js").then(({ generate, correction }) => {
		const code = generate(document.querySelector(".device-code .mono").textContent, { minCorrectionLevel: correction.M });
		const svg = document.querySelector("svg.qr");
		const cells = new Set(svg.querySelector("path").getAttribute("d").split("h1v1h-1z").filter(Boolean));
		let dark = 0;
		for (let y = 0; y < code.size; y++) for (let x = 0; x < code.size; x++) if (code.get(x, y) && ++dark && !cells.has("M" + (x + 4) + " " + (y + 4))) return "a cell is missing";
		return dark === cells.size && dark > 200 && svg.getAttribute("viewBox") === "0 0 " + (code.size + 8) + " " + (code.size + 8) && svg.getBoundingClientRect().width >= 200 ? "" : "other cells";
	})`); bad != "" {
		t.Error(bad)
	}
	code := eval[string](p, `document.querySelector(".code-big").textContent`)
	if len(strings.Fields(code)) != 2 {
		t.Errorf("the code is shown as %q", code)
	}
	other := openTab(t, browser, 390, 844)
	other.open(base)
	other.Until(`document.querySelector("#login:not([hidden])")`)
	other.Do(chromedp.Focus(chromedp.ID("login-key")))
	for text, kind := range map[string]string{"bcdf ghj": "text", "swk_bcdf": "password", "BCDFGHJKM": "password", "": "password"} { // a code is read as it is typed
		if got := eval[string](other, fmt.Sprintf(`((e) => { e.value = %q; e.dispatchEvent(new Event("input")); return e.type; })(document.querySelector("#login-key"))`, text)); got != kind {
			t.Errorf("%q is shown as %s", text, got)
		}
	}
	eval[bool](other, `((e) => { e.value = ""; e.dispatchEvent(new Event("input")); return true; })(document.querySelector("#login-key"))`)
	other.EnterCode(strings.ToLower(code))
	other.Until(`document.querySelector("#app:not([hidden])")`)
	other.quiet()
	p.quiet()
}

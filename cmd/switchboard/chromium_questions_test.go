package main

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	machines "switchboard/servers/simulator"
)

// windows are the windows that the page is looked at in.
var windows = [][2]int64{{390, 844}, {844, 390}, {1024, 700}, {1440, 900}, {1920, 1080}}

// TestChromiumQuestions: what agents ask is shown as it came over the wire, with its risk and what allows it, and its
// buttons are in the picture in every window. So is a session that another program has open.
func TestChromiumQuestions(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	s := newSite(t, f.voice.URL, "", f.at)
	c := s.start()
	c.up("bigpc", "laptop")
	p := openTab(t, startChromium(t, true), 1440, 900)
	p.Do(chromedp.Navigate(c.base))
	p.EnterKey(testKey)
	p.Until(`document.querySelectorAll("#app:not([hidden]) .machine").length === 2`)

	for _, q := range []struct{ name, command, risk, how string }{
		{"low", "git status --short", "Low risk", "…or say yes or no in a call."},
		{"medium", "git push origin release/2.4", "Medium risk", "…or say yes or no in a call."},
		{"high", "sudo systemctl restart nginx && rm -rf /var/cache/nginx", "High risk", "Tap only; a yes by voice does not count."},
	} {
		c.hand(fmt.Sprintf(`{"server":"bigpc","thread_id":"new","prompt":"job 1 asks for %s"}`, q.command))
		p.Until(`document.querySelector(".question:not(.settling)")`)
		for _, text := range []string{q.command, q.risk, q.how} {
			p.Shows(text)
		}
		p.inEveryWindow("risk-" + q.name)
		p.Click("Decline")
		p.Until(`!document.querySelector(".question")`)
	}

	f.world.SetFaults("bigpc", machines.Faults{InUse: true})
	f.world.Unload("bigpc")
	c.hand(`{"server":"bigpc","thread_id":"Auth refactor","prompt":"job 2 takes 1"}`)
	p.Shows("Go on in a copy on bigpc?")
	p.Until(`document.querySelector(".question:not(.settling)")`)
	p.Shows("The session Auth refactor")
	p.inEveryWindow("held-asks")
	p.Click("No copy")
	p.Until(`!document.querySelector(".question")`)
	p.Click("What you were asked")
	p.Shows("Declined on the page")
	p.inEveryWindow("held-declined")
	p.Quiet(noKeyYet)
}

// inEveryWindow takes pictures of the work in each size, and holds that the buttons of a question are in them.
func (p *tab) inEveryWindow(name string) {
	p.T.Helper()
	eval[bool](p, `(document.querySelector("[data-go=work]").click(), true)`)
	for _, size := range windows {
		p.Size(size[0], size[1])
		p.Pictures(fmt.Sprint(name, "-", size[0]))
		p.Until(`window.scrollY === 0 && document.querySelector(".work .scroll").scrollTop === 0`)
		if out := eval[[]string](p, `[...document.querySelectorAll(".question-buttons button")].filter((b) => { const r = b.getBoundingClientRect(); return r.top < 0 || r.bottom > innerHeight || !b.contains(document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2)); }).map((b) => b.textContent)`); len(out) > 0 {
			p.T.Errorf("%s at %v: out of reach: %q", name, size, out)
		}
	}
	p.Size(1440, 900)
}

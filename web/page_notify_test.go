package web

import (
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"switchboard/web/webtest"
)

// notifications sets what the person said to the browser's own question.
func (p *tab) notifications(setting browser.PermissionSetting) {
	p.T.Helper()
	params := browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "notifications"}, Setting: setting,
		BrowserContextID: chromedp.FromContext(p.Ctx).BrowserContextID,
	}
	p.Do(webtest.Call(browser.SetPermission, params))
}

// The switch says where the browser's own question stands: blocked, asked, closed without an answer; and when it
// was allowed and nobody delivers. The keyboard stays on it. A notification is shown by the worker that runs, and
// pressed: "decline" declines, "open" and the notification itself bring the page to what needs its person, and nothing
// there allows.
func TestPageAsksToNotify(t *testing.T) {
	t.Parallel()
	w := newScene()
	_, base := serve(t, w, nil)
	p := openTab(t, chromiums.StartWhole(t), 390, 844)
	p.notifications(browser.PermissionSettingDenied)
	p.loggedIn(base)
	eval[bool](p, `(document.querySelector("[data-go=settings]").click(), true)`)
	p.Shows("This browser blocks them for this page.")
	p.Scheme("light")
	const box = `[...document.querySelectorAll("#settings .check")].find((l) => l.textContent.includes("Notify me")).querySelector("input")`
	eval[bool](p, `(`+box+`.focus(), true)`)
	p.look("notify-blocked")
	p.notifications(browser.PermissionSettingPrompt)
	p.Shows("You are notified when an agent asks")
	eval[bool](p, `(Notification.requestPermission = () => new Promise((answer) => { window.answer = answer; }), true)`)
	p.Press(" ")
	p.Shows("Your browser asks whether this page may notify you.")
	p.look("notify-asked")
	eval[bool](p, `(answer("default"), true)`)
	p.Shows("The browser's question was closed without an answer.")
	p.Until(`!` + box + `.checked && document.activeElement === ` + box)
	p.notifications(browser.PermissionSettingGranted)
	p.Press(" ")
	eval[bool](p, `(PushManager.prototype.subscribe = () => Promise.reject(new Error()), answer("granted"), true)`)
	p.Shows("The browser's push service does not answer.")
	p.Until(`!` + box + `.checked && document.activeElement === ` + box)
	p.look("notify-no-service")

	eval[bool](p, pushService)
	p.Until(`!` + box + `.disabled`)
	eval[bool](p, `(`+box+`.click(), true)`)
	p.Until(`navigator.serviceWorker.controller?.state === "activated"`)
	worker := p.worker()
	if shown := eval[string](worker, delivered); shown != "bigpc: auth|May it push?|Open|Decline" {
		t.Errorf("it shows %q", shown)
	}
	eval[bool](worker, pressed+`("decline")`)
	w.logged(t, "decide owner q1 decline")
	for _, action := range []string{"open", ""} {
		eval[string](worker, `registration.getNotifications().then((all) => { for (const n of all) n.close(); return ""; })`)
		waitFor(t, func() bool {
			return eval[int](worker, `registration.getNotifications().then((all) => all.length)`) == 0
		})
		eval[string](worker, delivered)
		eval[bool](p, `(document.querySelector("[data-go=help]").click(), true)`)
		p.Until(`document.body.dataset.area === "help"`)
		eval[bool](worker, pressed+`("`+action+`")`)
		p.Until(`document.body.dataset.area === "work"`)
	}
	w.onlyDeclined(t)
}

package web

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// notifications sets what the person said to the browser's own question.
func (p *tab) notifications(setting browser.PermissionSetting) {
	p.T.Helper()
	p.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, browser.SetPermission, browser.SetPermissionParams{Permission: &browser.PermissionDescriptor{Name: "notifications"}, Setting: setting, BrowserContextID: chromedp.FromContext(ctx).BrowserContextID})
		return err
	}))
}

// The switch says where the browser's own question stands: blocked, asked, closed without an answer; and when it
// was allowed and nobody delivers. The keyboard stays on it.
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
}

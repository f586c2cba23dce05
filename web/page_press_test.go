package web

import (
	"context"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"switchboard/web/webtest"
)

// delivered gives the worker what the push service brought, and waits for what it shows. It does not ask the browser
// for what is shown before that: Chromium drops a notification of which it is asked while it comes up.
const delivered = `(async () => {
  const before = new Set((await registration.getNotifications()).map((n) => n.tag));
  let showing;
  registration.showNotification = (...what) => (showing = ServiceWorkerRegistration.prototype.showNotification.apply(registration, what));
  dispatchEvent(new PushEvent("push", { data: JSON.stringify({ kind: "question", title: "bigpc: auth", text: "May it push?", id: "h2", question: "q1" }) }));
  delete registration.showNotification;
  await showing;
  const [shown] = (await registration.getNotifications()).filter((n) => !before.has(n.tag));
  return shown ? [shown.title, shown.body, ...shown.actions.map((a) => a.title)].join("|") : "nothing";
})()`

// pressed presses an action of the notification; "" is its body.
const pressed = `(async (action) => {
  const [shown] = await registration.getNotifications({ tag: "q1" });
  dispatchEvent(new NotificationEvent("notificationclick", { notification: shown, action }));
  return true;
})`

// allow lets the page of a tab do what a person would be asked about.
func allow(what ...browser.PermissionType) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		type params struct {
			Permissions      []browser.PermissionType `json:"permissions"`
			BrowserContextID cdp.BrowserContextID     `json:"browserContextId,omitempty"`
		}
		grant := cdp.Command[params, cdp.Empty]{Method: "Browser.grantPermissions"}
		_, err := cdp.Call(ctx, t, grant, params{what, chromedp.FromContext(ctx).BrowserContextID})
		return err
	})
}

// worker is the service worker of the tab's page; scripts run in its scope.
func (p *tab) worker() *tab {
	p.T.Helper()
	var ctx context.Context
	waitFor(p.T, func() bool {
		targets, err := chromedp.Targets(p.Ctx)
		if err != nil {
			p.T.Fatal(err)
		}
		for _, info := range targets {
			if info.Type == "service_worker" && info.BrowserContextID == chromedp.FromContext(p.Ctx).BrowserContextID {
				var cancel context.CancelFunc
				ctx, cancel = chromedp.NewContext(p.Ctx, chromedp.WithTargetID(info.TargetID))
				p.T.Cleanup(cancel)
				return true
			}
		}
		return false
	})
	if err := chromedp.Do(ctx); err != nil { // it is attached for as long as this context, not that of the first script
		p.T.Fatal(err)
	}
	return &tab{webtest.Attach(ctx, p.T)}
}

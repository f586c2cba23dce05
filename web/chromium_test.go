package web

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp"

	"switchboard/web/webtest"
)

// patience bounds a wait for something that happens; it is never how long it should take.
const patience = webtest.Patience

var chromiums = webtest.Browsers{Flags: map[string]any{"disable-features": "WebRtcHideLocalIpsWithMdns"}}

func TestMain(m *testing.M) {
	loadModules()
	defer chromiums.Close()
	m.Run()
}

// startChromium gives a browser whose microphone is silent and allowed, or refused.
func startChromium(t *testing.T, mic bool) context.Context {
	t.Helper()
	return chromiums.Start(t, mic)
}

// A tab is one page in a browser of its own.
type tab struct {
	*webtest.Tab
	t   *testing.T
	ctx context.Context
}

// openTab opens an empty tab.
func openTab(t *testing.T, browser context.Context, width, height int64) *tab {
	t.Helper()
	p := webtest.Open(t, browser, width, height)
	return &tab{p, t, p.Ctx}
}

// quiet holds the page to an empty console, but for the one answer that says that the key is missing, before a login.
func (p *tab) quiet() { p.t.Helper(); p.Quiet("401") }

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) { p.t.Helper(); p.Do(steps...) }
func (p *tab) open(url string)                            { p.t.Helper(); p.Do(chromedp.Navigate(url)) }
func (p *tab) until(expression string)                    { p.t.Helper(); p.Until(expression) }
func (p *tab) shows(text string)                          { p.t.Helper(); p.Shows(text) }
func (p *tab) status(text string)                         { p.t.Helper(); p.Status(text) }
func (p *tab) press(keys ...string)                       { p.t.Helper(); p.Press(keys...) }
func (p *tab) tabTo(name string)                          { p.t.Helper(); p.TabTo(name) }
func (p *tab) click(name string)                          { p.t.Helper(); p.Click(name) }
func (p *tab) hit(found string)                           { p.t.Helper(); p.Hit(found) }
func (p *tab) enter(key string)                           { p.t.Helper(); p.EnterKey(key) }
func (p *tab) size(width, height int64)                   { p.t.Helper(); p.Size(width, height) }
func (p *tab) scheme(name string)                         { p.t.Helper(); p.Scheme(name) }
func (p *tab) shot(name string)                           { p.t.Helper(); p.Picture(name) }
func (p *tab) tree() []string                             { p.t.Helper(); return p.Tree() }

// eval gives the value of an expression; a promise is awaited.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	return webtest.Eval[T](p.Tab, expression)
}

// frames is [webtest.Frames].
const frames = webtest.Frames

// allRead waits until the work and the questions of the first look are in the page's state: the machines may come
// before.
const allRead = `Promise.all([import("/page/store.js"), import("/page/state-work.js")]).then(async ([{ get }, { workStart }]) => {
  while (get().work.records === workStart.records) await new Promise((next) => setTimeout(next, 20));
  return true;
})`

// loggedIn opens the page, enters the owner's key and waits until it shows the fleet and the work.
func (p *tab) loggedIn(base string) {
	p.t.Helper()
	p.open(base)
	p.enter(ownerKey)
	p.until(`document.querySelector("#app:not([hidden]) .machine, #app:not([hidden]) #no-machines:not([hidden])")`)
	eval[bool](p, allRead)
	eval[bool](p, frames)
}

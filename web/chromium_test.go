package web

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"switchboard/web/webtest"
)

// patience bounds a wait for something that happens; it is never how long it should take.
const patience = webtest.Patience

var chromiums = webtest.Browsers{Flags: map[string]any{"disable-features": "WebRtcHideLocalIpsWithMdns"}}

func TestMain(m *testing.M) {
	loadReachable()
	defer chromiums.Close()
	m.Run()
}

// startChromium gives a browser whose microphone is silent and allowed, or refused.
func startChromium(t *testing.T, mic bool) context.Context {
	t.Helper()
	return chromiums.Start(t, mic)
}

// A tab is one page in a browser of its own.
type tab struct{ *webtest.Tab }

// openTab opens an empty tab.
func openTab(t *testing.T, browser context.Context, width, height int64) *tab {
	t.Helper()
	return &tab{webtest.Open(t, browser, width, height)}
}

// quiet holds the page to an empty console, but for the one answer that says that the key is missing, before a login.
func (p *tab) quiet() { p.T.Helper(); p.Quiet("401") }

func (p *tab) open(url string) { p.T.Helper(); p.Do(chromedp.Navigate(url)) }

// eval gives the value of an expression; a promise is awaited.
func eval[T any](p *tab, expression string) T {
	p.T.Helper()
	return webtest.Eval[T](p.Tab, expression)
}

// frames is [webtest.Frames].
const frames = webtest.Frames

// allRead waits until the work and the questions of the first look are in the page's state: the machines may come
// before.
const allRead = `Promise.all([reached("store.js"), reached("state-work.js")]).then(async ([{ get }, { workStart }]) => {
  while (get().work.records === workStart.records) await new Promise((next) => setTimeout(next, 20));
  return true;
})`

// loggedIn opens the page, enters the owner's key and waits until it shows the fleet and the work.
func (p *tab) loggedIn(base string) {
	p.T.Helper()
	p.open(base)
	p.EnterKey(ownerKey)
	p.Until(`document.querySelector("#app:not([hidden]) .machine, #app:not([hidden]) #no-machines:not([hidden])")`)
	eval[bool](p, allRead)
	eval[bool](p, frames)
}

// loggedIn serves a world, opens its page in a tab of this size and logs the owner in.
func loggedIn(t *testing.T, w *world, width, height int64, adjust func(*Config)) *tab {
	t.Helper()
	_, base := serve(t, w, adjust)
	p := openTab(t, startChromium(t, true), width, height)
	p.loggedIn(base)
	return p
}

// waitFor waits until something happens.
func waitFor(t *testing.T, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never happened")
		}
	}
}

// holding holds back what is read at a path until it may be told.
func holding(path string, told <-chan struct{}) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && r.URL.Path == path {
				<-told
			}
			h.ServeHTTP(rw, r)
		})
	}
}

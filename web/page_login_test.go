package web

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"switchboard/handoff"
)

// A program that listens at the address later hears no token, from a page that is open nor from one that opens.
func TestPageTellsAnImpostorNothing(t *testing.T) {
	t.Parallel()
	w := newWorld()
	var other atomic.Bool
	var heard atomic.Value // the first header of a request that carried a login to the other program
	var asked atomic.Int32
	s, base := serveBehind(t, w, nil, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if !other.Load() || r.Method == "GET" && (r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/page/")) {
				h.ServeHTTP(rw, r)
				return
			}
			if carried := r.Header.Get("Authorization"); carried != "" {
				heard.CompareAndSwap(nil, r.URL.Path+" "+carried)
			}
			asked.Add(1)
			writeJSON(rw, http.StatusOK, map[string]any{"proof": strings.Repeat("A", 43), "items": []any{}})
		})
	})
	p := openTab(t, startChromium(t, true), 1280, 800)
	p.loggedIn(base)
	waitFor(t, func() bool { return w.feed("owner").listening() == 1 })
	other.Store(true)
	s.Close() // the stream ends with the process
	waitFor(t, func() bool { return asked.Load() > 2 })
	p.open(base + "/?again")
	p.Shows("Another program answers at Switchboard's address.")
	if carried := heard.Load(); carried != nil {
		t.Errorf("it heard %s", carried)
	}
	other.Store(false)
	p.Shows("No machines.") // the page goes on trying
}

// The page lists who is logged in, ends another login and its own. What arrives later does not push away what somebody
// is about to press. The owner has the settings read again, and sees what has changed, what waits for a restart, and
// what is wrong.
func TestPageLogins(t *testing.T) {
	t.Parallel()
	told, wrong := Reloaded{Did: []string{"mini is added"}, Restart: []string{"redis"}}, error(nil)
	listed := make(chan struct{})
	s, base := serveBehind(t, newWorld(), func(cfg *Config) {
		cfg.Keys[0].Approve = handoff.ApproveAll
		cfg.Reload = func(context.Context) (Reloaded, error) { return told, wrong }
	}, holding("/login", listed))
	p := openTab(t, startChromium(t, true), 1280, 800)
	p.loggedIn(base)
	phone := tokenOf(t, s, byKey(ownerKey), func(r *http.Request) {
		r.Host = strings.TrimPrefix(base, "http://")
		r.Header.Set("Origin", base)
		r.Header.Set("User-Agent", "Mozilla/5.0 (iPhone) Safari/600")
	})
	p.Click("Settings")
	const places = `["Add a device", "Show decisions"].map((name) => [...document.querySelectorAll("#settings button")].find((b) => b.textContent === name).getBoundingClientRect().top).join(" ")`
	eval[bool](p, frames)
	before := eval[string](p, places)
	close(listed)
	p.Until(`document.querySelector(".login-row")`)
	eval[bool](p, frames)
	if after := eval[string](p, places); after != before {
		t.Errorf("the buttons stood at %s, and then at %s", before, after)
	}
	p.Shows("this one")
	p.Click("Log out Safari on iPhone at " + strings.TrimPrefix(base, "http://"))
	p.Until(`!document.querySelector("#logins-list").innerText.includes("iPhone")`)
	if status := phone.use(s, func(r *http.Request) { r.Host = strings.TrimPrefix(base, "http://") }); status != http.StatusUnauthorized {
		t.Errorf("the phone: %d", status)
	}
	p.Click("Read the settings again")
	p.Shows("mini is added")
	p.Shows("needs a restart: redis")
	wrong = handoff.Fault(handoff.CodeSettings, "switchboard.yaml:3:5: redis is there twice\nswitchboard.yaml:4:1: no", "")
	p.Click("Read the settings again")
	p.Shows("switchboard.yaml:4:1: no")
	eval[bool](p, `reached("store.js").then(({ dispatch }) => (dispatch({ type: "note", id: "n", text: "What the owner said" }), true))`)
	p.Until(`document.body.textContent.includes("What the owner said")`)
	p.Click("Log out here")
	p.Until(`document.querySelector("#login:not([hidden])")`)
	p.look("logged-out")
	p.EnterKey(otherKey) // nothing of the owner's stays for who logs in here next
	p.Until(`document.querySelector("#app:not([hidden])")?.textContent.includes("What the owner said") === false`)
	p.Quiet("401", "422")
}

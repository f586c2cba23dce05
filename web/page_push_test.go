package web

import (
	"strings"
	"testing"

	"switchboard/handoff"
)

// pushService stands for the browser's own: there is none without the internet.
const pushService = `(() => {
  let made = null;
  const subscription = { endpoint: "https://push.example.com/abc", toJSON: () => ({ endpoint: "https://push.example.com/abc", keys: { p256dh: "PPP", auth: "AAA" } }), unsubscribe: async () => { made = null; return true; } };
  PushManager.prototype.getSubscription = async () => made;
  PushManager.prototype.subscribe = async (wish) => { window.wish = wish; return (made = subscription); };
  Notification.requestPermission = async () => "granted";
  Object.defineProperty(Notification, "permission", { get: () => "granted" });
  return true;
})()`

// A browser asks to be told, and is told by its service worker, which [TestPageWorker] is about.
func TestPageNotifications(t *testing.T) {
	t.Parallel()
	w := newScene()
	p := loggedIn(t, w, 1280, 800, nil)
	eval[bool](p, pushService)
	p.Click("Settings")
	const box = `[...document.querySelectorAll("#settings .check")].find((l) => l.textContent.includes("Notify me")).querySelector("input")`
	p.Until(`!` + box + `.disabled`)
	eval[bool](p, `(`+box+`.click(), true)`)
	w.logged(t, "subscribe owner https://push.example.com/abc PPP AAA true")
	p.Until(box + `.checked && !` + box + `.disabled && wish.userVisibleOnly && wish.applicationServerKey.length === 87`)
	// The worker runs: it is what shows the notification.
	p.Until(`navigator.serviceWorker.controller`)
	notices := eval[[]string](p, `reached("notices.js").then(({ noticeOf }) => [JSON.stringify({ kind: "question", title: "bigpc: auth", text: "May it push?", id: "h2", question: "q1", rings: true }), JSON.stringify({ kind: "outcome", title: "bigpc", text: "It failed.", id: "h3", rings: true, silent: true }), JSON.stringify({ kind: "outcome", title: "bigpc", text: "Done.", id: "h1" }), "null", "<b>"]
	  .map(noticeOf).map((n) => [n.title, n.body, n.tag, n.data.question, n.requireInteraction, n.silent, n.data.at, ...n.actions.map((a) => a.action)].join("|")))`)
	want := []string{"bigpc: auth|May it push?|q1|q1|true|false|talk/answer|answer|decline", "bigpc|It failed.|h3||false|true|talk/answer|answer",
		"bigpc|Done.|h1||false|false|work|open", "Switchboard|Something needs you.|switchboard||false|false|work|open",
		"Switchboard|Something needs you.|switchboard||false|false|work|open"}
	if strings.Join(notices, ";") != strings.Join(want, ";") {
		t.Errorf("notices: %q", notices)
	}
	told := strings.Count(strings.Join(w.log(), ";"), "subscribe owner")
	eval[bool](p, `reached("notices.js").then(({ renew }) => renew())`) // as a login does that comes after another
	if strings.Count(strings.Join(w.log(), ";"), "subscribe owner") <= told {
		t.Error("it is not told again")
	}
	sent := eval[string](p, `reached("wishes.js").then(({ asSent }) => JSON.stringify([
	  asSent({ what: "questions", from: "22:00", to: "07:00" }, -60), asSent({ what: "", from: "", to: "07:00" }), asSent({ what: "", from: "01:00", to: "05:00" }, 300), asSent({ what: "", from: "03:00", to: "03:00" })]))`)
	if want := `[{"for":"questions","quiet":{"from":1260,"to":360}},{},{"quiet":{"from":360,"to":600}},{}]`; sent != want {
		t.Errorf("wishes: %s", sent)
	}
	eval[bool](p, `(`+box+`.click(), true)`)
	w.logged(t, "unsubscribe owner https://push.example.com/abc")
	p.Until(`!` + box + `.checked`)
}

// TestPushRoutes: only a page with a login can subscribe to notices.
func TestPushRoutes(t *testing.T) {
	w := newWorld()
	s := newServer(t, w, nil)
	if rec := ask(s, "POST", "/fleet/push", `{"endpoint":"https://push.example.com/x","keys":{"p256dh":"p","auth":"a"}}`, nil); codeOf(t, rec) != handoff.CodeNotGranted {
		t.Errorf("by a key: %s", rec.Body)
	}
	if rec := ask(s, "GET", "/worker.js", "", nil); rec.Code != 200 || !strings.HasPrefix(rec.Header().Get("Content-Type"), "text/javascript") {
		t.Errorf("the worker: %d %v", rec.Code, rec.Header())
	}
}

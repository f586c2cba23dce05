package web

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"switchboard/handoff"
	"switchboard/web/webtest"
)

// watchDevice stands before what the page asks of the device, and keeps it.
const watchDevice = `window.device = { keys: {}, locks: [], tones: [] };
MediaSession.prototype.setActionHandler = (key, f) => { device.keys[key] = f; };
WakeLock.prototype.request = async (kind) => {
  const lock = Object.assign(new EventTarget(), { kind, held: true, release: async () => lock.lose(), lose: () => { lock.held = false; lock.dispatchEvent(new Event("release")); } });
  device.locks.push(lock);
  return lock;
};
const create = AudioContext.prototype.createOscillator;
AudioContext.prototype.createOscillator = function () {
  const tone = create.call(this);
  const start = tone.start.bind(tone);
  tone.start = (at) => { device.tones.push(tone.frequency.value); start(at); };
  return tone;
};`

// atFirst runs a script before those of each page that a tab opens from now on.
func atFirst(script string) chromedp.Action[chromedp.Void] { return webtest.AtFirst(script) }

// In a call the screen stays on, and the keys of a headset and of the lock screen steer it.
func TestPageInTheHand(t *testing.T) {
	w := newScene()
	w.questions, w.records = nil, nil
	_, base := serve(t, w, withVoice)
	p := openTab(t, startChromium(t, true), 1280, 800)
	p.Do(atFirst(watchDevice))
	p.loggedIn(base)
	eval[bool](p, otherSide)
	eval[bool](p, listenMic)
	p.Click("Call")
	p.Until(`far.types() === "session.update response.create" && ` + micOn)
	p.Until(`device.locks.length === 1 && device.locks[0].kind === "screen"`)
	p.Until(`navigator.mediaSession.playbackState === "playing" && navigator.mediaSession.metadata.title === "In a call"`)
	eval[bool](p, `(device.keys.togglemicrophone(), true)`)
	p.Status("Muted")
	p.Until(`!` + micOn)
	eval[bool](p, `(device.keys.togglemicrophone(), true)`)
	p.Until(micOn)
	for _, key := range []string{"pause", "stop"} {
		eval[bool](p, `(far.events.length = 0, device.keys.`+key+`(), true)`)
		p.Until(`far.types() === "output_audio_buffer.clear"`)
	}
	// The voice is lowered while somebody speaks into it, and cut by the other side where that goes on.
	for _, end := range []string{"input_audio_buffer.speech_stopped", "output_audio_buffer.cleared"} {
		eval[bool](p, `([{ type: "output_audio_buffer.started" }, { type: "input_audio_buffer.speech_started" }].forEach(far.say), true)`)
		p.Until(`document.getElementById("remote").volume < 0.5`)
		eval[bool](p, `(far.say({ type: "`+end+`" }), true)`)
		p.Until(`document.getElementById("remote").volume === 1`)
	}
	// Where that does not cut it the page does, also if the voice begins another answer meanwhile.
	eval[bool](p, `(far.events.length = 0, [{ type: "output_audio_buffer.started" }, { type: "input_audio_buffer.speech_started" },
	  { type: "output_audio_buffer.stopped" }, { type: "output_audio_buffer.started" }].forEach(far.say), true)`)
	p.Until(`far.types() === "output_audio_buffer.clear"`)
	eval[bool](p, `(far.say({ type: "input_audio_buffer.speech_stopped" }), true)`)
	// While Switchboard is away nobody knows the words, and a short sentence stops the voice, too.
	eval[bool](p, `reached("store.js").then(({ dispatch }) => (dispatch({ type: "feed", state: "lost" }), true))`)
	eval[bool](p, `(far.events.length = 0, [{ type: "output_audio_buffer.started" }, { type: "input_audio_buffer.speech_started" },
	  { type: "input_audio_buffer.speech_stopped" }].forEach(far.say), true)`)
	p.Until(`far.types() === "output_audio_buffer.clear" && document.getElementById("remote").volume === 1`)
	// A page that was hidden has lost the screen, and asks again when it is back.
	eval[bool](p, `(device.locks[0].lose(), document.dispatchEvent(new Event("visibilitychange")), true)`)
	p.Until(`device.locks.length === 2 && device.locks[1].held`)
	eval[bool](p, `(device.keys.hangup(), true)`)
	p.Status("Not in a call")
	p.Until(`!device.locks[1].held && navigator.mediaSession.playbackState === "none" && !navigator.mediaSession.metadata`)
	eval[bool](p, `(document.dispatchEvent(new Event("visibilitychange")), true)`)
	if n := eval[int](p, `device.locks.length`); n != 2 {
		t.Errorf("after the call the screen was asked for %d times", n-2)
	}
	p.quiet()
}

// A question, an end and a failure sound each in its own way, once, and not at all where that is turned off. While the
// work is still being read, the page neither says that there is none nor rings for what was open before it.
func TestPageSounds(t *testing.T) {
	w := newScene()
	question := w.questions[0]
	question.ID = "q8"
	told := make(chan struct{})
	_, base := serveBehind(t, w, nil, holding("/fleet/handoffs", told))
	p := openTab(t, startChromium(t, true), 1280, 800)
	p.Do(atFirst(watchDevice))
	p.open(base)
	p.Until(`document.querySelector("#login:not([hidden])")`)
	p.EnterKey(ownerKey)
	p.Until(`document.querySelector("#app:not([hidden]) .machine")`)
	p.Click("Settings") // before a press browsers keep a page silent
	if !eval[bool](p, `document.querySelector("#no-work").hidden`) {
		t.Error("it says that there is no work")
	}
	close(told)
	p.Until(`document.querySelectorAll(".card").length === 4 && document.querySelector("#urgent").textContent`)
	eval[bool](p, frames)
	if got := eval[string](p, `device.tones.join()`); got != "" {
		t.Errorf("it rings: %s", got)
	}
	feed := w.feed("owner")
	end := func(record handoff.Record, outcome handoff.Outcome) {
		record.State, record.Outcome, record.EndedAt = handoff.StatusCompleted, outcome, new(time.Now())
		feed.Publish(handoff.PageEvent{Kind: "handoff", Record: &record})
	}
	const tones = `device.tones.splice(0).join()`
	heard := func(what, want string) {
		t.Helper()
		p.Until(`device.tones.length === 2`)
		if got := eval[string](p, tones); got != want {
			t.Errorf("%s sounds as %s", what, got)
		}
	}
	feed.Publish(handoff.PageEvent{Kind: "question", Question: &question})
	heard("a question", "660,880")
	end(w.records[0], handoff.OutcomeResult)
	heard("an end", "523,659")
	end(w.records[1], handoff.OutcomeFailed)
	p.Until(`device.tones.length >= 2`)
	if got := eval[string](p, tones); !strings.HasPrefix(got, "440,330") {
		t.Errorf("a failure sounds as %s", got)
	}
	eval[bool](p, `reached("store.js").then(async ({ dispatch }) => {
	  for (const over of [{ state: "started" }, { state: "completed", outcome: "result", ended_at: new Date().toISOString() }]) {
	    for (const id of ["m1", "m2", "m3"]) dispatch({ type: "event", event: { kind: "handoff", record: { id, server: "bigpc", prompt: "x", created_at: new Date().toISOString(), ...over } } });
	    await `+frames+`;
	  }
	  return true;
	})`)
	p.Until(`document.querySelector("#urgent").textContent === "3 pieces of work ended."`)
	heard("the end of three at once", "523,659")
	eval[bool](p, `([...document.querySelectorAll("#settings .check")].find((l) => l.textContent.startsWith("Sounds")).querySelector("input").click(), true)`)
	again := question
	again.ID = "q9"
	feed.Publish(handoff.PageEvent{Kind: "question", Question: &again})
	p.Until(`document.querySelector("#q-q9")`)
	if got := eval[string](p, tones); got != "" {
		t.Errorf("turned off, it sounds as %s", got)
	}
	p.quiet()
}

// workerIn runs the service worker's module in the page, between a registration and windows of ours: Chromium without a
// screen has no notifications. seen keeps what it does; send gives it an event and waits for what that makes it do.
const workerIn = `(async () => {
  const seen = window.seen = { shown: [], opened: [], posted: [], focused: 0, windows: [] };
  window.registration = { showNotification: async (title, options) => { seen.shown.push({ title, ...options }); } };
  window.clients = { claim: async () => {}, matchAll: async () => seen.windows, openWindow: async (url) => { seen.opened.push(url); } };
  seen.page = { postMessage: (m) => seen.posted.push(m), focus: async () => { seen.focused++; } };
  await import("/worker.js");
  window.send = async (type, more) => {
    let work;
    dispatchEvent(Object.assign(new Event(type), { ...more, waitUntil: (p) => { work = p; } }));
    await work;
    return true;
  };
  window.pressed = (action) => send("notificationclick", { action, notification: { ...seen.shown[0], close: () => { seen.closed = true; } } });
  return true;
})()`

// The worker shows what comes as a notification. "Decline" there declines; "open", and a press on the notification
// itself, bring the page to the front, or open it.
func TestPageWorker(t *testing.T) {
	t.Parallel()
	w := newScene()
	p := loggedIn(t, w, 1280, 800, nil)
	page := eval[string](p, `location.origin`)
	p.open(page + "/page/base.css") // where nobody else has loaded the worker's modules
	eval[bool](p, workerIn)
	eval[bool](p, `send("push", { data: { text: () => JSON.stringify({ kind: "question", title: "bigpc: auth", text: "May it push?", id: "h2", question: "q1" }) } })`)
	if got := eval[string](p, `(([n]) => [n.title, n.body, n.tag, ...n.actions.map((a) => a.title)].join("|"))(seen.shown)`); got != "bigpc: auth|May it push?|q1|Open|Decline" {
		t.Errorf("shown: %s", got)
	}
	eval[bool](p, `pressed("decline")`)
	w.logged(t, "decide owner q1 decline")
	if got := eval[string](p, `JSON.stringify([seen.closed, seen.shown.length, seen.opened, seen.posted])`); got != `[true,1,[],[]]` {
		t.Errorf("after a decline: %s", got)
	}
	for _, code := range []handoff.Code{handoff.CodeNotPending, handoff.CodeOverloaded} { // of the first nothing is said: somebody was faster
		w.change(func(w *world) { w.onDecide = func() error { return handoff.Fault(code, "bigpc", "") } })
		eval[bool](p, `pressed("decline")`)
		if n := eval[int](p, `seen.shown.length`); n > 1 != (code == handoff.CodeOverloaded) {
			t.Errorf("%s: it shows %d notifications", code, n)
		}
	}
	if got := eval[string](p, `seen.shown.at(-1).body`); got != "Not declined: bigpc has too much to do right now." {
		t.Errorf("it says %q", got)
	}
	eval[bool](p, `pressed("open")`)
	eval[bool](p, `(seen.windows.push(seen.page), pressed(""))`)
	if got := eval[string](p, `JSON.stringify([seen.opened, seen.posted, seen.focused])`); got != `[["/#work"],[{"go":"work"}],1]` {
		t.Errorf("after opening: %s", got)
	}
	w.onlyDeclined(t)
	// What it says to the page brings the page there.
	p.open(page)
	p.Until(`document.querySelector("#app:not([hidden]) .machine")`)
	eval[bool](p, `(navigator.serviceWorker.dispatchEvent(new MessageEvent("message", { data: { go: "work" } })), true)`)
	p.Until(`location.hash === "#work"`)
	// It rings: a call is offered, which begins by a tap.
	eval[bool](p, `(navigator.serviceWorker.dispatchEvent(new MessageEvent("message", { data: { go: "talk/answer" } })), true)`)
	p.Until(`document.querySelector("#confirm[open]")?.innerText.includes("Switchboard rings") && document.activeElement.textContent === "Answer"`)
}

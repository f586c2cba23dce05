package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"switchboard/handoff"
	"switchboard/web/webtest"
)

// chromiums are those of all tests here; TestMain ends them.
var chromiums webtest.Browsers

// startChromium gives a browser whose microphone is silent and allowed, or refused.
func startChromium(t *testing.T, mic bool) context.Context {
	t.Helper()
	return chromiums.Start(t, mic)
}

// patientUDP lets the page wait for UDP as long as the tests wait. After its own 5 s, the only timeout of that length,
// a call on a busy machine would go on over HTTPS.
const patientUDP = `(() => {
  const set = window.setTimeout;
  window.setTimeout = (act, ms, ...args) => set(act, ms === 5000 ? 180_000 : ms, ...args);
})()`

// watcher runs in the page before its own code: it keeps what a test looks at, and lets it make a sound in
// front of the microphone. It changes nothing of what the page does.
const watcher = `(() => {
  const seen = window.seen = { peers: [], micOn: () => seen.mic?.getAudioTracks()[0].enabled, makeSound: () => {} };
  window.RTCPeerConnection = class extends RTCPeerConnection {
    constructor(...a) { super(...a); seen.peers.push(this); }
    loses() { // its way, as the browser tells it
      Object.defineProperty(this, "connectionState", { get: () => "disconnected" });
      this.onconnectionstatechange();
    }
  };
  if (!navigator.mediaDevices) return; // the empty page before ours
  const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  navigator.mediaDevices.getUserMedia = async (wish) => {
    const stream = await open(wish);
    const room = new AudioContext(), heard = room.createMediaStreamDestination(), tone = room.createOscillator(), level = room.createGain();
    tone.frequency.value = 300;
    level.gain.value = 0;
    room.createMediaStreamSource(stream).connect(heard);
    tone.connect(level).connect(heard);
    tone.start();
    seen.makeSound = (on) => { level.gain.value = on ? 0.5 : 0; };
    return (seen.mic = heard.stream);
  };
  seen.interrupt = () => { // makes a sound as soon as the voice speaks
    const status = document.querySelector("#status-text");
    const once = new MutationObserver(() => { if (status.textContent === "Speaking") { once.disconnect(); seen.makeSound(true); } });
    once.observe(status, { subtree: true, childList: true, characterData: true });
  };
  seen.connected = () => seen.peers.at(-1)?.connectionState === "connected";
  seen.packets = async () => {
    const count = { sent: 0, received: 0, lost: 0 };
    (await seen.peers.at(-1).getStats()).forEach((s) => {
      if (s.type === "outbound-rtp") count.sent += s.packetsSent;
      if (s.type === "inbound-rtp") { count.received += s.packetsReceived; count.lost += s.packetsLost; }
    });
    return count;
  };
  seen.told = []; // what the header says beside the call's state, of which some goes by itself
  seen.notices = []; // likewise
  const noticed = new WeakSet();
  const hear = () => {
    const detail = document.querySelector("#status-detail")?.textContent;
    if (detail !== seen.detail) seen.told.push(seen.detail = detail);
    for (const notice of document.querySelectorAll(".toast")) {
      if (!noticed.has(notice)) seen.notices.push(notice.querySelector(".toast-text").textContent);
      noticed.add(notice);
    }
  };
  seen.streamed = {}; // by work: how much of its output the page showed at a time
  const look = () => {
    for (const card of document.querySelectorAll(".card:not(.over)")) {
      const shown = (seen.streamed[card.getAttribute("aria-labelledby")] ??= []), size = card.querySelector(".output")?.textContent.length ?? 0;
      if (size && shown.at(-1) !== size) shown.push(size);
    }
  };
  addEventListener("DOMContentLoaded", () => new MutationObserver(() => { look(); hear(); }).observe(document.body, { subtree: true, childList: true, characterData: true }));
})()`

// A tab is the page in a browser of its own.
type tab struct{ *webtest.Tab }

// openTab opens an empty tab.
func openTab(t *testing.T, browser context.Context, width, height int64) *tab {
	t.Helper()
	return &tab{webtest.Open(t, browser, width, height, watcher, patientUDP)}
}

// eval gives the value of an expression; a promise is awaited.
func eval[T any](p *tab, expression string) T {
	p.T.Helper()
	return webtest.Eval[T](p.Tab, expression)
}

// Lines that a console may hold: Chromium writes one for each answer that is an error and for each request
// that nobody answered.
const (
	noKeyYet = "401"
	nobody   = "net::ERR_" // refused, cut off, closed without a word: that depends on the moment
)

// says puts a sentence into the box and sends it.
func (p *tab) says(text string) {
	p.T.Helper()
	p.Do(chromedp.Focus(chromedp.ID("say")))
	p.Paste(text)
	p.Until(fmt.Sprintf(`document.querySelector("#say").value === %q`, text))
	p.Press("\r")
	p.Until(`document.querySelector("#say").value === ""`)
}

// card is an expression for the newest card of work with this prompt.
func card(prompt string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".card")].find((c) => c.querySelector(".line-asked").textContent.toLowerCase().includes(%q))`, strings.ToLower(prompt))
}

// interrupts asks for the longest answer of the simulated voice and speaks into it, until it is stopped. On a busy
// machine it may be over before the sound was heard for long enough; then it asks again.
func (p *tab) interrupts(stopped string) {
	p.T.Helper()
	const whole = `[...document.querySelectorAll(".line.voice")].filter((l) => /understands the rest/.test(l.textContent)).length`
	for end := time.Now().Add(patience); time.Now().Before(end); {
		before := eval[int](p, whole)
		eval[bool](p, `(seen.interrupt(), true)`)
		p.says("What can you do?")
		p.Until(fmt.Sprintf(`(%s) || %s > %d && document.querySelector("#status-text").textContent === "Listening"`,
			stopped, whole, before))
		if eval[bool](p, `!!(`+stopped+`)`) {
			return
		}
		eval[bool](p, `(seen.makeSound(false), true)`)
		p.Status("Listening")
	}
	p.T.Fatal("no answer was stopped")
}

// reconnects does what the call goes on after, and waits until the header has said so, which it does for a moment.
func (p *tab) reconnects(after func()) {
	p.T.Helper()
	p.Until(`seen.detail !== "Reconnected."`)
	eval[bool](p, `(seen.told = [], true)`)
	after()
	p.Until(`seen.told.includes("Reconnected.")`)
}

// noticed waits until the page has shown a notice, which goes by itself.
func (p *tab) noticed(text string) {
	p.T.Helper()
	p.Until(fmt.Sprintf(`seen.notices.includes(%q)`, text))
}

// voice waits until the voice has said something with these words.
func (p *tab) voice(words string) {
	p.T.Helper()
	p.Until(fmt.Sprintf(`[...document.querySelectorAll(".line.voice")].some((e) => e.textContent.includes(%q))`, words))
}

// work waits until the newest work with this prompt stands where a word says.
func (p *tab) work(prompt, state string) {
	p.T.Helper()
	p.Until(fmt.Sprintf(`%s?.querySelector(".pill").textContent === %q`, card(prompt), state))
}

// packets are the RTP packets of a call's sound.
type packets struct{ Sent, Received, Lost int }

// soundFlows holds that sound flows both ways: the microphone's all the time, the voice's when it says
// something.
func (p *tab) soundFlows() {
	p.T.Helper()
	p.Until(`seen.connected()`)
	before := eval[packets](p, `seen.packets()`)
	p.says("Which machines do I have?")
	now := before
	for end := time.Now().Add(patience); now.Sent < before.Sent+25 || now.Received < before.Received+25; now = eval[packets](p, `seen.packets()`) {
		if time.Now().After(end) {
			p.T.Fatalf("sound does not flow both ways: %+v, then %+v", before, now)
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.Status("Listening") // when it has been said
}

// theCall is the id of the one call that there is, once it waits for its caller or does not.
func (r *running) theCall(held bool) string {
	r.t.Helper()
	var calls []handoff.CallInfo
	until(r.t, fmt.Sprint("one call, held: ", held), func() bool {
		calls = items[handoff.CallInfo](r, "/fleet/calls")
		return len(calls) == 1 && calls[0].Held == held
	})
	return calls[0].ID
}

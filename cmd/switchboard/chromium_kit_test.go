package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"switchboard/web/webtest"
)

// chromiums are those of all tests here; TestMain ends them.
var chromiums webtest.Browsers

// startChromium gives a browser whose microphone is silent and allowed, or refused.
func startChromium(t *testing.T, mic bool) context.Context {
	t.Helper()
	return chromiums.Start(t, mic)
}

// watcher runs in the page before its own code: it keeps what a test looks at, and lets it make a sound in
// front of the microphone. It changes nothing of what the page does.
const watcher = `(() => {
  const seen = window.seen = { peers: [], violations: [], micOn: () => seen.mic?.getAudioTracks()[0].enabled, makeSound: () => {} };
  addEventListener("securitypolicyviolation", (e) => seen.violations.push(e.violatedDirective + " " + e.blockedURI));
  window.RTCPeerConnection = class extends RTCPeerConnection { constructor(...a) { super(...a); seen.peers.push(this); } };
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
  seen.connected = () => seen.peers.at(-1)?.connectionState === "connected";
  seen.packets = async () => {
    const count = { sent: 0, received: 0, lost: 0 };
    (await seen.peers.at(-1).getStats()).forEach((s) => {
      if (s.type === "outbound-rtp") count.sent += s.packetsSent;
      if (s.type === "inbound-rtp") { count.received += s.packetsReceived; count.lost += s.packetsLost; }
    });
    return count;
  };
  seen.streamed = {}; // by work: how much of its output the page showed at a time
  const look = () => {
    for (const card of document.querySelectorAll(".card:not(.over)")) {
      const shown = (seen.streamed[card.getAttribute("aria-labelledby")] ??= []), size = card.querySelector(".output")?.textContent.length ?? 0;
      if (size && shown.at(-1) !== size) shown.push(size);
    }
  };
  addEventListener("DOMContentLoaded", () => new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true }));
})()`

// A tab is the page in a browser of its own.
type tab struct {
	*webtest.Tab
	t   *testing.T
	ctx context.Context
}

// openTab opens an empty tab.
func openTab(t *testing.T, browser context.Context, width, height int64) *tab {
	t.Helper()
	p := webtest.Open(t, browser, width, height, watcher)
	return &tab{p, t, p.Ctx}
}

// inPage makes an action of a command of the browser whose answer nobody needs.
func inPage[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return webtest.Call(command, params)
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) { p.t.Helper(); p.Do(steps...) }
func (p *tab) until(expression string)                    { p.t.Helper(); p.Until(expression) }
func (p *tab) shows(text string)                          { p.t.Helper(); p.Shows(text) }
func (p *tab) press(keys ...string)                       { p.t.Helper(); p.Press(keys...) }
func (p *tab) scheme(name string)                         { p.t.Helper(); p.Scheme(name) }

// eval gives the value of an expression; a promise is awaited.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	return webtest.Eval[T](p.Tab, expression)
}

// quiet holds the page to an empty console and to its content security policy. What is lost on purpose may
// be told: an answer that says that the key is missing, and a service that is away.
func (p *tab) quiet(allowed ...string) {
	p.t.Helper()
	for _, line := range p.Console() {
		fine := false
		for _, words := range allowed {
			fine = fine || strings.Contains(line, words)
		}
		if !fine {
			p.t.Errorf("the console says %q", line)
		}
	}
	if broken := eval[[]string](p, `seen.violations`); len(broken) > 0 {
		p.t.Errorf("against the content security policy: %q", broken)
	}
}

// pictures keeps what the page looks like now, light and dark, if somebody wants to look at it.
func (p *tab) pictures(name string) {
	p.t.Helper()
	if os.Getenv("SWITCHBOARD_PICTURES") == "" {
		return
	}
	for _, scheme := range []string{"dark", "light"} {
		p.scheme(scheme)
		p.Picture(name + "-" + scheme)
	}
}

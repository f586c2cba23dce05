package main

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"switchboard/web/webtest"
)

// noUDP runs in the page before its own code: sound goes to a port where nobody is, as where a network lets no UDP
// through. It keeps what is sent over WebSockets, without the sound.
const noUDP = `(() => {
  const apply = RTCPeerConnection.prototype.setRemoteDescription;
  RTCPeerConnection.prototype.setRemoteDescription = function (answer) {
    return apply.call(this, { type: answer.type, sdp: answer.sdp.replace(/^(a=candidate:\S+ \d+ udp \d+ \S+) \d+/gim, "$1 9") });
  };
  const wire = window.wire = { sent: [], appends: 0, loud: 0, sockets: [] };
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (text) {
    const event = JSON.parse(text);
    if (!wire.sockets.includes(this)) wire.sockets.push(this);
    if (event.type !== "input_audio_buffer.append") wire.sent.push(event);
    else {
      wire.appends++;
      if (new Int16Array(Uint8Array.from(atob(event.audio), (c) => c.charCodeAt(0)).buffer).some((s) => Math.abs(s) > 3000)) wire.loud++;
    }
    return send.call(this, text);
  };
})()`

// cutShort is how often the voice model was told that something was not heard to its end.
const cutShort = `wire.sent.filter((e) => e.type === "conversation.item.truncate").length`

// TestChromiumWithoutUDP calls where no UDP gets through, neither to Switchboard nor to the voice model's server: after
// a few seconds the sound goes over a WebSocket by itself, the page says so, and all else is as in any call: also what
// was heard before the caller interrupted.
func TestChromiumWithoutUDP(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) { p.Model.Media = mediaDirect }) // in no hurry: a busy machine's sound comes late
	browser := startChromium(t, true)
	p := &tab{webtest.Open(t, browser, 1280, 900, watcher, noUDP)}
	link, err := r.link(r.t.Context(), "")
	must(t, err)
	p.Do(chromedp.Navigate(link))
	p.Until(`document.querySelectorAll("#app:not([hidden]) .machine").length > 2`)
	p.Choose("Call")
	p.Status("Listening")
	p.Shows("Sound over HTTPS.")
	p.Pictures("socket-call")
	id := r.theCall(false)
	p.Until(`wire.appends > 25 && wire.loud === 0`)
	p.Until(`document.querySelector("#remote").srcObject?.active && !document.querySelector("#remote").paused`)

	p.says("On bigpc continue the auth session and run the tests")
	p.voice("TestRefreshExpiredToken")
	r.allHeard()
	p.Status("Listening") // what was said was played to its end

	// The caller interrupts: the voice falls silent, and the model learns what was heard.
	before := eval[int](p, cutShort)
	p.interrupts(fmt.Sprintf(`wire.loud > 0 && %s > %d && wire.sent.at(-1).audio_end_ms > 0`, cutShort, before))
	eval[bool](p, `(seen.makeSound(false), true)`)
	p.Shows("I hear that you are speaking")
	p.Until(`[...document.querySelectorAll(".line.voice")].some((l) => /I am simulated/.test(l.textContent) && l.textContent.includes("stopped"))`)
	p.Status("Listening")

	p.Do(chromedp.Reload()) // the page comes back to its call by the same way, at once
	p.Shows("Sound over HTTPS.")
	p.Status("Listening")
	if now := r.theCall(false); now != id {
		t.Errorf("it was in %s, and is in %s", id, now)
	}
	p.Choose("Hang up")
	p.Status("Not in a call")
	r.noCallIsLeft()
	p.Quiet(noKeyYet)
}

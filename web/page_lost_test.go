package web

import (
	"strings"
	"testing"
)

// ownPeer keeps the page's own end of the next call as window.mine; the other side keeps the real class.
const ownPeer = `(() => {
  const Real = window.RTCPeerConnection;
  window.RTCPeerConnection = class extends Real {
    constructor(...args) {
      super(...args);
      if (!window.mine || window.mine.gone) window.mine = this;
    }
  };
  return true;
})()`

// lose tells the page that its connection is gone, as the browser does after a drop of the network.
const lose = `(() => {
  const peer = window.mine;
  peer.gone = true;
  Object.defineProperty(peer, "connectionState", { get: () => "failed" });
  peer.onconnectionstatechange();
  return true;
})()`

// What the voice of a lost call was doing is over when the call comes back: it is another call.
func TestPageCallComesBackClean(t *testing.T) {
	_, p := openCall(t, true)
	eval[bool](p, ownPeer)
	p.click("Call")
	p.until(`far.channel?.readyState === "open"`)
	p.status("bigpc and laptop are working")
	eval[bool](p, `([{ type: "response.created" }, { type: "output_audio_buffer.started" }, { type: "input_audio_buffer.speech_started" },
	  { type: "response.output_audio_transcript.delta", item_id: "a9", delta: "Half a sen" }].forEach(far.say), true)`)
	p.status("Listening")
	p.shows("Half a sen")
	eval[bool](p, lose)
	p.until(`far.calls === 2 && far.channel.readyState === "open"`)
	p.status("bigpc and laptop are working")
	p.shows("interrupted")
	p.quiet()
}

// A call that the other side ends before its events flow is told so, at once and without a guess.
func TestPageCallEndsWhileConnecting(t *testing.T) {
	_, p := openCall(t, true)
	eval[bool](p, `(far.ends = true)`)
	p.click("Call")
	p.shows("The call was ended by the other side.")
	p.status("Not in a call")
	if eval[bool](p, `document.body.innerText.includes("firewall")`) {
		t.Error("a firewall is blamed")
	}
	eval[bool](p, `(far.ends = false, true)`)
	p.click("Call")
	p.until(`far.channel?.readyState === "open"`)
	p.quiet()
}

// A call that is gone before its sound came up is told so as soon as Switchboard knows, not as a firewall's doing.
func TestPageCallIsGoneBeforeTheSound(t *testing.T) {
	_, p := openCall(t, true)
	eval[bool](p, `(far.gone = true)`)
	p.click("Call")
	p.until(`document.querySelector(".toast") && !document.querySelector("#status-text").textContent.includes("Connecting")`)
	if text := eval[string](p, `document.querySelector(".toast").innerText`); !strings.Contains(text, "The call was ended by the other side.") {
		t.Errorf("it says %q", text)
	}
	p.status("Not in a call")
	eval[bool](p, `(far.gone = false, true)`)
	p.click("Call")
	p.until(`far.channel?.readyState === "open"`)
	p.quiet()
}

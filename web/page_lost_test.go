package web

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// ownPeer keeps the page's own end of the newest call as window.mine.
const ownPeer = `(() => {
  const Real = window.RTCPeerConnection;
  window.RTCPeerConnection = class extends Real {
    createDataChannel(...args) { // the other side makes none
      window.mine = this;
      return super.createDataChannel(...args);
    }
  };
  return true;
})()`

// lose tells the page that its connection is gone, as the browser does after a drop of the network.
const lose = `(() => {
  const peer = window.mine;
  Object.defineProperty(peer, "connectionState", { get: () => "failed" });
  peer.onconnectionstatechange();
  return true;
})()`

// blocked lets the sound of no call get through, as a firewall does, and the browser says so; until far.udp.
const blocked = `(() => {
  const Real = window.RTCPeerConnection;
  window.RTCPeerConnection = class extends Real {
    createDataChannel(...args) {
      this.own = true;
      return super.createDataChannel(...args);
    }
    async setRemoteDescription(...args) {
      if (!this.own || far.udp) return super.setRemoteDescription(...args);
      Object.defineProperty(this, "connectionState", { get: () => "failed" });
      this.onconnectionstatechange();
    }
  };
  return true;
})()`

// socketSide answers the page's WebSockets inside the page itself, as otherSide answers its offers.
const socketSide = `(() => {
  far.sockets = "";
  window.WebSocket = class {
    static OPEN = 1;
    readyState = 1;
    bufferedAmount = 0;
    constructor(place) {
      const back = new URL(place).searchParams.get("call_id");
      far.sockets += back ? "again " : "new ";
      far.live = back ?? "rtc_socket";
      setTimeout(() => {
        this.onopen?.();
        this.onmessage({ data: JSON.stringify({ type: "handoff.call", call_id: far.live }) });
      });
    }
    send() {}
    close() {}
  };
  return true;
})()`

// The end of a call is told once, at once, with its reason where one was given and without a guess; the next one comes
// up.
func TestPageTellsHowACallEnds(t *testing.T) {
	t.Parallel()
	_, p := openCall(t, true)
	for _, end := range []struct{ how, told string }{
		{"broken", "The voice model is away. Wait."},
		{"gone", "The call was ended by the other side."}, // before its sound came up
		{"ends", "The call was ended by the other side."}, // before its events flow
		{"up", "Switchboard is shutting down. Call again in a moment."},
	} {
		eval[bool](p, `(far.channel = null, far.`+end.how+` = true)`)
		p.Click("Call")
		if end.how == "up" {
			p.Until(`far.channel?.readyState === "open"`)
			p.Status("bigpc and laptop are working")
			eval[bool](p, `(far.say({ type: "error", error: { code: "shutdown", message: "Switchboard is shutting down.", next: "Call again in a moment." } }), far.channel.close(), far.live = "", true)`)
		}
		p.Until(`document.querySelector(".toast") && !document.querySelector("#status-text").textContent.includes("Connecting")`)
		if got := eval[string](p, `[...document.querySelectorAll(".toast-words")].map((t) => t.innerText.replace(/\s+/g, " ")).join("; ")`); !strings.HasPrefix(got, end.told) || strings.Contains(got, "firewall") || strings.Contains(got, ";") {
			t.Errorf("%q: it tells %q", end.how, got)
		}
		p.Status("Not in a call")
		p.Click("Dismiss")
		eval[bool](p, `(far.broken = far.gone = far.ends = false, true)`)
		p.Click("Call")
		p.Until(`far.channel?.readyState === "open"`)
		p.Click("Hang up")
		p.Status("Not in a call")
	}
	p.quiet()
}

// A call whose sound never comes up is one call: the page does not open another one again and again.
func TestPageCallIsBlocked(t *testing.T) {
	t.Parallel()
	_, p := openCall(t, true)
	eval[bool](p, blocked)
	p.Click("Call")
	p.Shows("The sound connection did not come up.")
	p.Status("Not in a call")
	if calls := eval[int](p, `far.calls`); calls != 1 {
		t.Errorf("%d calls", calls)
	}
	// Where a WebSocket gets through, calls go over one, and come back so. After a change of network the next call
	// tries WebRTC again.
	eval[bool](p, socketSide)
	p.Click("Call")
	p.Shows("Sound over HTTPS.")
	eval[bool](p, `dispatchEvent(new Event("online"))`)
	p.Until(`far.sockets === "new again " && !document.querySelector("#hangup").hidden`)
	p.Shows("Sound over HTTPS.")
	eval[bool](p, `(far.udp = true)`)
	p.Click("Hang up")
	p.Click("Call")
	p.Until(`far.calls === 3 && far.channel?.readyState === "open"`)
	p.Until(`!document.body.innerText.includes("Sound over HTTPS.")`)
	p.Quiet("WebSocket connection") // which was tried, too: there is nobody
}

// What the voice was doing is over when a lost call comes back. It is the same call, or another where that has ended.
func TestPageCallComesBackClean(t *testing.T) {
	t.Parallel()
	w, p := openCall(t, true)
	eval[bool](p, ownPeer)
	p.Click("Call")
	p.Until(`far.channel?.readyState === "open"`)
	p.Status("bigpc and laptop are working")
	eval[bool](p, `([{ type: "response.created" }, { type: "output_audio_buffer.started" }, { type: "input_audio_buffer.speech_started" },
	  { type: "response.output_audio_transcript.delta", item_id: "a9", delta: "Half a sen" }].forEach(far.say), true)`)
	p.Status("Listening")
	p.Shows("Half a sen")
	eval[bool](p, lose)
	p.Until(`far.asked === "call_id=rtc_1&lowers=1" && far.channel.readyState === "open" && far.events.length`)
	p.Status("bigpc and laptop are working")
	p.Shows("stopped")
	if got := strings.Join(w.log(), ";"); strings.Contains(got, "hangup") {
		t.Errorf("it was hung up: %s", got)
	}
	eval[bool](p, `(far.live = "", true)`) // it is over there
	eval[bool](p, lose)
	p.Until(`far.calls === 2 && far.asked === "rejoin=1&events=handoff&media=direct&lowers=1" && far.channel.readyState === "open"`)
	p.Status("bigpc and laptop are working")
	p.quiet()
}

// After an outage the history is read again by itself. While it lasts, work tells when it was seen last and offers
// nothing to press, nobody claims to know what the machines do, and a call that it ended leaves a line.
func TestPageOutage(t *testing.T) {
	t.Parallel()
	w := newScene()
	workedYesterday(w)
	o := newOutage(t)
	_, base := serveBehind(t, w, nil, o.behind)
	p := openTab(t, startChromium(t, true), 1280, 800)
	p.loggedIn(base)
	eval[bool](p, otherSide)
	p.Click("Call")
	p.Until(`far.channel?.readyState === "open"`)
	p.Until(`document.querySelector("#status").dataset.tone !== "wait"`)
	eval[bool](p, `(far.live = "", far.channel.close(), true)`)
	const pills = `[...new Set([...document.querySelectorAll(".machine .pill")].map((e) => e.textContent))].join()`
	p.Until(pills + `.includes("Working")`)
	p.OpenMachines()
	p.Until(`[...document.querySelectorAll(".line.note")].at(-1)?.textContent.startsWith("The call was ended by the other side.")`)
	o.begin()
	p.Shows("The connection to Switchboard is lost.")
	p.Until(cardOf("h1") + `.querySelector(".pill").textContent.startsWith("Last seen ")`)
	p.Until(pills + ` === "Unknown"`)
	if eval[bool](p, `[...document.querySelectorAll(".machine-doing, .machine-problem")].some((e) => e.checkVisibility())`) {
		t.Error("it tells what the machines do")
	}
	if got := eval[string](p, `[...document.querySelectorAll(".card:not(.over) :is(.line-stop, .card-foot button), #stop-all, .question button:not([aria-disabled])")].filter((b) => b.checkVisibility()).map((b) => b.textContent).join()`); got != "" {
		t.Errorf("it offers %s", got)
	}
	p.Scheme("light")
	p.Picture("outage")
	p.Hit(`document.querySelector("[data-go=history]")`)
	p.Shows("This is read as soon as it is back.")
	o.end()
	p.Until(`document.querySelectorAll("#history .past-work").length === 3`)
	p.Until(cardOf("h1") + `.querySelector(".pill").textContent === "Working"`)
	p.Until(pills + `.includes("Working")`)
}

// An outage is when Switchboard is gone: its streams end, and nothing is answered.
type outage struct {
	t    *testing.T
	mu   sync.Mutex
	here context.Context    // Guarded by mu: ends when the outage begins
	stop context.CancelFunc // Guarded by mu
}

func newOutage(t *testing.T) *outage {
	o := &outage{t: t}
	o.end()
	t.Cleanup(o.begin)
	return o
}

func (o *outage) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stop()
}

func (o *outage) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.here, o.stop = context.WithCancel(context.Background())
}

// behind puts the outage before a handler.
func (o *outage) behind(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		here := o.here
		o.mu.Unlock()
		ctx, cancel := context.WithCancel(r.Context())
		defer context.AfterFunc(here, cancel)()
		defer cancel()
		if here.Err() != nil {
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		next.ServeHTTP(rw, r.WithContext(ctx))
	})
}

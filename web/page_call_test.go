package web

import (
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"switchboard/handoff"
)

// otherSide answers the page's offer inside the page itself: a real peer connection, with no voice model
// behind it. window.far is what tests see and steer.
const otherSide = `(() => {
  const far = window.far = { events: [], tracks: 0, calls: 0 };
  const real = window.fetch;
  window.fetch = async (url, init) => {
    if (url === "/fleet/calls") return new Response(JSON.stringify({ items: far.gone || !far.live ? [] : [{ id: far.live, held: far.held }] }));
    if (url === "/v1/realtime/calls/" + far.live + "/hangup") far.live = "";
    const [address, query] = url.split("?");
    if (address !== "/v1/realtime/calls") return real(url, init);
    far.asked = query;
    const back = new URLSearchParams(query).get("call_id");
    if (back && back !== far.live) return new Response(JSON.stringify({ error: { code: "not_found", message: "There is no such call." } }), { status: 404 });
    if (far.broken) return new Response(JSON.stringify({ error: { code: "voice_unreachable", message: "The voice model is away.", next: "Wait." } }), { status: 502 });
    if (!back) far.live = "rtc_" + ++far.calls;
    far.type = init.headers["Content-Type"];
    const pc = far.pc = new RTCPeerConnection();
    if (far.ends) { // it is up, and goes before the page has seen its channel open
      const stay = setInterval(() => {
        if (pc.connectionState !== "connected") return;
        clearInterval(stay);
        pc.close();
        far.live = "";
      }, 1);
    }
    pc.ondatachannel = ({ channel }) => {
      if (far.ends) return;
      far.channel = channel;
      channel.onmessage = ({ data }) => far.events.push(JSON.parse(data));
    };
    pc.ontrack = ({ track }) => { far.tracks++; far.track = track; };
    await pc.setRemoteDescription({ type: "offer", sdp: init.body });
    const context = new AudioContext();
    const sound = context.createMediaStreamDestination();
    const [section] = pc.getTransceivers();
    await section.sender.replaceTrack(sound.stream.getAudioTracks()[0]);
    section.direction = "sendrecv";
    section.setCodecPreferences(RTCRtpReceiver.getCapabilities("audio").codecs.filter((c) => c.mimeType === "audio/PCMU"));
    await pc.setLocalDescription(await pc.createAnswer());
    if (pc.iceGatheringState !== "complete") await new Promise((done) => { pc.onicegatheringstatechange = () => pc.iceGatheringState === "complete" && done(); });
    const { sdp } = pc.localDescription;
    if (far.gone) pc.close(); // before anything came up
    return new Response(sdp, { status: 201, headers: { "Content-Type": "application/sdp", Location: "/v1/realtime/calls/rtc_" + far.calls, ...(far.direct && { "Switchboard-Media": "direct" }) } });
  };
  far.say = (event) => far.channel.send(JSON.stringify(event));
  far.types = () => far.events.map((e) => e.type).join(" ");
  return true;
})()`

// micOn reports whether sound leaves the page.
const micOn = `window.mic?.getAudioTracks()[0].enabled`

// listenMic keeps the stream that the page gets from the browser.
const listenMic = `(() => {
  const real = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  navigator.mediaDevices.getUserMedia = async (wish) => (window.mic = await real(wish));
  return true;
})()`

func openCall(t *testing.T, mic bool) (*world, *tab) {
	t.Helper()
	w := newScene()
	w.questions = nil
	_, base := serve(t, w, withVoice)
	p := openTab(t, startChromium(t, mic), 1280, 800)
	p.loggedIn(base)
	eval[bool](p, otherSide)
	eval[bool](p, listenMic)
	return w, p
}

func TestPageCall(t *testing.T) {
	t.Parallel()
	w, p := openCall(t, true)
	p.Status("Not in a call")
	p.TabTo("Call")
	p.Press("\r")
	p.Status("bigpc and laptop are working")
	p.Until(`window.far.events.length === 2 && window.far.tracks === 1`)
	if got := eval[string](p, `JSON.stringify(far.events[0]) + far.type`); got != `{"type":"session.update","session":{"type":"realtime","audio":{"input":{"transcription":{"model":"gpt-4o-mini-transcribe"},"turn_detection":{"type":"server_vad","interrupt_response":false}}}}}application/sdp` {
		t.Errorf("first event %s", got)
	}
	if focus := eval[string](p, `document.activeElement.id`); focus != "mute" {
		t.Errorf("the focus went to %q", focus)
	}
	p.Shows("Telephone quality.")
	p.Until(micOn)
	p.Press(" ")
	p.Until(`!` + micOn + ` && document.querySelector("#mute").getAttribute("aria-pressed") === "true"`)
	p.Press(" ")
	p.Until(micOn)

	// The voice speaks and is stopped.
	eval[bool](p, `(`+sceneTalk+`.forEach(far.say), true)`)
	p.Status("Speaking")
	p.Shows("On it. bigpc goes on in the auth refactor session; I will tell you when the tests pass.")
	p.Shows("Fix the failing token test on bigpc.")
	p.TabTo("Stop talking")
	p.Press("\r")
	p.Until(`far.types() === "session.update response.create response.cancel output_audio_buffer.clear"`)
	eval[bool](p, `(far.say({ type: "output_audio_buffer.cleared", response_id: "r2" }), far.say({ type: "response.done", response: { id: "r2", status: "cancelled", output: [{ id: "a2" }] } }), true)`)
	p.Shows("stopped")
	p.Status("bigpc and laptop are working")

	// Typing goes the same way.
	p.types("What is mini doing?")
	p.Until(`far.types().endsWith("conversation.item.create response.create")`)
	if got := eval[string](p, `(({ item: { id, ...item } }) => (id.length <= 32 && id) ? JSON.stringify(item) : "no id")(far.events.at(-2))`); got != `{"type":"message","role":"user","content":[{"type":"input_text","text":"What is mini doing?"}]}` {
		t.Errorf("typed item %s", got)
	}
	p.Until(`document.querySelector("#say").value === ""`)
	eval[bool](p, `(far.say({ type: "conversation.item.added", item: far.events.at(-2).item }), true)`)
	p.Until(`document.querySelectorAll(".line.you").length === 3`)

	// Errors of the voice model that mean something are told, others not.
	eval[bool](p, `(far.say({ type: "error", error: { code: "response_cancel_not_active", message: "Nothing to cancel." } }), far.say({ type: "error", error: { code: "server_error", message: "The model stumbled." } }), true)`)
	p.Shows("The model stumbled.")
	p.Until(`!document.body.innerText.includes("Nothing to cancel.")`)

	p.TabTo("Hang up")
	p.Press("\r")
	p.Status("Not in a call")
	p.Shows("You hung up. Work goes on; its result will be here.")
	p.Until(`window.mic.getAudioTracks()[0].readyState === "ended" && document.activeElement.id === "start"`)
	w.logged(t, "hangup owner rtc_1")
	p.quiet()
}

func TestPagePushToTalk(t *testing.T) {
	t.Parallel()
	_, p := openCall(t, true)
	p.TabTo("Sound")
	p.Press("\r")
	p.Until(`document.querySelector("#sound-menu:popover-open")`)
	p.Hit(`document.querySelector("input[value=hold]")`)
	p.Press("\x1b") // Escape
	p.Hit(`document.querySelector("#start")`)
	p.Until(`document.querySelector("#hold:not([hidden])") && ` + micOn + ` === false`)
	p.Status("bigpc and laptop are working") // the page itself knows that the call is up
	p.Hit(`document.querySelector("#transcript")`)
	p.Space(input.DispatchKeyEventTypeKeyDown, false)
	p.Until(micOn)
	p.Space(input.DispatchKeyEventTypeKeyDown, true)
	p.Shows("Talking…")
	p.Space(input.DispatchKeyEventTypeKeyUp, false)
	p.Until(`!` + micOn)
	// In the text box Space is a space.
	p.Do(chromedp.Focus(chromedp.ID("say")))
	p.Space(input.DispatchKeyEventTypeKeyDown, false)
	p.Space(input.DispatchKeyEventTypeKeyUp, false)
	p.Until(`document.querySelector("#say").value === " " && !` + micOn)
	// Who clicked a button and then holds Space wants to talk, not to press it again.
	eval[bool](p, `(far.say({ type: "output_audio_buffer.started", response_id: "r9" }), true)`)
	p.Hit(`document.querySelector("#quiet")`)
	p.Space(input.DispatchKeyEventTypeKeyDown, false)
	p.Until(micOn)
	p.Space(input.DispatchKeyEventTypeKeyUp, false)
	p.Until(`!` + micOn)
	// Who came to a button by keyboard presses it.
	p.TabTo("Hang up")
	p.Space(input.DispatchKeyEventTypeKeyDown, false)
	p.Space(input.DispatchKeyEventTypeKeyUp, false)
	p.Status("Not in a call")
	// The button itself, with the mouse. The choice is kept.
	p.Click("Call")
	p.Until(`far.calls === 2 && !document.querySelector("#hold").hidden`)
	p.Status("bigpc and laptop are working")
	box := eval[[]float64](p, `(({ left, top, width, height }) => [left + width / 2, top + height / 2])(document.querySelector("#hold").getBoundingClientRect())`)
	p.Do(chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, box[0], box[1], chromedp.ButtonType(input.MouseButtonLeft), chromedp.ClickCount(1)))
	p.Until(micOn)
	p.Do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, box[0], box[1], chromedp.ButtonType(input.MouseButtonLeft), chromedp.ClickCount(1)))
	p.Until(`!` + micOn)
	p.Picture("hold-to-talk")
	p.quiet()
}

func TestPageWithoutMicrophone(t *testing.T) {
	t.Parallel()
	_, p := openCall(t, false)
	p.Click("Call")
	p.Until(`document.querySelector("#status").textContent.includes("Microphone off: this page may not use it. Allow it in the address bar.")`)
	p.Until(`far.types() === "session.update response.create"`) // what is said before the page's own end is open takes the greeting's place
	p.types("Run the tests on bigpc.")
	p.Until(`far.types() === "session.update response.create conversation.item.create response.create"`)
	p.Picture("no-microphone")
	p.Click("Hang up")
	p.Status("Not in a call")
	p.quiet()
}

// Somebody who is in a call elsewhere moves it here, with what they have typed: there are never two. A call whose page
// is gone gives way, and nobody is asked. A call that was kept for a page that never came is not kept beyond its end,
// and who logs out leaves none behind: it is hung up while the login still may.
func TestPageMovesTheCall(t *testing.T) {
	t.Parallel()
	w, p := openCall(t, true)
	eval[bool](p, `(far.live = "rtc_other", true)`)
	p.Click("Call")
	p.Shows("You are in a call in another window or on another device.")
	p.Status("Not in a call")
	p.Click("Dismiss")
	p.types("Run the tests on bigpc.")
	p.Shows("Move the call here")
	p.Until(`document.querySelector("#say").value.trim() + far.calls === "Run the tests on bigpc.0"`)
	p.Picture("move-the-call")
	p.Click("Move the call here")
	p.Until(`far.types() === "session.update conversation.item.create response.create"`)
	p.Until(`document.querySelector("#say").value === ""`)
	w.logged(t, "hangup owner rtc_other")
	// A call that this window has left is none elsewhere, also while it ends.
	p.Click("Hang up")
	p.Status("Not in a call")
	eval[bool](p, `(far.live = "rtc_1", true)`)
	p.Click("Call")
	p.Until(`far.calls === 2 && far.channel.readyState === "open"`)
	p.Click("Hang up")
	p.Status("Not in a call")
	eval[bool](p, `(far.live = "rtc_gone", far.held = true)`)
	p.Click("Call")
	p.Until(`far.calls === 3 && far.channel?.readyState === "open"`)
	if eval[bool](p, `Boolean(document.querySelector(".toast"))`) {
		t.Error("somebody is asked")
	}
	const kept = `sessionStorage.getItem("switchboard-call") !== null`
	eval[bool](p, `dispatchEvent(new Event("beforeunload", { cancelable: true }))`) // a download does that, and the page stays
	if !eval[bool](p, kept) {
		t.Error("the call is not kept")
	}
	p.Click("Hang up")
	p.Status("Not in a call")
	if eval[bool](p, `(dispatchEvent(new Event("pagehide")), `+kept+`)`) {
		t.Error("the next page would come back to a call that was hung up")
	}
	p.Click("Call")
	p.Until(`far.calls === 4 && far.channel.readyState === "open"`)
	eval[bool](p, `(() => {
	  const real = window.fetch;
	  far.order = [];
	  window.fetch = async (url, init) => {
	    if (/hangup$/.test(url)) {
	      await new Promise((resolve) => setTimeout(resolve, 100));
	      far.order.push("hung up");
	    }
	    if (init?.method === "DELETE") far.order.push("logged out");
	    return real(url, init);
	  };
	  return true;
	})()`)
	p.Click("Settings")
	p.Click("Log out here")
	p.Until(`document.querySelector("#login:not([hidden])")`)
	if got := eval[string](p, `far.order.join()`); got != "hung up,logged out" {
		t.Errorf("it %s", got)
	}
	p.quiet()
}

// The browser's "Duplicate" copies what a window keeps for a reload: the copy of a window in a call stays out of it.
func TestPageCopyStaysOutOfTheCall(t *testing.T) {
	t.Parallel()
	w, p := openCall(t, false)
	w.mu.Lock()
	w.onCalls = func(rw http.ResponseWriter, r *http.Request) {
		t.Errorf("the copy asked for %q", r.URL.RawQuery)
		handoff.Fault(handoff.CodeNotFound, "such call", "").Reply(rw, false)
	}
	w.mu.Unlock()
	p.types("Hello there")
	p.Until(`far.channel?.readyState === "open"`)
	eval[bool](p, `reached("store.js").then(({ dispatch }) => (dispatch({ type: "typed", id: "n", text: "Not sent" }), true))`)
	p.Until(`document.querySelectorAll(".line.you").length === 2`)
	if kept := eval[bool](p, `(() => { // a tab in the background keeps its call, and its words
	  Object.defineProperty(document, "hidden", { get: () => true, configurable: true });
	  dispatchEvent(new Event("visibilitychange"));
	  const some = (locks) => locks.some((l) => l.name.startsWith("switchboard-call"));
	  window.callLocks = async () => { const { held, pending } = await navigator.locks.query(); return { held: some(held), pending: some(pending) }; };
	  window.copy = window.open(location.href);
	  return ["call", "talk"].every((name) => copy.sessionStorage.getItem("switchboard-" + name) !== null);
	})()`); !kept {
		t.Error("a phone that ends the page loses the call, or the words")
	}
	p.Until(`copy.document.querySelector("#app:not([hidden]) .machine") && copy.sessionStorage.getItem("switchboard-call") === null`)
	if kept := eval[bool](p, `(async () => {
	  for (;;) {
	    const kept = copy.sessionStorage.getItem("switchboard-talk") !== null;
	    const { pending } = await navigator.locks.query();
	    if (!kept && pending.some((l) => l.name.startsWith("switchboard-page"))) return false;
	    if (!pending.some((l) => l.name.startsWith("switchboard-call"))) return true;
	    await new Promise((resolve) => setTimeout(resolve, 20));
	  }
	})()`); !kept {
		t.Error("what is not recalled yet is kept no longer")
	}
	if got := eval[string](p, `copy.document.querySelector("#status-text").textContent + copy.document.querySelectorAll(".toast").length`); got != "Not in a call0" {
		t.Errorf("the copy says %q", got)
	}
	p.Until(`copy.document.querySelector(".line.you")`)
	if lines := eval[string](p, `[...copy.document.querySelectorAll(".line.you .line-text")].map((l) => l.textContent).join()`); lines != "Hello there" {
		t.Errorf("the copy has the lines %q", lines)
	}
	// What goes out while the page is hidden is not sent again by the next page. One that is seen again keeps nothing.
	eval[bool](p, `reached("store.js").then(({ dispatch }) => (dispatch({ type: "delivery", id: "n", delivery: "sent" }), true))`)
	p.Until(`JSON.parse(sessionStorage.getItem("switchboard-talk")).entries.find((e) => e.id === "n").delivery === "sent"`)
	if kept := eval[bool](p, `(() => {
	  copy.close();
	  delete document.hidden;
	  dispatchEvent(new Event("visibilitychange"));
	  return ["call", "talk"].some((name) => "switchboard-" + name in sessionStorage);
	})()`); kept {
		t.Error("a page that is seen again keeps what is for the next one")
	}
	p.Status("bigpc and laptop are working")
	p.Click("Hang up")
	p.Status("Not in a call")
	eval[bool](p, `(async () => { while ((await callLocks()).held) await new Promise((resolve) => setTimeout(resolve, 20)); return true; })()`)
	p.quiet()
}

// A call by text opens no microphone and is answered in writing; with the microphone the voice talks.
func TestPageTypingCalls(t *testing.T) {
	t.Parallel()
	_, p := openCall(t, true)
	p.Click("What are my machines doing?A look at the fleet")
	p.Until(`far.types() === "session.update conversation.item.create response.create"`)
	p.Until(`document.querySelector(".line.you .line-text").textContent === "What are my machines doing?"`)
	if eval[bool](p, `Boolean(window.mic)`) {
		t.Error("typing opened the microphone")
	}
	const told = `JSON.stringify(far.events.filter((e) => e.type === "session.update").map((e) => e.session.output_modalities ?? null))`
	if got := eval[string](p, told); got != `[["text"]]` {
		t.Errorf("a call by text: %s", got)
	}
	eval[bool](p, `(far.say({ type: "response.output_text.delta", item_id: "a1", delta: "Good day." }), true)`)
	p.Shows("Good day.")
	const leaves = `dispatchEvent(new Event("beforeunload", { cancelable: true }))`
	p.Click("Use mic") // now it is wanted
	p.Until(micOn)
	p.Until(told + ` === '[["text"],["audio"]]'`)
	if !eval[bool](p, leaves) {
		t.Error("there is a warning, though the next page comes back to the call")
	}
	if eval[bool](p, `(() => { // where nothing can be kept, it would end the call
	  const real = Storage.prototype.setItem;
	  Storage.prototype.setItem = () => { throw new Error("full"); };
	  try { return `+leaves+`; } finally { Storage.prototype.setItem = real; }
	})()`) {
		t.Error("a call is left without a warning")
	}
	p.Until(`far.pc.getReceivers()[0].track && document.querySelector("#mute").textContent === "Mute"`)
	// The other side ends the call in good order.
	eval[bool](p, `(far.channel.close(), far.live = "", true)`)
	p.Shows("The call was ended by the other side.")
	p.Status("Not in a call")
	if !eval[bool](p, leaves) {
		t.Error("who is in no call is asked before they leave the page")
	}
	p.Click("Call")
	p.Until(told + ` === '[["text"],["audio"],null]'`)
	p.quiet()
}

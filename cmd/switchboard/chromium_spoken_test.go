package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"switchboard/realtime/simulator"
)

// watchesVoice notes that the page lowered the voice, also for a time that nobody looked, and that it stopped the voice
// by itself, and reads what the voice says.
const watchesVoice = `(() => {
  const volume = Object.getOwnPropertyDescriptor(HTMLMediaElement.prototype, "volume");
  Object.defineProperty(document.querySelector("#remote"), "volume", {
    get: volume.get,
    set(v) { seen.lowered ||= v < 1; volume.set.call(this, v); },
  });
  const send = RTCDataChannel.prototype.send;
  RTCDataChannel.prototype.send = function (text) {
    seen.cut ||= text.includes("output_audio_buffer.clear");
    return send.call(this, text);
  };
  seen.says = () => [...document.querySelectorAll(".line.voice")].at(-1).textContent;
  seen.stopped = () => seen.says().includes("stopped");
  return true;
})()`

// TestChromiumSpokenInto speaks into the voice, in a call whose sound does not go through Switchboard: a murmur lowers
// it and stops nothing, and what goes on has Switchboard stop it. The test tells the voice model's server when the
// caller speaks: what a browser sends may be many seconds late on a busy machine. The answer is longer than that.
func TestChromiumSpokenInto(t *testing.T) {
	t.Parallel()
	hears := make(chan simulator.Event)
	script := func(h simulator.Heard) []simulator.Move {
		if len(h.Texts) == 0 { // a sound, or nothing yet
			return nil
		}
		return []simulator.Move{simulator.Say{Text: strings.Repeat("It goes on. ", 500)}}
	}
	l := loopback(t)
	voice := carryingVoice(simulator.Config{Log: zap.NewNop(), Script: script, Events: hears}, unhurried)
	background(t, func(ctx context.Context) error { return voice(ctx, l) })
	r := start(t, func(p *plan) {
		p.Model = modelSettings{URL: "ws://" + l.Addr().String() + "/v1/realtime", Name: simulator.Name, Media: mediaDirect}
	})
	p := r.page(startChromium(t, true), 1280, 900)
	p.Choose("Call")
	p.Status("Listening")
	eval[bool](p, watchesVoice)
	// A machine may hold Switchboard up for so long that a murmur is none, or that the page cannot wait for it.
	for end := time.Now().Add(patience); ; {
		wrong := p.spokenInto(hears)
		if wrong == "" {
			break
		}
		if time.Now().After(end) {
			t.Fatal(wrong)
		}
		t.Log(wrong)
	}
	p.Choose("Hang up")
	p.Status("Not in a call")
	p.Quiet(noKeyYet)
}

// spokenInto has the voice answer, and speaks into that. It says what went wrong.
func (p *tab) spokenInto(hears chan<- simulator.Event) string {
	p.T.Helper()
	speaks := func(long time.Duration) {
		p.T.Helper()
		select {
		case hears <- simulator.Hear{For: long}:
		case <-time.After(patience):
			p.T.Fatal("no session of the voice model takes what the caller says")
		}
	}
	p.Until(`document.querySelector("#status[data-tone=live] #status-text")?.textContent === "Listening"`)
	p.says("Tell me")
	p.Status("Speaking")
	eval[bool](p, `(delete seen.upTo, seen.lowered = seen.cut = false, true)`)
	speaks(300 * time.Millisecond)
	p.Until(`seen.lowered && document.querySelector("#remote").volume === 1`)
	// It says more than in the time that the words of a murmur are waited for.
	p.Until(`seen.says().length > (seen.upTo ??= seen.says().length + 45) || seen.stopped()`)
	if eval[bool](p, `seen.stopped()`) {
		return "a murmur stopped the voice"
	}
	eval[bool](p, `(seen.lowered = false, true)`)
	speaks(time.Minute) // longer than it takes to stop the voice
	p.Until(`seen.stopped() && document.querySelector("#remote").volume === 1`)
	wrong := ""
	switch {
	case !eval[bool](p, `seen.lowered`): // it was silent by then
		wrong = "a murmur stopped the voice, in the end"
	case eval[bool](p, `seen.cut`):
		wrong = "the page stopped the voice, not Switchboard"
	default:
		return ""
	}
	speaks(time.Millisecond) // ends what goes on
	return wrong
}

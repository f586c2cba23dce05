package web

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
)

// soundThread gives pcm.js the few names of the thread that it runs in, and makes its parts at a rate.
const soundThread = `(async (rate) => {
  window.sampleRate = rate;
  window.told = [];
  window.parts = {};
  window.AudioWorkletProcessor = class { port = { postMessage: (m) => told.push(m) }; };
  window.registerProcessor = (name, part) => { parts[name] = part; };
  await import("/page/pcm.js?" + rate);
  return true;
})`

// TestPageSound: what the microphone heard at 48 or 44.1 kHz arrives at 24 kHz as loud and as high as it was, and
// without what 24 kHz cannot carry. Responses are heard one after the other, and the player tells how much was heard of
// what it drops.
func TestPageSound(t *testing.T) {
	t.Parallel()
	_, base := serve(t, newWorld(), func(*Config) {})
	p := openTab(t, startChromium(t, true), 800, 600)
	p.open(base)
	const hear = `((hertz) => {
	  told.length = 0;
	  const capture = new parts.capture({ processorOptions: { rate: 24000 } });
	  for (let n = 0; n < sampleRate; n += 128) capture.process([[Float32Array.from({ length: 128 }, (_, i) => Math.sin(2 * Math.PI * hertz * (n + i) / sampleRate))]]);
	  capture.process([[]]); // no microphone
	  const heard = told.flatMap((b) => [...new Int16Array(b)]), all = heard.slice(2400, -2400);
	  let sum = 0, ups = 0;
	  all.forEach((s, i) => { sum += s * s; ups += i > 0 && all[i - 1] < 0 && s >= 0; });
	  return JSON.stringify({ ms: heard.length / 24, rms: Math.sqrt(sum / all.length), hertz: ups / (all.length / 24000) });
	})`
	const loud = 32767 / math.Sqrt2
	for _, rate := range []int{48000, 44100, 24000} {
		eval[bool](p, soundThread+fmt.Sprintf(`(%d)`, rate))
		for _, tone := range []struct{ hertz, rms float64 }{{300, loud}, {1000, loud}, {6000, loud}, {16000, 0}} {
			if rate == 24000 && tone.rms == 0 {
				continue // there is no such sound
			}
			var got struct{ MS, RMS, Hertz float64 }
			must(t, json.Unmarshal([]byte(eval[string](p, hear+fmt.Sprintf(`(%v)`, tone.hertz))), &got))
			if math.Abs(got.RMS-tone.rms) > 700 || tone.rms > 0 && math.Abs(got.Hertz-tone.hertz) > 3 || got.MS < 950 ||
				got.MS > 1001 {
				t.Errorf("a second of %v Hz at %d Hz arrives as %+v, want a loudness of %.0f", tone.hertz, rate, got, tone.rms)
			}
		}
	}
	eval[bool](p, `(() => {
	  window.player = new parts.player();
	  window.give = (data) => player.port.onmessage({ data });
	  window.sound = (response, item, ms, value) => give({ response, item, content: 0, pcm: new Int16Array(24 * ms).fill(value).buffer });
	  window.play = (ms) => {
	    const out = new Float32Array(24 * ms);
	    player.process([], [[out]]);
	    return [...new Set(out)].join(" ");
	  };
	  return true;
	})()`)
	for _, step := range []struct{ what, do, heard, told string }{
		{"less than the lead waits", `sound("r1", "a", 60, 8192), play(10)`, `0`, `[]`},
		{"then it begins", `sound("r1", "a", 60, 8192), play(20)`, `0.25`, `[{"started":"r1"}]`},
		{"it runs dry, and waits for the lead anew", `play(110), sound("r1", "b", 10, 4096), play(5)`, `0`, `[]`},
		{"its end comes: the rest is heard, then the next response", `give({ ended: "r1" }), sound("r2", "c", 200, 16384), play(20)`,
			`0.125 0.5`, `[{"stopped":"r1"},{"started":"r2"}]`},
		{"it is dropped, and what waits behind it", `sound("r3", "d", 40, 16384), give({ ended: "r3" }), give({ clear: true }), play(10)`, `0`,
			`[{"cleared":[{"response":"r2","ended":true,"sounded":true,"clips":[{"item":"c","content":0,"ms":10}]},` +
				`{"response":"r3","ended":true,"sounded":false,"clips":[{"item":"d","content":0,"ms":0}]}]}]`},
		{"all that came was heard, and more would have come", `sound("r4", "e", 100, 8192), play(100), give({ clear: true }), play(10)`, `0`,
			`[{"started":"r4"},{"cleared":[{"response":"r4","ended":false,"sounded":true,"clips":[{"item":"e","content":0,"ms":100}]}]}]`},
		{"nothing is left to drop", `give({ clear: true }), play(10)`, `0`, `[{"cleared":[]}]`},
	} {
		if heard := eval[string](p, `(told.length = 0, `+step.do+`)`); heard != step.heard {
			t.Errorf("%s: %q is heard, want %q", step.what, heard, step.heard)
		}
		if told := eval[string](p, `JSON.stringify(told)`); told != step.told {
			t.Errorf("%s: told %s\nwant %s", step.what, told, step.told)
		}
	}
	p.quiet()
}

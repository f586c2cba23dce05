package rtc

import (
	"encoding/base64"
	"math"
	"testing"

	"github.com/tidwall/gjson"

	"switchboard/realtime/codec"
	"switchboard/realtime/events"
)

const (
	madeOfPCM = `{"type":"switchboard.session.created","session":{"audio":{"input":{"format":{"type":"audio/pcm",` +
		`"rate":24000}},"output":{"format":{"type":"audio/pcm","rate":24000}}}}}`
	asPCM = `{"type":"switchboard.session.updated","session":{"audio":{"input":{"format":{"type":"audio/pcm",` +
		`"rate":24000}},"output":{"format":{"type":"audio/pcm","rate":24000}}}}}`
	asPCMU = `{"type":"switchboard.session.updated","session":{"audio":{"input":{"format":{"type":"audio/pcmu"}},` +
		`"output":{"format":{"type":"audio/pcmu"}}}}}`
	saysNone = `{"type":"switchboard.session.updated","session":{"type":"realtime"}}`
)

// upstreams are voice models, which answer our update of the formats in different ways.
var upstreams = []struct {
	name   string
	script []string // what it says; "refused" is its error for our update, "silence" is that no answer comes
	factor int      // what it speaks then, when it was asked for µ-law
}{
	{"does as asked", []string{madeOfPCM, asPCMU}, 0},
	{"does as asked without a word of it", []string{madeOfPCM, saysNone}, 0},
	{"refuses", []string{madeOfPCM, "refused"}, 3},
	{"refuses and does not say what", []string{madeOfPCM,
		`{"type":"error","error":{"message":"unsupported format","param":"session.audio.input.format"}}`}, 3},
	{"refuses and never said what it speaks", []string{`{"type":"switchboard.session.created","session":{}}`, "refused"},
		3},
	{"ignores", []string{madeOfPCM, asPCM}, 3},
	{"ignores, and tells of its output alone", []string{`{"type":"switchboard.session.created","session":{}}`,
		`{"type":"switchboard.session.updated","session":{"audio":{"output":{"format":{"type":"audio/pcm"}}}}}`}, 3},
	{"ignores without a word", []string{madeOfPCM, "silence"}, 3},
	{"never speaks of formats", []string{`{"type":"switchboard.session.created","session":{}}`, "silence"}, 0},
	{"speaks at 16 kHz",
		[]string{`{"type":"switchboard.session.created","session":{"audio":{"input":{"format":{"type":"audio/pcm",` +
			`"rate":16000}},"output":{"format":{"type":"audio/pcm","rate":16000}}}}}`, "refused"}, 2},
	{"is of the old kind",
		[]string{`{"type":"switchboard.session.created","session":{"input_audio_format":"pcm16",` +
			`"output_audio_format":"pcm16"}}`, "refused"}, 3},
}

// TestModelFormats sends a tone both ways: it must arrive as that tone, and the client sees no refusal.
func TestModelFormats(t *testing.T) {
	for _, tc := range upstreams {
		t.Run(tc.name, func(t *testing.T) {
			p := newPlayer(narrow)
			settleOn(t, &p, tc.script)
			theirs := tone(1000, 8000*float64(max(tc.factor, 1)), 4000*max(tc.factor, 1))
			if tc.factor == 0 {
				theirs = mulawBytes(nil, pcmSamples(nil, theirs))
			}
			p.fromModel([]byte(`{"type":"response.output_audio.delta","response_id":"r","item_id":"i","delta":"` +
				base64.StdEncoding.EncodeToString(theirs) + `"}`))
			var heard []byte
			for frame, _ := p.next(); frame != nil && len(heard) < 3840; frame, _ = p.next() {
				heard = append(heard, frame...)
			}
			isTone(t, "the client hears", unMulaw(heard), 8000)
			said := p.formats.forModel(toneMulaw())
			if tc.factor == 0 {
				isTone(t, "the model hears", unMulaw(said), 8000)
				return
			}
			isTone(t, "the model hears", fromPCM(said), 8000*float64(tc.factor))
			update := p.fromClient([]byte(`{"type":"session.update","session":{"audio":{"output":{"voice":"cedar"}}}}`)).up[0]
			if kind := gjson.GetBytes(update, "session.audio.output.format.type").String(); kind != "audio/pcm" {
				t.Errorf("a client's update asks for %s", kind)
			}
		})
	}
}

// settleOn plays a model's answers to our update of the formats. The client must see no refusal.
func settleOn(t *testing.T, p *player, script []string) {
	t.Helper()
	p.formats.updateID = "sb_rtc_1"
	var down [][]byte
	for _, line := range script {
		switch line {
		case "refused":
			line = `{"type":"error","error":{"type":"invalid_request_error","message":"no","event_id":"sb_rtc_1"}}`
		case "silence":
			down = append(down, p.formatted(p.formats.assume()).down...)
			continue
		}
		down = append(down, p.fromModel([]byte(line)).down...)
	}
	for _, e := range down {
		if events.PeekType(e) == events.TypeError {
			t.Errorf("the client was told %s", e)
		}
	}
	if !p.formats.known {
		t.Fatal("not settled")
	}
}

// TestModelFormatsWide does the same with a client on G.722: a format that the model does not mention is taken to be as
// asked for.
func TestModelFormatsWide(t *testing.T) {
	for _, tc := range upstreams {
		t.Run(tc.name, func(t *testing.T) {
			p := newPlayer(wide)
			settleOn(t, &p, tc.script)
			factor := tc.factor
			if tc.name == "does as asked without a word of it" || tc.name == "never speaks of formats" {
				factor = 3
			}
			theirs := tone(1000, 8000*float64(max(factor, 1)), 4000*max(factor, 1))
			if factor == 0 {
				theirs = mulawBytes(nil, pcmSamples(nil, theirs))
			}
			p.fromModel([]byte(`{"type":"response.output_audio.delta","response_id":"r","item_id":"i","delta":"` +
				base64.StdEncoding.EncodeToString(theirs) + `"}`))
			var sound []byte
			for frame, _ := p.next(); frame != nil && len(sound) < 3840; frame, _ = p.next() {
				sound = append(sound, frame...)
			}
			isTone(t, "the client hears", unWide(sound), wideRate)
			said := p.formats.forModel(wideTone(1000, 8000))
			if factor == 0 {
				isTone(t, "the model hears", unMulaw(said), 8000)
				return
			}
			isTone(t, "the model hears", fromPCM(said), 8000*float64(factor))
		})
	}
}

// wideTone is a tone as G.722.
func wideTone(hz float64, samples int) []byte {
	pcm := make([]int16, samples)
	for i, s := range fromPCM(tone(hz, wideRate, samples)) {
		pcm[i] = int16(s)
	}
	return codec.NewG722Encoder().Encode(nil, pcm)
}

func unWide(sound []byte) (samples []float64) {
	for _, s := range codec.NewG722Decoder().Decode(nil, sound) {
		samples = append(samples, float64(s))
	}
	return samples
}

func isTone(t *testing.T, what string, samples []float64, rate float64) {
	t.Helper()
	samples = samples[min(len(samples), 400):]
	if all, part := power(samples, 1000, rate); len(samples) < 3000 || 10*math.Log10(part/(all-part)) < 25 {
		t.Errorf("%s %d samples with power %g, of the tone %g", what, len(samples), all, part)
	}
}

// The client does not see the answer to our update of the formats, only that to its own update.
func TestFormatsAreNotTheClients(t *testing.T) {
	p := newPlayer(narrow)
	p.formats.updateID = "sb_rtc_1"
	if got := p.fromModel([]byte(asPCMU)).down; len(got) != 0 || !p.formats.known {
		t.Errorf("the client sees %s", got)
	}
	own := `{"type":"session.updated","session":{"type":"realtime"}}`
	if got := p.fromModel([]byte(own)).down; len(got) != 1 || string(got[0]) != own {
		t.Errorf("of its own it sees %s", got)
	}
}

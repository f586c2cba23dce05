package rtc

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestPlayerKeepsEveryByte holds that sound of any grain comes out as it came in, then silence.
func TestPlayerKeepsEveryByte(t *testing.T) {
	d := newDeck()
	var in []byte
	for i := range 300 {
		piece := bytes.Repeat([]byte{byte(i)}, i%37*7)
		in = append(in, piece...)
		d.p.fromModel([]byte(`{"type":"response.output_audio.delta","response_id":"r","item_id":"i` + fmt.Sprint(i/10) +
			`","content_index":0,"delta":"` +
			base64.StdEncoding.EncodeToString(piece) + `"}`))
		d.do("play 1")
	}
	d.do(made("r"))
	d.do("play 10000")
	if !bytes.HasPrefix(d.bits, in) || len(bytes.Trim(d.bits[len(in):], "\xff")) != 0 {
		t.Errorf("%d bytes came out of %d", len(d.bits), len(in))
	}
	if !d.p.idle() || d.p.queued != 0 {
		t.Errorf("%d bytes are left", d.p.queued)
	}
}

// TestPlayerKeepsSamplesTogether: a response that ends in the middle of a sample turns none of what follows into noise,
// also while it is cut off, and a sample that comes in two pieces is whole.
func TestPlayerKeepsSamplesTogether(t *testing.T) {
	soft := bytes.Repeat([]byte{0xe8, 0x03}, 24*200) // 1,000, which the wrong way round is far louder
	say := func(d *deck, response string, sound []byte) {
		d.p.fromModel([]byte(`{"type":"response.output_audio.delta","response_id":"` + response +
			`","item_id":"i","content_index":0,"delta":"` +
			base64.StdEncoding.EncodeToString(sound) + `"}`))
	}
	for name, end := range map[string]string{"made": made("r"), "cut": spokenTo} {
		d := newDeck()
		d.p.fromModel([]byte(asPCM))
		d.do(making("r"))
		say(d, "r", soft[:4801])
		say(d, "r", soft[4801:len(soft)-1])
		d.do("play 3")
		d.do(end)
		d.do(making("s"))
		say(d, "s", soft)
		d.do(made("s"))
		d.do("play 40")
		for i, b := range d.bits {
			if v := fromMulaw(b); v < -200 || v > 1200 {
				t.Errorf("%s: sample %d is %d", name, i, v)
				break
			}
		}
	}
}

func TestPlayerIsBounded(t *testing.T) {
	d := newDeck()
	for range 11 {
		d.do(sounds("r", "i", 60_000, 1))
	}
	if d.p.queued != maxPlayback || d.p.dropped != 60_000*bytesPerMS {
		t.Errorf("%d queued, %d dropped", d.p.queued, d.p.dropped)
	}
	d.do("play 1")
	d.do(sounds("r", "i", 60_000, 1))
	if d.p.queued != maxPlayback {
		t.Errorf("%d queued", d.p.queued)
	}
	d.do(making("s"))
	d.do(spokenTo)
	d.do(made("r"))
	d.do(made("s"))
	if len(d.p.live)+len(d.p.muted)+len(d.p.queue)+d.p.queued != 0 {
		t.Errorf("it keeps %v %v %v", d.p.live, d.p.muted, d.p.queue)
	}
}

func TestPlayerKeepsItsFaultsToItself(t *testing.T) {
	d := newDeck()
	d.do(sounds("r", "i", 40, 1))
	up := d.p.cut(all).up
	cut, format := gjson.GetBytes(up[0], "event_id").String(), gjson.GetBytes(formatsEvent(d.p.ids.Next(), narrow),
		"event_id").String()
	if !strings.HasPrefix(cut, "sb_rtc_") || !strings.HasPrefix(format, "sb_rtc_") || cut == format {
		t.Errorf("ids %q %q", cut, format)
	}
	for id, want := range map[string]int{cut: 0, format: 1, "": 1, "client_1": 1} {
		if got := d.p.fromModel([]byte(`{"type":"error","error":{"event_id":"` + id + `"}}`)); len(got.down) != want {
			t.Errorf("%q: %d events", id, len(got.down))
		}
	}
}

func TestClientKeepsPCMU(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"formats", `{"type":"session.update","session":{"audio":{"input":{"format":{"type":"audio/pcm","rate":24000},` +
			`"turn_detection":null},"output":{"voice":"cedar"}}}}`,
			`{"type":"session.update","session":{"audio":{"input":{"format":{"type":"audio/pcmu"},"turn_detection":null},` +
				`"output":{"voice":"cedar","format":{"type":"audio/pcmu"}}}}}`},
		{"no audio", `{"type":"session.update","session":{"tracing":null}}`,
			`{"type":"session.update","session":{"tracing":null}}`},
		{"transcription", `{"type":"session.update","session":{"type":"transcription","audio":{"input":{}}}}`,
			`{"type":"session.update","session":{"type":"transcription","audio":{"input":{"format":{"type":"audio/pcmu"}}}}}`},
		{"one response", `{"type":"response.create","response":{"audio":{"output":{"format":{"type":"audio/pcm"}}}}}`,
			`{"type":"response.create","response":{"audio":{"output":{"format":{"type":"audio/pcmu"}}}}}`},
		{"a plain response", `{"type":"response.create"}`, `{"type":"response.create"}`},
		{"cut off", `{"type":"session.update","session":{"audio":{}}`, `{"type":"session.update","session":{"audio":{}}`},
		{"odd audio", `{"type":"session.update","session":{"audio":7}}`, `{"type":"session.update","session":{"audio":7}}`},
		{"another event", ` { "type" : "response.cancel" }`, ` { "type" : "response.cancel" }`},
	} {
		p := newPlayer(narrow)
		got := p.fromClient([]byte(tc.in))
		if len(got.up) != 1 || len(got.down) != 0 || string(got.up[0]) != tc.want {
			t.Errorf("%s: %s", tc.name, got.up)
		}
	}
}

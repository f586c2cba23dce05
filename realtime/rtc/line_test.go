package rtc

import (
	"bytes"
	"encoding/base64"
	"testing"

	"github.com/tidwall/gjson"

	"switchboard/realtime/codec"
	"switchboard/realtime/events"
	"switchboard/realtime/rtc/rtctest"
)

// TestLegSpeaksWide: with a browser that speaks G.722 the model gets and gives PCM at 24 kHz, and both hear a tone
// that no telephone carries.
func TestLegSpeaksWide(t *testing.T) {
	const hz = 5000
	l := newLoneOf(t, rtctest.NewWide, unhurried, channelLabel, false)
	first := gjson.ParseBytes(rtctest.Take(t, l.up, "the formats"))
	for _, side := range []string{"input", "output"} {
		if got := first.Get("session.audio." + side + ".format").Raw; got != pcmFormat {
			t.Errorf("the model is asked for %s as %s", got, side)
		}
	}
	<-l.Open
	l.Say(wideTone(hz, wideRate))
	var said []byte
	for len(said) < 2*20000 {
		audio, err := base64.StdEncoding.DecodeString(rtctest.Event(t, l.up, events.TypeAppend).Get("audio").String())
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, audio...)
	}
	if all, part := power(fromPCM(said)[2400:], hz, 24000); part < 0.99*all {
		t.Errorf("the model hears power %g, of the tone %g", all, part)
	}
	l.leg.Send([]byte(`{"type":"response.output_audio.delta","response_id":"r","item_id":"i","delta":"` +
		base64.StdEncoding.EncodeToString(tone(hz, 24000, 24000)) + `"}`))
	l.leg.Send([]byte(made("r")))
	var heard []byte
	for range 45 {
		p := rtctest.Take(t, l.Packets, "a frame")
		if p.PayloadType != 9 || len(p.Payload) != frameBytes {
			t.Fatalf("payload type %d of %d bytes", p.PayloadType, len(p.Payload))
		}
		heard = append(heard, p.Payload...)
	}
	if all, part := power(unWide(heard)[1600:], hz, wideRate); part < 0.99*all {
		t.Errorf("the client hears power %g, of the tone %g", all, part)
	}
}

// TestWideSilence: what follows on sound is heard as silence, and also a decoder that lost some of it comes near.
func TestWideSilence(t *testing.T) {
	for name, most := range map[string]int16{"all came": 8, "some was lost": 200} {
		w, d := formats{line: wide}, codec.NewG722Decoder()
		w.use(wide.modelFormat(), wide.modelFormat())
		sound := w.fromModel.convert(tone(3000, 24000, 24000))
		if most > 8 {
			sound = sound[:len(sound)/3]
		}
		d.Decode(nil, sound)
		var frame [frameBytes]byte
		var last []int16
		for range 25 { // half a second
			w.silence(frame[:])
			last = d.Decode(nil, frame[:])
		}
		for _, s := range last {
			if s > most || s < -most {
				t.Fatalf("%s: it sounds as %d", name, s)
			}
		}
	}
}

// TestWideGap: lost sound is what was heard before it, and then silence.
func TestWideGap(t *testing.T) {
	h := reorderBuffer{line: wide}
	piece := wideTone(1000, 2*frameBytes)
	h.add(heard{1, 0, piece, false})
	for i := range uint16(4) { // eight frames are missed
		h.add(heard{10 + i, uint32(9+i) * frameBytes, piece, false})
	}
	sound := h.take(1)
	if len(sound) < 9*frameBytes || !bytes.Equal(sound[frameBytes:2*frameBytes], piece) {
		t.Fatalf("%d bytes", len(sound))
	}
	if !bytes.Equal(sound[7*frameBytes:8*frameBytes], wideSilence) {
		t.Error("a long gap does not end in silence")
	}
}

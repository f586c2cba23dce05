package rtc

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"os"
	"testing"

	"switchboard/realtime/codec"
	"switchboard/realtime/events"
	"switchboard/realtime/rtc/rtctest"
)

// opusPackets are a second of Opus, and the PCM in it.
func opusPackets(t *testing.T) (packets [][]byte, pcm []byte) {
	t.Helper()
	rest, err := os.ReadFile("../codec/testdata/hybrid.opus")
	if err != nil {
		t.Fatal(err)
	}
	d := codec.NewOpusDecoder()
	var samples []int16
	for len(rest) > 2 {
		n := int(binary.BigEndian.Uint16(rest))
		packets, rest = append(packets, rest[2:2+n]), rest[2+n:]
		samples, _ = d.Decode(samples, packets[len(packets)-1])
	}
	return packets, pcmBytes(nil, samples)
}

// TestLegHearsOpus: what the caller says in Opus reaches the model as it is decoded, while they hear G.722.
func TestLegHearsOpus(t *testing.T) {
	l := newOpen(t, rtctest.NewOpus)
	packets, want := opusPackets(t)
	l.SayOpus(packets)
	var got []byte
	for len(got) < len(want)/2 { // the last of it waits for a whole piece
		e := rtctest.Event(t, l.up, events.TypeAppend)
		audio, err := base64.StdEncoding.DecodeString(e.Get("audio").String())
		if err != nil {
			t.Fatalf("got %s", e)
		}
		got = append(got, audio...)
	}
	if !bytes.HasPrefix(want, got) {
		t.Errorf("%d bytes of something else", len(got))
	}
	l.leg.Send([]byte(began("resp_1")))
	l.leg.Send([]byte(rtctest.Sound("resp_1", "item_1", 2000, 0)))
	if p := rtctest.Take(t, l.Packets, "what is heard"); p.PayloadType != 9 || len(p.Payload) != frameBytes {
		t.Errorf("it hears payload type %d, %d bytes", p.PayloadType, len(p.Payload))
	}
}

// TestDecoder: lost Opus is concealed by the sound before it, for as long as it would have lasted, so later sound is on
// time. A client may change to G.722, and packets that are not Opus are left out.
func TestDecoder(t *testing.T) {
	packets, _ := opusPackets(t)
	e := newDecoder()
	h := reorderBuffer{line: wide, decoder: e}
	say := func(sequence uint16, timestamp uint32, packet []byte, opus bool) int {
		h.add(heard{sequence, e.time(timestamp, opus), packet, opus})
		return len(h.take(1)) / tickBytes
	}
	begin := uint32(0xffffffff - 900) // its clock begins anew after the first packet
	for i, want := range []int{frameBytes, frameBytes} {
		if got := say(uint16(i), begin+uint32(i)*960, packets[i], true); got != want {
			t.Errorf("packet %d: %d ticks, want %d", i, got, want)
		}
	}
	ticks := 0
	const more = 3
	for i := 5; i < 5+more; i++ { // three are lost
		ticks += say(uint16(i), begin+uint32(i)*960, packets[i], true)
	}
	if ticks != (3+more)*frameBytes || h.lost != 3 {
		t.Errorf("%d ticks with three lost, and %d lost", ticks, h.lost)
	}
	if got := say(8, 70000, wideTone(1000, 2*frameBytes), false); got != frameBytes {
		t.Errorf("G.722: %d ticks", got)
	}
	if got := say(9, begin+9*960, []byte{0xff, 0xff}, true); got != 0 {
		t.Errorf("what is no Opus: %d ticks", got)
	}
}

// TestDecodedToModel: a model that hears something else gets the same sound in its format.
func TestDecodedToModel(t *testing.T) {
	for factor, want := range map[int]int{0: 160, 1: 320, 2: 640, 6: 1920} {
		if got := len(decodedToModel(format{factor: factor}).convert(make([]byte, 20*48))); got < want-4 || got > want+4 {
			t.Errorf("factor %d: %d bytes, want %d", factor, got, want)
		}
	}
	if decodedToModel(format{factor: 3}) != nil || decodedToModel(format{factor: -1}) != nil {
		t.Error("the same is converted, or what cannot be")
	}
}

func TestOpusOffers(t *testing.T) {
	for sdp, want := range map[string]byte{
		rtctest.GoodOffer: 0, // without G.722 it is not taken
		"v=0\r\nm=audio 9 RTP/SAVPF 109 9\r\na=rtpmap:109 opus/48000/2\r\na=rtpmap:9 G722/8000\r\n": 109,
		"v=0\nm=audio 9 RTP/SAVPF 96 9\na=rtpmap:96 OPUS/48000/2\n":                                 96,
		"v=0\r\nm=audio 9 RTP/SAVPF 300 9\r\na=rtpmap:300 opus/48000/2\r\n":                         0,
		"v=0\r\nm=audio 9 RTP/SAVPF 9\r\na=rtpmap:9 G722/8000\r\n":                                  0,
	} {
		offer := Offer{SDP: sdp}
		if fault := offer.Check(); fault != nil || offer.opus != want {
			t.Errorf("%q: %d, %v", sdp, offer.opus, fault)
		}
	}
}

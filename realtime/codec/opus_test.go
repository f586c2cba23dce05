package codec

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// The packets of a second of something like speech as opusenc 0.2 makes them, each behind its length, and what opusdec
// makes of them at 24 kHz (testdata/NAME.opus, testdata/NAME.pcm). Each is another kind of Opus.
var opusKinds = []string{"silk", "hybrid", "celt"}

// opusPackets reads testdata/NAME.opus.
func opusPackets(t testing.TB, name string) (packets [][]byte) {
	t.Helper()
	for rest := testdata(t, name+".opus"); len(rest) > 2; {
		n := int(binary.BigEndian.Uint16(rest))
		packets, rest = append(packets, rest[2:2+n]), rest[2+n:]
	}
	return packets
}

// TestOpusAsOthersDo holds the decoder against opus-tools'. Opusdec resamples what it decodes at 48 kHz, so the same
// sound differs a little; at 40 dB nobody can tell.
func TestOpusAsOthersDo(t *testing.T) {
	const late = 156 // samples that opusdec leaves out at the beginning, for the encoder looks ahead
	for _, name := range opusKinds {
		var got []int16
		d := NewOpusDecoder()
		for i, p := range opusPackets(t, name) {
			var ok bool
			if got, ok = d.Decode(got, p); !ok {
				t.Fatalf("%s: packet %d is not understood", name, i)
			}
		}
		want := testdata(t, name+".pcm")
		signal, noise := 0.0, 1.0
		for i := 2000; i < len(want)/2-2000; i++ {
			x := float64(int16(binary.LittleEndian.Uint16(want[2*i:])))
			signal += x * x
			noise += (x - float64(got[i+late])) * (x - float64(got[i+late]))
		}
		if ratio := 10 * math.Log10(signal/noise); ratio < 40 {
			t.Errorf("%s: %.1f dB", name, ratio)
		}
	}
}

// TestOpusTakesAnything: what is no Opus gives no sound and breaks nothing, also in the middle of some.
func TestOpusTakesAnything(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	good := opusPackets(t, "hybrid")
	d := NewOpusDecoder()
	var pcm []int16
	for i := range 3000 {
		p := append([]byte(nil), good[i%len(good)]...)
		switch i % 3 {
		case 0:
			p[random.IntN(len(p))] ^= byte(1 + random.IntN(255))
		case 1:
			p = p[:random.IntN(len(p))]
		default:
			p = make([]byte, random.IntN(200))
			for k := range p {
				p[k] = byte(random.Uint32())
			}
		}
		if pcm, _ = d.Decode(pcm[:0], p); len(pcm) > maxOpus {
			t.Fatalf("%d samples", len(pcm))
		}
	}
	d = NewOpusDecoder()
	if pcm, ok := d.Decode(nil, good[0]); !ok || len(pcm) != OpusRate/50 {
		t.Errorf("%d samples, %t", len(pcm), ok)
	}
}

func BenchmarkOpus(b *testing.B) {
	for _, name := range opusKinds {
		b.Run(name, func(b *testing.B) {
			packets := opusPackets(b, name)
			d := NewOpusDecoder()
			var pcm []int16
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				pcm, _ = d.Decode(pcm[:0], packets[i%len(packets)])
			}
		})
	}
}

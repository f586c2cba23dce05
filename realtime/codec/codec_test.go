package codec

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// tone returns a sine of a frequency in hertz, at half of full scale.
func tone(hz float64, rate, samples int) []int16 {
	out := make([]int16, samples)
	for i := range out {
		out[i] = int16(math.Round(16000 * math.Sin(2*math.Pi*hz*float64(i)/float64(rate))))
	}
	return out
}

// speechLike returns half a second at 16 kHz that visits every level and band: a sweep to 7.5 kHz with a swelling
// loudness, then noise, then silence. testdata/speechlike.g722 is what ffmpeg 5.1 makes of it, and
// testdata/speechlike.pcm what ffmpeg makes of that.
func speechLike() []int16 {
	out := make([]int16, 8000)
	phase, seed := 0.0, uint32(1)
	for i := range out {
		switch {
		case i < 5000:
			phase += 2 * math.Pi * (50 + 1.5*float64(i)) / 16000
			out[i] = int16(math.Round(30000 * math.Pow(float64(i)/5000, 2) * math.Sin(phase)))
		case i < 7000:
			seed = seed*1664525 + 1013904223
			out[i] = int16(int32(seed) >> 18)
		}
	}
	return out
}

func samplesOf(b []byte) []int16 {
	out := make([]int16, len(b)/2)
	for i := range out {
		out[i] = int16(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return out
}

func bytesOf(pcm []int16) []byte {
	out := make([]byte, 0, 2*len(pcm))
	for _, s := range pcm {
		out = binary.LittleEndian.AppendUint16(out, uint16(s))
	}
	return out
}

func testdata(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// purity returns how far a tone stands above everything else in pcm, in dB.
func purity(pcm []int16, hz float64, rate int) float64 {
	rest := 0.0
	a, b := fit(pcm, hz, rate)
	for i, s := range pcm {
		x := 2 * math.Pi * hz * float64(i) / float64(rate)
		d := float64(s) - a*math.Cos(x) - b*math.Sin(x)
		rest += d * d
	}
	return 10 * math.Log10((a*a+b*b)/2*float64(len(pcm))/rest)
}

// level returns how loud a tone is in pcm, in dB of what [tone] makes.
func level(pcm []int16, hz float64, rate int) float64 {
	a, b := fit(pcm, hz, rate)
	return 20 * math.Log10(math.Max(math.Hypot(a, b), 1e-9)/16000)
}

// fit returns a cosine and a sine that together are nearest to pcm.
func fit(pcm []int16, hz float64, rate int) (a, b float64) {
	for i, s := range pcm {
		x := 2 * math.Pi * hz * float64(i) / float64(rate)
		a += float64(s) * math.Cos(x)
		b += float64(s) * math.Sin(x)
	}
	return 2 * a / float64(len(pcm)), 2 * b / float64(len(pcm))
}

// TestG722AsOthersDo holds the codec bit for bit against ffmpeg's.
func TestG722AsOthersDo(t *testing.T) {
	pcm := speechLike()
	code := NewG722Encoder().Encode(nil, pcm)
	theirs := testdata(t, "speechlike.g722")
	if !bytes.Equal(code, theirs) {
		t.Errorf("%d of %d bytes are coded differently", differing(code, theirs), len(theirs))
	}
	back := bytesOf(NewG722Decoder().Decode(nil, theirs))
	if want := testdata(t, "speechlike.pcm"); !bytes.Equal(back, want) {
		t.Errorf("%d of %d bytes are decoded differently", differing(back, want), len(want))
	}
}

func differing(a, b []byte) int {
	n := max(len(a), len(b)) - min(len(a), len(b))
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// TestPieces: sound that comes in pieces is the same as the whole.
func TestPieces(t *testing.T) {
	pcm := speechLike()
	whole := NewG722Encoder().Encode(nil, pcm)
	up := NewResampler(16000, 24000).Convert(nil, pcm)
	for _, size := range []int{1, 7, 160, 320, 333} {
		e, r := NewG722Encoder(), NewResampler(16000, 24000)
		var code []byte
		var more []int16
		for rest := pcm; len(rest) > 0; {
			n := min(size, len(rest))
			code, more = e.Encode(code, rest[:n]), r.Convert(more, rest[:n])
			rest = rest[n:]
		}
		if !bytes.Equal(code, whole) {
			t.Errorf("G.722 in pieces of %d differs", size)
		}
		if !bytes.Equal(bytesOf(more), bytesOf(up)) {
			t.Errorf("resampled in pieces of %d differs", size)
		}
	}
}

// TestWidebandTone: what a caller with G.722 says reaches a model at 24 kHz, and the other way, as a tone that
// stands 40 dB above everything else.
func TestWidebandTone(t *testing.T) {
	for _, hz := range []float64{300, 1000, 3000} {
		code := NewG722Encoder().Encode(nil, tone(hz, 16000, 16000))
		pcm := NewResampler(16000, 24000).Convert(nil, NewG722Decoder().Decode(nil, code))
		if got := purity(pcm[2400:], hz, 24000); hz == 1000 && got < 40 || got < 35 {
			t.Errorf("%v Hz from the caller: %.1f dB above the rest", hz, got)
		}
		down := NewResampler(24000, 16000).Convert(nil, tone(hz, 24000, 24000))
		back := NewG722Decoder().Decode(nil, NewG722Encoder().Encode(nil, down))
		if got := purity(back[1600:], hz, 16000); hz == 1000 && got < 40 || got < 35 {
			t.Errorf("%v Hz to the caller: %.1f dB above the rest", hz, got)
		}
	}
}

// TestResampler: tones keep their loudness and gain nothing; what the lower rate cannot carry is 50 dB down.
func TestResampler(t *testing.T) {
	for _, c := range []struct{ from, to int }{{8000, 24000}, {24000, 8000}, {16000, 24000}, {24000, 16000},
		{48000, 24000}, {24000, 48000}, {48000, 16000}, {8000, 16000}} {
		low := float64(min(c.from, c.to))
		for _, part := range []float64{0.02, 0.1, 0.2, 0.3, 0.4} {
			hz := math.Round(low * part)
			out := NewResampler(c.from, c.to).Convert(nil, tone(hz, c.from, c.from))
			if len(out) != c.to {
				t.Fatalf("%v: a second has %d samples", c, len(out))
			}
			steady := out[c.to/10 : c.to-c.to/10]
			if got := purity(steady, hz, c.to); got < 60 {
				t.Errorf("%v, %v Hz: %.1f dB above the rest", c, hz, got)
			}
			if got := level(steady, hz, c.to); math.Abs(got) > 0.2 {
				t.Errorf("%v, %v Hz: %+.2f dB", c, hz, got)
			}
		}
		if c.to > c.from {
			continue
		}
		for _, part := range []float64{0.56, 0.6, 0.7, 0.8, 0.95} {
			hz := math.Round(low * part)
			if hz >= float64(c.from)/2 {
				continue
			}
			out := NewResampler(c.from, c.to).Convert(nil, tone(hz, c.from, c.from))
			if got := loudness(out[c.to/10:]); got > -50 {
				t.Errorf("%v: %v Hz comes back at %.1f dB", c, hz, got)
			}
		}
	}
}

// loudness returns the level of everything in pcm, in dB of what [tone] makes.
func loudness(pcm []int16) float64 {
	sum := 0.0
	for _, s := range pcm {
		sum += float64(s) * float64(s)
	}
	return 10 * math.Log10(math.Max(sum/float64(len(pcm)), 1e-9)/(16000*16000/2))
}

// FuzzG722 holds that no byte upsets a decoder, and that silence after anything comes to rest.
func FuzzG722(f *testing.F) {
	f.Add([]byte{0, 255, 63, 64, 192}, []byte{1})
	f.Fuzz(func(t *testing.T, code, more []byte) {
		d := NewG722Decoder()
		if got := d.Decode(nil, code); len(got) != 2*len(code) {
			t.Fatalf("%d bytes gave %d samples", len(code), len(got))
		}
		e := NewG722Encoder()
		e.Encode(nil, samplesOf(more))
		quiet := d.Decode(nil, e.Encode(nil, make([]int16, 16000)))
		for _, s := range quiet[len(quiet)-100:] {
			if s > 64 || s < -64 {
				t.Fatalf("silence sounds as %d", s)
			}
		}
	})
}

func BenchmarkG722(b *testing.B) {
	pcm := tone(440, 16000, 320)
	e, d, code, out := NewG722Encoder(), NewG722Decoder(), []byte(nil), []int16(nil)
	b.ReportAllocs()
	for b.Loop() {
		code = e.Encode(code[:0], pcm)
		out = d.Decode(out[:0], code)
	}
}

func BenchmarkResample(b *testing.B) {
	pcm, out := tone(440, 16000, 320), []int16(nil)
	r := NewResampler(16000, 24000)
	b.ReportAllocs()
	for b.Loop() {
		out = r.Convert(out[:0], pcm)
	}
}

package rtc

import (
	"bytes"
	"math"
	"testing"
)

// tone is PCM16 of a sine.
func tone(hertz, rate float64, samples int) []byte {
	var b []byte
	for i := range samples {
		s := uint16(int16(12000 * math.Sin(2*math.Pi*hertz*float64(i)/rate)))
		b = append(b, byte(s), byte(s>>8))
	}
	return b
}

// power returns the mean power of samples, and of the part that is a sine of hertz.
func power(samples []float64, hertz, rate float64) (all, part float64) {
	var re, im float64
	for i, s := range samples {
		sin, cos := math.Sincos(2 * math.Pi * hertz * float64(i) / rate)
		re, im, all = re+s*cos, im+s*sin, all+s*s
	}
	n := float64(len(samples))
	return all / n, 2 * (re*re + im*im) / (n * n)
}

func fromPCM(b []byte) (samples []float64) {
	for i := 0; i+1 < len(b); i += 2 {
		samples = append(samples, float64(int16(uint16(b[i])|uint16(b[i+1])<<8)))
	}
	return samples
}

func unMulaw(b []byte) (samples []float64) {
	for _, m := range b {
		samples = append(samples, float64(fromMulaw(m)))
	}
	return samples
}

// pcmOf is a format of PCM at factor times 8 kHz.
func pcmOf(factor int) format { return format{factor: factor} }

// toneMulaw is half a second of 1 kHz on a telephone.
func toneMulaw() []byte { return mulawBytes(nil, pcmSamples(nil, tone(1000, 8000, 4000))) }

func TestMulaw(t *testing.T) {
	for b := range 256 {
		if got := toMulaw(fromMulaw(byte(b))); got != byte(b) && b != 0x7f { // two bytes stand for zero
			t.Errorf("%#x became %#x", b, got)
		}
	}
	for s, want := range map[int16]byte{0: 0xff, math.MaxInt16: 0x80, math.MinInt16: 0x00, 1000: 0xce, -1000: 0x4e} {
		if got := toMulaw(s); got != want {
			t.Errorf("%d became %#x, want %#x", s, got, want)
		}
	}
	if fromMulaw(0x80) != 32124 || fromMulaw(0x00) != -32124 || fromMulaw(0xff) != 0 {
		t.Error("the ends are elsewhere")
	}
}

func TestTranslator(t *testing.T) {
	for _, factor := range []int{1, 2, 3, 6} {
		rate := 8000 * float64(factor)
		down := unMulaw(narrow.fromModel(pcmOf(factor)).convert(tone(1000, rate, 4000*factor)))[200:]
		if all, part := power(down, 1000, 8000); len(down) != 3800 || 10*math.Log10(part/(all-part)) < 30 ||
			math.Abs(10*math.Log10(part/72e6)) > 1 {
			t.Errorf("down by %d: %d samples, power %g, of the tone %g", factor, len(down), all, part)
		}
		up := fromPCM(narrow.toModel(pcmOf(factor)).convert(toneMulaw()))[200*factor:]
		if all, part := power(up, 1000, rate); len(up) != 3800*factor || 10*math.Log10(part/(all-part)) < 30 ||
			math.Abs(10*math.Log10(part/72e6)) > 1 {
			t.Errorf("up by %d: %d samples, power %g, of the tone %g", factor, len(up), all, part)
		}
		if factor == 1 {
			continue
		}
		// What telephones cannot carry must not come back as another tone.
		alias := unMulaw(narrow.fromModel(pcmOf(factor)).convert(tone(6000, rate, 4000*factor)))[200:]
		if all, _ := power(alias, 2000, 8000); 10*math.Log10(all/72e6) > -30 {
			t.Errorf("down by %d: an alias of %g", factor, all)
		}
	}
}

// FuzzTranslator holds that pieces of any length give the same sound, and nothing makes it panic.
func FuzzTranslator(f *testing.F) {
	f.Add(tone(440, 24000, 300), uint8(3), uint8(7))
	f.Add([]byte{0, 0x80, 0xff, 0x7f, 1}, uint8(1), uint8(1))
	f.Fuzz(func(t *testing.T, sound []byte, factor, piece uint8) {
		n := max(1, int(factor)%7)
		size := 2 * max(1, int(piece))
		whole, parts := narrow.fromModel(pcmOf(n)), narrow.fromModel(pcmOf(n))
		want := whole.convert(sound)
		var got []byte
		for i := 0; i < len(sound); i += size {
			got = append(got, parts.convert(sound[i:min(i+size, len(sound))])...)
		}
		if !bytes.Equal(got, want) || len(want) != (len(sound)/2+n-1)/n {
			t.Fatalf("%d and %d bytes of %d", len(got), len(want), len(sound))
		}
		if up := narrow.toModel(pcmOf(n)).convert(want); len(up) != 2*n*len(want) {
			t.Fatalf("%d bytes of %d", len(up), len(want))
		}
	})
}

package rtc

import "math"

// mulawBias and mulawClip are those of G.711 in 16 bits.
const (
	mulawBias = 0x84
	mulawClip = 32635
)

// fromMulaw returns the sample of a µ-law byte (G.711).
func fromMulaw(b byte) int16 {
	b = ^b
	v := (int(b&0x0f)<<3 + mulawBias) << (b & 0x70 >> 4)
	if v -= mulawBias; b&0x80 != 0 {
		return int16(-v)
	}
	return int16(v)
}

// toMulaw returns the µ-law byte of a sample.
func toMulaw(s int16) byte {
	v, sign := int(s), byte(0)
	if v < 0 {
		v, sign = -v, 0x80
	}
	v = min(v, mulawClip) + mulawBias
	exponent := 7
	for mask := 0x4000; exponent > 0 && v&mask == 0; mask >>= 1 {
		exponent--
	}
	return ^(sign | byte(exponent<<4) | byte(v>>(exponent+3)&0x0f))
}

// tapsEach is the length of the filter on each side, in samples of the lower rate: its delay is 1 ms.
const tapsEach = 8

// A converter turns µ-law at 8 kHz into PCM16 at a multiple of that rate, or back. It keeps what crosses the
// border of two pieces, so that pieces of any number of samples give the same sound. It is pure.
type converter struct {
	factor int       // Set once: how many samples of PCM stand for one of µ-law
	taps   []float64 // Set once: a low-pass below 4 kHz, a Hamming-windowed sinc with the sum 1
	past   []float64 // the newest samples of the input, newest last, as many as the filter needs
	phase  int       // samples since the last that was put out, on the way down
}

// newConverter makes one for PCM at factor times 8 kHz.
func newConverter(factor int) *converter {
	c := &converter{factor: factor, taps: make([]float64, 2*tapsEach*factor+1)}
	sum, middle := 0.0, float64(tapsEach*factor)
	for i := range c.taps {
		x := (float64(i) - middle) / float64(factor)
		c.taps[i] = 0.54 + 0.46*math.Cos(math.Pi*(float64(i)-middle)/middle)
		if x != 0 {
			c.taps[i] *= math.Sin(math.Pi*x*passBand) / (math.Pi * x * passBand)
		}
		sum += c.taps[i]
	}
	for i := range c.taps {
		c.taps[i] /= sum
	}
	c.past = make([]float64, len(c.taps))
	return c
}

// passBand is the part of 4 kHz that is let through: telephones end at 3.4 kHz.
const passBand = 0.9

// down turns whole samples of little-endian PCM16 into µ-law.
func (c *converter) down(pcm []byte) []byte {
	out := make([]byte, 0, len(pcm)/2/c.factor+1)
	for i := 0; i+1 < len(pcm); i += 2 {
		c.push(float64(int16(uint16(pcm[i]) | uint16(pcm[i+1])<<8)))
		if c.phase++; c.phase < c.factor {
			continue
		}
		c.phase = 0
		sum := 0.0
		for k, tap := range c.taps {
			sum += tap * c.past[k]
		}
		out = append(out, toMulaw(sample(sum)))
	}
	return out
}

// up turns µ-law into little-endian PCM16: between two samples of the input stand zeros, which the filter fills.
func (c *converter) up(mulaw []byte) []byte {
	out := make([]byte, 0, 2*c.factor*len(mulaw))
	for _, b := range mulaw {
		c.push(float64(fromMulaw(b)))
		for p := range c.factor {
			sum := 0.0
			for k, i := p, len(c.past)-1; k < len(c.taps); k, i = k+c.factor, i-1 {
				sum += c.taps[k] * c.past[i]
			}
			s := uint16(sample(sum * float64(c.factor)))
			out = append(out, byte(s), byte(s>>8))
		}
	}
	return out
}

func (c *converter) push(s float64) {
	copy(c.past, c.past[1:])
	c.past[len(c.past)-1] = s
}

func sample(v float64) int16 {
	return int16(math.Round(min(max(v, math.MinInt16), math.MaxInt16)))
}

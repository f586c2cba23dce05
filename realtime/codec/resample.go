package codec

import "math"

// sideTaps is the half width of the filter, and so its delay, in samples of the lower rate: 1 ms at 16 kHz.
const sideTaps = 16

// passBand is the part of the lower rate's band that passes. What is above half that rate must be removed, or it would
// alias.
const passBand = 0.92

// beta is the parameter of the Kaiser window: the stop band is 60 dB down.
const beta = 5.65

// A Resampler converts PCM from one sample rate to another. The ratio of the rates must be that of two small numbers,
// as with 8, 16, 24 and 48 kHz. It keeps the state between two pieces.
type Resampler struct {
	up, down int         // Set once: each sample of the input stands for up/down of the output
	phases   [][]float32 // Set once: the taps for each position between two input samples, newest sample first
	past     []float32   // the newest input samples, oldest first, as many as a phase has taps
	at       int         // position of the next output sample after the newest input sample, in units of 1/up
}

// NewResampler returns a resampler that has had silence so far. The rates are in hertz.
func NewResampler(from, to int) *Resampler {
	common := gcd(from, to)
	r := &Resampler{up: to / common, down: from / common}
	wide := max(r.up, r.down)
	middle := sideTaps * wide
	taps, sum := make([]float64, 2*middle+1), 0.0
	for i := range taps {
		x := float64(i-middle) / float64(wide) * passBand
		edge := float64(i-middle) / float64(middle+1)
		taps[i] = sinc(x) * bessel(beta*math.Sqrt(1-edge*edge)) / bessel(beta)
		sum += taps[i]
	}
	long := (len(taps) + r.up - 1) / r.up
	for p := range r.up {
		phase := make([]float32, long)
		for k := range phase {
			if i := p + k*r.up; i < len(taps) {
				phase[k] = float32(taps[i] / sum * float64(r.up))
			}
		}
		r.phases = append(r.phases, phase)
	}
	r.past = make([]float32, long)
	return r
}

// Convert appends pcm at the new rate to dst.
func (r *Resampler) Convert(dst, pcm []int16) []int16 {
	if r.up == r.down {
		return append(dst, pcm...)
	}
	for _, s := range pcm {
		copy(r.past, r.past[1:])
		r.past[len(r.past)-1] = float32(s)
		for ; r.at < r.up; r.at += r.down {
			dst = append(dst, r.sample(r.phases[r.at]))
		}
		r.at -= r.up
	}
	return dst
}

func (r *Resampler) sample(taps []float32) int16 {
	sum, newest := float32(0), len(r.past)-1
	for k, tap := range taps {
		sum += tap * r.past[newest-k]
	}
	return saturate(int(math.Round(float64(sum))))
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

// bessel is the modified Bessel function of the first kind and order zero.
func bessel(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > 1e-12*sum; k++ {
		term *= (x / 2 / k) * (x / 2 / k)
		sum += term
	}
	return sum
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

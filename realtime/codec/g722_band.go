package codec

// The quantiser's initial step in each band.
const (
	lowStep  = 32
	highStep = 8
)

// Bounds of the logarithm of the step (LOGSCL, LOGSCH).
const (
	lowLogMax  = 18432
	highLogMax = 22528
)

// A band is the adaptive quantiser and predictor of one of the two bands.
type band struct {
	step int // the quantiser's scale (DETL, DETH)
	log  int // its logarithm (NBL, NBH)
	predictor
}

func newBand(step int) band { return band{step: step} }

// encodeLow codes a sample of the lower band in six bits.
func (b *band) encodeLow(x int) int {
	diff := clip(x - b.expected)
	size := magnitude(diff)
	i := 1
	for i < 30 && size >= lowLevels[i]*b.step>>12 {
		i++
	}
	code := lowPositive[i]
	if diff < 0 {
		code = lowNegative[i]
	}
	b.adaptLow(code)
	return code
}

// decodeLow returns the sample of the lower band.
func (b *band) decodeLow(code int) int {
	x := min(max(b.expected+b.step*lowSix[code]>>15, -16384), 16383)
	b.adaptLow(code)
	return x
}

// adaptLow updates quantiser and predictor with a code. They use only its upper four bits, as G.722 lets a network take
// the lower two for data.
func (b *band) adaptLow(code int) {
	code >>= 2
	diff := b.step * lowFour[code] >> 15
	b.log = min(max(b.log*127>>7+lowGrowth[lowClass[code]], 0), lowLogMax)
	b.step = scale(b.log, 8)
	b.learn(diff)
}

// encodeHigh codes a sample of the higher band in two bits.
func (b *band) encodeHigh(x int) int {
	diff := clip(x - b.expected)
	far := magnitude(diff) >= 564*b.step>>12
	code := 3
	switch {
	case diff < 0 && far:
		code = 0
	case diff < 0:
		code = 1
	case far:
		code = 2
	}
	b.adaptHigh(code)
	return code
}

// decodeHigh returns the sample of the higher band.
func (b *band) decodeHigh(code int) int {
	x := min(max(b.expected+b.step*highTwo[code]>>15, -16384), 16383)
	b.adaptHigh(code)
	return x
}

func (b *band) adaptHigh(code int) {
	diff := b.step * highTwo[code] >> 15
	growth := -214 // a small difference
	if code&1 == 0 {
		growth = 798
	}
	b.log = min(max(b.log*127>>7+growth, 0), highLogMax)
	b.step = scale(b.log, 10)
	b.learn(diff)
}

// scale returns the step whose logarithm is given (SCALEL, SCALEH).
func scale(log, shift int) int {
	v := logTable[log>>6&31]
	if shift -= log >> 11; shift < 0 {
		return v << -shift << 2
	}
	return v >> shift << 2
}

// magnitude returns the size of a difference as the quantiser counts it.
func magnitude(v int) int {
	if v < 0 {
		return -(v + 1)
	}
	return v
}

// A predictor predicts the next sample of a band from the last two samples and the last six differences.
type predictor struct {
	expected int    // the next sample (S)
	zeros    int    // the part of it that the differences make (SZ)
	diffs    [6]int // quantised differences, newest first (D1 to D6)
	weights  [6]int // of the differences (B1 to B6)
	past     [2]int // reconstructed samples, newest first (R1, R2)
	partial  [2]int // partly reconstructed ones, newest first (P1, P2)
	a1, a2   int    // weights of the samples
}

// learn updates the predictor with the quantised difference between the sample and its prediction.
func (p *predictor) learn(diff int) {
	sample, partial := clip(p.expected+diff), clip(p.zeros+diff)
	p.learnPoles(partial)
	p.learnZeros(diff)
	p.past = [2]int{sample, p.past[0]}
	p.partial = [2]int{partial, p.partial[0]}
	copy(p.diffs[1:], p.diffs[:5])
	p.diffs[0] = diff
	p.expect()
}

// learnPoles updates the weights of the samples (UPPOL1, UPPOL2).
func (p *predictor) learnPoles(partial int) {
	first, second := partial < 0 == (p.partial[0] < 0), partial < 0 == (p.partial[1] < 0)
	pull := clip(4 * p.a1)
	if first {
		pull = min(-pull, 32767)
	}
	a2 := pull>>7 + signed(second, 128) + p.a2*32512>>15
	a2 = min(max(a2, -12288), 12288)
	a1, bound := clip(signed(first, 192)+p.a1*32640>>15), clip(15360-a2)
	p.a1, p.a2 = min(max(a1, -bound), bound), a2
}

// learnZeros updates the weights of the differences (UPZERO).
func (p *predictor) learnZeros(diff int) {
	size := 128
	if diff == 0 {
		size = 0
	}
	for i, w := range p.weights {
		p.weights[i] = clip(signed(p.diffs[i] < 0 == (diff < 0), size) + w*32640>>15)
	}
}

// expect computes the next prediction (FILTEP, FILTEZ, PREDIC).
func (p *predictor) expect() {
	poles := clip(p.a1*clip(2*p.past[0])>>15 + p.a2*clip(2*p.past[1])>>15)
	zeros := 0
	for i, w := range p.weights {
		zeros += w * clip(2*p.diffs[i]) >> 15
	}
	p.zeros = clip(zeros)
	p.expected = clip(poles + p.zeros)
}

func signed(positive bool, v int) int {
	if positive {
		return v
	}
	return -v
}

package codec

// G.722 (ITU-T, 2012) at 64 kbit/s: two samples at 16 kHz become one byte. A quadrature mirror filter splits the sound
// into a lower and a higher band of 8 kHz each; the lower is coded in six bits a sample, the higher in two, each as the
// difference from a prediction. Numbers and names in parentheses are those of the recommendation; the tests use its
// test tables.

// A G722Encoder encodes PCM at 16 kHz as G.722. The zero value is not usable: see [NewG722Encoder].
type G722Encoder struct {
	low, high band    // Owned by the caller of Encode, as all here
	split     mirror  // splits the sound into the bands
	odd       []int16 // a sample whose pair has not come yet
}

// NewG722Encoder returns an encoder in its resting state.
func NewG722Encoder() *G722Encoder {
	return &G722Encoder{low: newBand(lowStep), high: newBand(highStep)}
}

// Encode appends the bytes of pcm to dst, one for each two samples. A last sample without its pair is kept for
// the next piece.
func (e *G722Encoder) Encode(dst []byte, pcm []int16) []byte {
	if len(e.odd) == 1 && len(pcm) > 0 {
		dst = append(dst, e.pair(e.odd[0], pcm[0]))
		e.odd, pcm = e.odd[:0], pcm[1:]
	}
	for len(pcm) >= 2 {
		dst = append(dst, e.pair(pcm[0], pcm[1]))
		pcm = pcm[2:]
	}
	e.odd = append(e.odd, pcm...)
	return dst
}

func (e *G722Encoder) pair(first, second int16) byte {
	e.split.push(int(first), int(second))
	even, odd := e.split.sums()
	low, high := (even+odd)>>14, (even-odd)>>14
	return byte(e.high.encodeHigh(high)<<6 | e.low.encodeLow(low))
}

// A G722Decoder decodes G.722 to PCM at 16 kHz. The zero value is not usable: see [NewG722Decoder].
type G722Decoder struct {
	low, high band   // Owned by the caller of Decode, as all here
	join      mirror // joins the bands
}

// NewG722Decoder returns a decoder in its resting state.
func NewG722Decoder() *G722Decoder {
	return &G722Decoder{low: newBand(lowStep), high: newBand(highStep)}
}

// Decode appends the samples of code to dst, two for each byte.
func (d *G722Decoder) Decode(dst []int16, code []byte) []int16 {
	for _, b := range code {
		low, high := d.low.decodeLow(int(b&0x3f)), d.high.decodeHigh(int(b>>6))
		d.join.push(low+high, low-high)
		even, odd := d.join.sums()
		dst = append(dst, saturate(even>>11), saturate(odd>>11))
	}
	return dst
}

// mirrorTaps are half of the symmetric filter's coefficients (table 11 of the recommendation).
var mirrorTaps = [12]int{3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11}

// A mirror is the delay line of the quadrature mirror filter.
type mirror struct{ x [24]int }

func (m *mirror) push(first, second int) {
	copy(m.x[:], m.x[2:])
	m.x[22], m.x[23] = first, second
}

// sums returns the filter's sums over every second sample: from the newest one (even), and from the one before it
// (odd).
func (m *mirror) sums() (even, odd int) {
	for i, tap := range mirrorTaps {
		odd += m.x[2*i] * tap
		even += m.x[2*i+1] * mirrorTaps[11-i]
	}
	return even, odd
}

func saturate(v int) int16 { return int16(min(max(v, -32768), 32767)) }

func clip(v int) int { return int(saturate(v)) }

package rtc

// mulawBias and mulawClip are the bias and the largest magnitude of G.711, for samples of 16 bits.
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

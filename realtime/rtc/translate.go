package rtc

import "switchboard/realtime/codec"

// wideRate is the sample rate of G.722, in hertz.
const wideRate = 16000

// A translator converts sound from one encoding and sample rate to another. It has state, so that pieces of any length
// give the same sound as the whole. Each direction of a call has its own.
type translator struct {
	decode  func(samples []int16, sound []byte) []int16 // Set once
	rate    *codec.Resampler                            // Set once
	encode  func(sound []byte, samples []int16) []byte  // Set once
	samples []int16                                     // of the piece that is being converted
	rated   []int16                                     // the same at the other rate
}

// toModel returns the translator from the line to a format of the model; nil: none is needed, or the format cannot be
// converted.
func (l line) toModel(f format) *translator {
	if f.factor < 0 || l == narrow && f.factor == 0 {
		return nil
	}
	t := &translator{decode: mulawSamples, encode: f.encoder(), rate: codec.NewResampler(8000, f.rate())}
	if l == wide {
		t.decode, t.rate = codec.NewG722Decoder().Decode, codec.NewResampler(wideRate, f.rate())
	}
	return t
}

// fromModel returns the translator for the other direction, likewise.
func (l line) fromModel(f format) *translator {
	if f.factor < 0 || l == narrow && f.factor == 0 {
		return nil
	}
	t := &translator{decode: mulawSamples, encode: mulawBytes, rate: codec.NewResampler(f.rate(), 8000)}
	if f.factor > 0 {
		t.decode = pcmSamples
	}
	if l == wide {
		t.encode, t.rate = codec.NewG722Encoder().Encode, codec.NewResampler(f.rate(), wideRate)
	}
	return t
}

// decodedToModel returns the translator from the PCM of a [decoder] to a format of the model; nil: as for toModel.
func decodedToModel(f format) *translator {
	if f.factor < 0 || f.factor == tickSamples {
		return nil
	}
	return &translator{decode: pcmSamples, encode: f.encoder(), rate: codec.NewResampler(codec.OpusRate, f.rate())}
}

// rate returns the samples in a second of a format that can be converted.
func (f format) rate() int { return 8000 * max(f.factor, 1) }

func (f format) encoder() func([]byte, []int16) []byte {
	if f.factor == 0 {
		return mulawBytes
	}
	return pcmBytes
}

// convert converts a piece of sound. A piece of PCM must have whole samples.
func (t *translator) convert(sound []byte) []byte {
	t.samples = t.decode(t.samples[:0], sound)
	t.rated = t.rate.Convert(t.rated[:0], t.samples)
	return t.encode(make([]byte, 0, 2*len(t.rated)), t.rated)
}

// pcmBytes appends samples as little-endian PCM16, and pcmSamples reads them.
func pcmBytes(sound []byte, samples []int16) []byte {
	for _, s := range samples {
		sound = append(sound, byte(s), byte(uint16(s)>>8))
	}
	return sound
}

func pcmSamples(samples []int16, sound []byte) []int16 {
	for i := 0; i+1 < len(sound); i += 2 {
		samples = append(samples, int16(uint16(sound[i])|uint16(sound[i+1])<<8))
	}
	return samples
}

// mulawBytes appends samples as µ-law, and mulawSamples reads them.
func mulawBytes(sound []byte, samples []int16) []byte {
	for _, s := range samples {
		sound = append(sound, toMulaw(s))
	}
	return sound
}

func mulawSamples(samples []int16, sound []byte) []int16 {
	for _, b := range sound {
		samples = append(samples, fromMulaw(b))
	}
	return samples
}

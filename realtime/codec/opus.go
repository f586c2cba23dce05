package codec

import "github.com/pion/opus"

// OpusRate is the sample rate to which Opus is decoded, in hertz: the rate of voice models.
const OpusRate = 24000

// maxOpus is the longest packet, 120 ms (RFC 6716, section 2.1.4), in samples.
const maxOpus = OpusRate * 120 / 1000

// An OpusDecoder decodes packets of Opus to PCM at [OpusRate]; two channels become one. A packet depends on those
// before it, so they must be given in order; lost packets are left out.
type OpusDecoder struct {
	decoder opus.Decoder
	pcm     [maxOpus]int16 // of the newest packet
}

// NewOpusDecoder returns a decoder in its initial state.
func NewOpusDecoder() *OpusDecoder {
	d := &OpusDecoder{}
	if d.reset() != nil {
		panic("codec: Opus cannot be decoded at 24 kHz") // the library's own table has it
	}
	return d
}

func (d *OpusDecoder) reset() (err error) {
	d.decoder, err = opus.NewDecoderWithOutput(OpusRate, 1)
	return err
}

// Decode appends the sound of a packet to dst; false: it is not Opus, and nothing is appended. If the library panics on
// a packet, which may hold anything, that counts as not Opus, and the decoder is reset.
func (d *OpusDecoder) Decode(dst []int16, packet []byte) (pcm []int16, ok bool) {
	defer func() {
		if recover() != nil {
			_, pcm, ok = d.reset(), dst, false
		}
	}()
	if len(packet) == 0 {
		return dst, false
	}
	n, err := d.decoder.DecodeToInt16(packet, d.pcm[:])
	if err != nil || n > len(d.pcm) {
		return dst, false
	}
	return append(dst, d.pcm[:n]...), true
}

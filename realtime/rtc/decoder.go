package rtc

import "switchboard/realtime/codec"

// tickSamples is how many decoded samples a tick of an RTP clock of 8 kHz has, and tickBytes how many bytes.
const (
	tickSamples = codec.OpusRate / 8000
	tickBytes   = 2 * tickSamples
)

// A decoder decodes the packets of a client that may send Opus to PCM16 at 24 kHz. Any packet may also be G.722. It is
// pure. Packets are given in order.
type decoder struct {
	opus    *codec.OpusDecoder
	g722    *codec.G722Decoder
	rate    *codec.Resampler // from the rate of G.722 to 24 kHz
	samples []int16          // of the newest packet

	begun bool
	spoke bool   // the last packet given to time was Opus
	last  uint32 // its timestamp, on the clock of its codec
	ticks uint32 // its timestamp on a clock of 8 kHz
}

func newDecoder() *decoder {
	return &decoder{
		opus: codec.NewOpusDecoder(), g722: codec.NewG722Decoder(), rate: codec.NewResampler(wideRate, codec.OpusRate),
	}
}

// time converts the timestamp of a packet to a clock of 8 kHz. The clock of Opus is 48 kHz (RFC 7587, section 4.1).
func (d *decoder) time(timestamp uint32, opus bool) uint32 {
	switch passed := int32(timestamp - d.last); {
	case !d.begun || opus != d.spoke:
		d.ticks += frameTicks
	case opus:
		d.ticks += uint32(passed / 6)
	default:
		d.ticks += uint32(passed)
	}
	d.begun, d.spoke, d.last = true, opus, timestamp
	return d.ticks
}

// decode returns the sound of a packet; nil: it cannot be decoded.
func (d *decoder) decode(packet []byte, opus bool) []byte {
	d.samples = d.samples[:0]
	if opus {
		d.samples, _ = d.opus.Decode(d.samples, packet)
	} else {
		d.samples = d.rate.Convert(d.samples, d.g722.Decode(nil, packet))
	}
	return pcmBytes(nil, d.samples)
}

// fillPCM appends ticks in place of sound that did not come: newest, fading out, if there is any, and silence.
func fillPCM(sound []byte, ticks int, newest []byte) []byte {
	const fade = fadeBytes * tickSamples
	for i := range ticks * tickSamples {
		s := 0
		if at := 2 * i; i < fade && len(newest) > 0 {
			at %= len(newest)
			s = int(int16(uint16(newest[at])|uint16(newest[at+1])<<8)) * (fade - i) / fade
		}
		sound = append(sound, byte(s), byte(uint16(s)>>8))
	}
	return sound
}

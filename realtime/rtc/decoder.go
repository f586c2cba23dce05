package rtc

import "switchboard/realtime/codec"

// tickSamples is how many samples of what was decoded a tick of the RTP clock of 8 kHz is, tickBytes in bytes.
const (
	tickSamples = codec.OpusRate / 8000
	tickBytes   = 2 * tickSamples
)

// A decoder turns the packets of a client that may speak Opus into PCM16 at 24 kHz. Such a client may speak G.722, too,
// from packet to packet. It is pure; packets are given in order.
type decoder struct {
	opus    *codec.OpusDecoder
	g722    *codec.G722Decoder
	rate    *codec.Resampler // of what G.722 carries
	samples []int16          // of the newest packet

	begun bool
	spoke bool   // the newest packet that was timed was Opus
	last  uint32 // its time, on its own clock
	ticks uint32 // the same on a clock of 8 kHz
}

func newDecoder() *decoder {
	return &decoder{
		opus: codec.NewOpusDecoder(), g722: codec.NewG722Decoder(), rate: codec.NewResampler(wideRate, codec.OpusRate),
	}
}

// time puts the time of a packet on a clock of 8 kHz. The clock of Opus is 48 kHz (RFC 7587, section 4.1).
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

// decode returns the sound of a packet; nil for one that cannot be understood.
func (d *decoder) decode(packet []byte, opus bool) []byte {
	d.samples = d.samples[:0]
	if opus {
		d.samples, _ = d.opus.Decode(d.samples, packet)
	} else {
		d.samples = d.rate.Convert(d.samples, d.g722.Decode(nil, packet))
	}
	return pcmBytes(nil, d.samples)
}

// fillPCM appends what stands for ticks of sound that did not come: what was heard before it, ever softer, or silence.
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

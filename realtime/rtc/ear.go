package rtc

import "switchboard/realtime/codec"

// tickSamples is how many samples of what an ear heard a tick of the RTP clock of 8 kHz is, tickBytes in bytes.
const (
	tickSamples = codec.OpusRate / 8000
	tickBytes   = 2 * tickSamples
)

// An ear hears a client that may speak Opus, and turns it into PCM16 at 24 kHz. Such a client may speak G.722 too, as
// it likes, from packet to packet. It is pure; packets are given in order.
type ear struct {
	opus    *codec.OpusDecoder
	g722    *codec.G722Decoder
	rate    *codec.Resampler // of what G.722 carries
	samples []int16          // of the newest packet

	begun bool
	spoke bool   // the newest packet that was timed was Opus
	last  uint32 // its time, on its own clock
	ticks uint32 // the same on a clock of 8 kHz
}

func newEar() *ear {
	return &ear{opus: codec.NewOpusDecoder(), g722: codec.NewG722Decoder(), rate: codec.NewResampler(wideRate, codec.OpusRate)}
}

// time puts the time of a packet on a clock of 8 kHz. The clock of Opus is 48 kHz (RFC 7587, section 4.1).
func (e *ear) time(timestamp uint32, opus bool) uint32 {
	switch passed := int32(timestamp - e.last); {
	case !e.begun || opus != e.spoke:
		e.ticks += frameTicks
	case opus:
		e.ticks += uint32(passed / 6)
	default:
		e.ticks += uint32(passed)
	}
	e.begun, e.spoke, e.last = true, opus, timestamp
	return e.ticks
}

// hear returns the sound of a packet; nil for one that cannot be understood.
func (e *ear) hear(packet []byte, opus bool) []byte {
	e.samples = e.samples[:0]
	if opus {
		e.samples, _ = e.opus.Decode(e.samples, packet)
	} else {
		e.samples = e.rate.Convert(e.samples, e.g722.Decode(nil, packet))
	}
	return pcmBytes(nil, e.samples)
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

// pcmBytes appends samples as PCM16.
func pcmBytes(sound []byte, samples []int16) []byte {
	for _, s := range samples {
		sound = append(sound, byte(s), byte(uint16(s)>>8))
	}
	return sound
}

// afterEar stands between what an ear heard and a model that hears something else than PCM at 24 kHz.
type afterEar struct {
	factor  int // as in format
	rate    *codec.Resampler
	samples []int16 // of the piece that is being turned
}

// ofEar returns what stands between what an ear heard and a format of the model; nil where both are the same.
func ofEar(f format) upward {
	switch f.factor {
	case -1, tickSamples:
		return nil
	}
	return &afterEar{factor: f.factor, rate: codec.NewResampler(codec.OpusRate, 8000*max(f.factor, 1))}
}

func (c *afterEar) up(sound []byte) []byte {
	c.samples = c.samples[:0]
	for i := 0; i+1 < len(sound); i += 2 {
		c.samples = append(c.samples, int16(uint16(sound[i])|uint16(sound[i+1])<<8))
	}
	rated := c.rate.Convert(nil, c.samples)
	if c.factor > 0 {
		return pcmBytes(nil, rated)
	}
	out := make([]byte, len(rated))
	for i, s := range rated {
		out[i] = toMulaw(s)
	}
	return out
}

package rtc

import (
	"bytes"

	"github.com/pion/webrtc/v4"
)

// A line is how sound travels between the browser and us. Both kinds take eight bytes a millisecond on an RTP
// clock of 8 kHz (RFC 3551, section 4.5.2, for why the clock of G.722 is not its 16 kHz).
type line int

const (
	// narrow is G.711 µ-law: the sound of a telephone, and what some models hear and speak themselves.
	narrow line = iota
	// wide is G.722: twice the band in the same bytes. Towards the model it is PCM at 24 kHz.
	wide
)

// codec is the line as pion registers it.
func (l line) codec() webrtc.RTPCodecParameters {
	c := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypePCMU, ClockRate: 8000, Channels: 1}
	if l == wide {
		c.MimeType = webrtc.MimeTypeG722
		return webrtc.RTPCodecParameters{RTPCodecCapability: c, PayloadType: 9}
	}
	return webrtc.RTPCodecParameters{RTPCodecCapability: c, PayloadType: 0}
}

// opusCodec is what the caller may speak beside the wide line.
var opusCodec = webrtc.RTPCodecParameters{
	RTPCodecCapability: webrtc.RTPCodecCapability{
		MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2, SDPFmtpLine: "minptime=10;useinbandfec=1",
	},
	PayloadType: 111,
}

// asked is what the model is asked to hear and speak.
func (l line) asked() format {
	if l == wide {
		return format{pcmFormat, 3}
	}
	return format{pcmuFormat, 0}
}

// wideSilence is a frame of the smallest differences that G.722 has, to either side in turn: a decoder in any
// state comes close to rest with it.
var wideSilence = bytes.Repeat([]byte{0xff, 0x7d}, frameBytes/2)

// silence fills a piece of sound, at most a frame, with silence.
func (l line) silence(sound []byte) {
	if l == wide {
		copy(sound, wideSilence)
		return
	}
	for i := range sound {
		sound[i] = silentByte
	}
}

// conceal returns what stands for a byte that was lost, i bytes behind the last that came: the byte of the sound
// before it, ever softer. G.722 has no softer byte; its decoder fades by itself in the silence after it.
func (l line) conceal(b byte, i int) byte {
	if l == wide {
		return b
	}
	return toMulaw(int16(int(fromMulaw(b)) * (fadeBytes - i) / fadeBytes))
}

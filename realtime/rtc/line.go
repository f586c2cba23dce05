package rtc

import (
	"bytes"

	"github.com/pion/webrtc/v4"
)

// A line is the codec between the browser and us. Both have eight bytes a millisecond and an RTP clock of 8 kHz (RFC
// 3551, section 4.5.2, says why that of G.722 is not its 16 kHz).
type line int

const (
	// narrow is G.711 µ-law: telephone quality, which some models take and give themselves.
	narrow line = iota
	// wide is G.722: twice the bandwidth in the same bytes. The model takes and gives PCM at 24 kHz.
	wide
)

// codec returns the parameters with which pion registers the line.
func (l line) codec() webrtc.RTPCodecParameters {
	c := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypePCMU, ClockRate: 8000, Channels: 1}
	if l == wide {
		c.MimeType = webrtc.MimeTypeG722
		return webrtc.RTPCodecParameters{RTPCodecCapability: c, PayloadType: 9}
	}
	return webrtc.RTPCodecParameters{RTPCodecCapability: c, PayloadType: 0}
}

// opusCodec is the codec that the client may send beside the wide line.
var opusCodec = webrtc.RTPCodecParameters{
	RTPCodecCapability: webrtc.RTPCodecCapability{
		MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2, SDPFmtpLine: "minptime=10;useinbandfec=1",
	},
	PayloadType: 111,
}

// modelFormat returns the format that the model is asked to take and give.
func (l line) modelFormat() format {
	if l == wide {
		return format{pcmFormat, 3}
	}
	return format{pcmuFormat, 0}
}

// wideSilence is a frame of the smallest differences of G.722, with alternating signs: it brings a decoder in any state
// close to silence.
var wideSilence = bytes.Repeat([]byte{0xff, 0x7d}, frameBytes/2)

// silence fills sound, at most a frame, with silence.
func (l line) silence(sound []byte) {
	if l == wide {
		copy(sound, wideSilence)
		return
	}
	for i := range sound {
		sound[i] = silentByte
	}
}

// conceal returns the replacement for a lost byte, i bytes after the last one that came: b, which is from the sound
// before, at a lower volume. A byte of G.722 has no volume; its decoder fades by itself in the silence that follows.
func (l line) conceal(b byte, i int) byte {
	if l == wide {
		return b
	}
	return toMulaw(int16(int(fromMulaw(b)) * (fadeBytes - i) / fadeBytes))
}

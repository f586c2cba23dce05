package rtc

import (
	"bytes"

	"github.com/pion/webrtc/v4"

	"switchboard/realtime/codec"
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
	if l == wide {
		return webrtc.RTPCodecParameters{
			RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeG722, ClockRate: 8000, Channels: 1}, PayloadType: 9,
		}
	}
	return webrtc.RTPCodecParameters{
		RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypePCMU, ClockRate: 8000, Channels: 1}, PayloadType: 0,
	}
}

// opusCodec is what the caller may speak beside the wide line.
var opusCodec = webrtc.RTPCodecParameters{
	RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2, SDPFmtpLine: "minptime=10;useinbandfec=1"}, PayloadType: 111,
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

// A translator turns sound of the line into sound of the model, and whole samples of that back. It keeps what crosses
// the border of two pieces. Each direction has its own.
type translator interface {
	upward
	down(model []byte) []byte
}

// upward is the half of it that leads to the model.
type upward interface{ up(line []byte) []byte }

// translator returns what stands between the line and a format of the model; nil where both are the same.
func (l line) translator(f format) translator {
	switch {
	case f.factor < 0:
		return nil
	case l == wide:
		return newWideband(f.factor)
	case f.factor > 0:
		return newConverter(f.factor)
	}
	return nil
}

// wideband stands between G.722 and the model's µ-law or PCM.
type wideband struct {
	pcm     bool // the model's sound is PCM; else µ-law
	encoder *codec.G722Encoder
	decoder *codec.G722Decoder
	toModel *codec.Resampler
	toLine  *codec.Resampler
	samples []int16 // of the piece that is being turned
	rated   []int16 // the same at the other rate
}

// wideRate is the rate of what G.722 carries.
const wideRate = 16000

// newWideband makes one for PCM at factor times 8 kHz, or, with 0, for µ-law.
func newWideband(factor int) *wideband {
	rate := 8000 * max(factor, 1)
	return &wideband{
		pcm: factor > 0, encoder: codec.NewG722Encoder(), decoder: codec.NewG722Decoder(),
		toModel: codec.NewResampler(wideRate, rate), toLine: codec.NewResampler(rate, wideRate),
	}
}

// silence fills a piece of sound with what follows as silence on what was turned into sound of the line before.
func (w *wideband) silence(sound []byte) {
	w.samples = append(w.samples[:0], make([]int16, 2*len(sound))...)
	copy(sound, w.encoder.Encode(nil, w.samples))
}

func (w *wideband) up(line []byte) []byte {
	w.samples = w.decoder.Decode(w.samples[:0], line)
	w.rated = w.toModel.Convert(w.rated[:0], w.samples)
	if !w.pcm {
		out := make([]byte, len(w.rated))
		for i, s := range w.rated {
			out[i] = toMulaw(s)
		}
		return out
	}
	return pcmBytes(make([]byte, 0, 2*len(w.rated)), w.rated)
}

func (w *wideband) down(model []byte) []byte {
	w.samples = w.samples[:0]
	if !w.pcm {
		for _, b := range model {
			w.samples = append(w.samples, fromMulaw(b))
		}
	} else {
		for i := 0; i+1 < len(model); i += 2 {
			w.samples = append(w.samples, int16(uint16(model[i])|uint16(model[i+1])<<8))
		}
	}
	w.rated = w.toLine.Convert(w.rated[:0], w.samples)
	return w.encoder.Encode(make([]byte, 0, len(w.rated)/2+1), w.rated)
}

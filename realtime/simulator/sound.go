package simulator

import (
	"encoding/base64"
	"time"
)

// The formats of the protocol (GA session.audio.*.format.type).
const (
	formatPCM  = "audio/pcm"  // 24 kHz, 16 bit, little endian, mono
	formatPCMU = "audio/pcmu" // 8 kHz, one byte a sample
	formatPCMA = "audio/pcma"
)

type format struct {
	Type string `json:"type"`
	Rate int    `json:"rate,omitempty"`
}

// pcmFormat is the default.
var pcmFormat = format{Type: formatPCM, Rate: 24000}

// rate returns samples a second.
func (f format) rate() int {
	if f.Type == formatPCM {
		return 24000
	}
	return 8000
}

// ticks are a length of sound, exact in all formats: 24000 are a second.
type ticks int64

func (f format) ticks(samples int) ticks { return ticks(samples * 24000 / f.rate()) }

func ticksOf(d time.Duration) ticks { return ticks(d * 24000 / time.Second) }

func (t ticks) duration() time.Duration { return time.Duration(t) * time.Second / 24000 }

// decodeSamples returns the linear samples, and the first byte of a PCM sample whose second byte is in the next chunk.
func (f format) decodeSamples(data []byte) (samples []int16, rest []byte) {
	switch f.Type {
	case formatPCMU:
		samples = make([]int16, len(data))
		for i, b := range data {
			samples[i] = fromMulaw(b)
		}
	case formatPCMA:
		samples = make([]int16, len(data))
		for i, b := range data {
			samples[i] = fromAlaw(b)
		}
	default:
		samples = make([]int16, len(data)/2)
		for i := range samples {
			samples[i] = int16(uint16(data[2*i]) | uint16(data[2*i+1])<<8)
		}
		rest = data[len(samples)*2:]
	}
	return samples, rest
}

// fromMulaw decodes one byte of ITU-T G.711 mu-law.
func fromMulaw(b byte) int16 {
	b = ^b
	t := (int16(b&0x0f)<<3 + 0x84) << (b >> 4 & 7)
	if b&0x80 != 0 {
		return 0x84 - t
	}
	return t - 0x84
}

// fromAlaw decodes one byte of ITU-T G.711 A-law.
func fromAlaw(b byte) int16 {
	b ^= 0x55
	t := int16(b&0x0f) << 4
	if segment := b >> 4 & 7; segment == 0 {
		t += 8
	} else {
		t = (t + 0x108) << (segment - 1)
	}
	if b&0x80 != 0 {
		return t
	}
	return -t
}

// frameLength is how much sound one output_audio.delta carries.
const frameLength = 100 * time.Millisecond

// murmur returns one frame of near silence in base64: the smallest steps around zero. It counts as sound, and nobody
// hears it.
func (f format) murmur() string {
	n := f.rate() / int(time.Second/frameLength)
	var data []byte
	for i := range n {
		up := i/8%2 == 0
		switch {
		case f.Type == formatPCMU && up:
			data = append(data, 0xfe)
		case f.Type == formatPCMU:
			data = append(data, 0x7e)
		case f.Type == formatPCMA && up:
			data = append(data, 0xd5)
		case f.Type == formatPCMA:
			data = append(data, 0x55)
		case up:
			data = append(data, 4, 0)
		default:
			data = append(data, 0xfc, 0xff)
		}
	}
	return base64.StdEncoding.EncodeToString(data)
}

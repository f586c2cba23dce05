package realtime

import (
	"time"

	"github.com/tidwall/gjson"
)

// Bytes of audio in a millisecond: PCM16 at 24 kHz, and G.711 at 8 kHz.
const (
	pcmRate  = 48
	g711Rate = 8
)

// audioRate returns the bytes in a millisecond of an audio format as the API names it. Servers other than
// OpenAI's have PCM at other rates.
func audioRate(format gjson.Result) int {
	if kind := format.Get("type").String(); kind == pcmuName || kind == "audio/pcma" {
		return g711Rate
	}
	if hertz := format.Get("rate").Int(); hertz >= 1000 && hertz < 1e6 {
		return int(hertz) * 2 / 1000
	}
	return pcmRate
}

// A playback estimates until when the caller hears the model: its audio comes faster than it sounds.
type playback struct{ until time.Time }

// add counts audio that arrived now.
func (p *playback) add(now time.Time, bytes, rate int) {
	if p.until.Before(now) {
		p.until = now
	}
	p.until = p.until.Add(time.Duration(bytes) * time.Millisecond / time.Duration(rate))
}

// clear ends it: the caller interrupted.
func (p *playback) clear() { p.until = time.Time{} }

// on tells whether something is still to be heard.
func (p *playback) on(now time.Time) bool { return p.until.After(now) }

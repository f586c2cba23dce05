package realtime

import (
	"time"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
	"switchboard/realtime/floor"
)

// Bytes of audio in a millisecond: PCM16 at 24 kHz, and G.711 at 8 kHz.
const (
	pcmRate  = 48
	g711Rate = 8
)

// audioRate returns the bytes in a millisecond of an audio format as the API names it. Servers other than
// OpenAI's have PCM at other rates.
func audioRate(format gjson.Result) int {
	if kind := format.Get("type").String(); kind == events.PCMU || kind == events.PCMA {
		return g711Rate
	}
	if hertz := format.Get("rate").Int(); hertz >= 1000 && hertz < 1e6 {
		return int(hertz) * 2 / 1000
	}
	return pcmRate
}

// settings are the audio settings of a session that a call needs to know. They are pure.
type settings struct {
	manual  bool          // no turn detection
	auto    bool          // turn detection starts responses
	patient bool          // the caller's speech does not interrupt
	rate    int           // bytes of output audio in a millisecond
	inRate  int           // the same of input audio
	padding time.Duration // how much sound before speech the model counts as part of it
}

func newSettings() settings {
	return settings{auto: true, rate: pcmRate, inRate: pcmRate, padding: prefixPadding}
}

// learn reads the settings from a session as the model reports it.
func (s *settings) learn(session gjson.Result) {
	s.change(session)
	if format := session.Get("audio.output.format"); format.IsObject() {
		s.rate = audioRate(format)
	}
	if format := session.Get("audio.input.format"); format.IsObject() {
		s.inRate = audioRate(format)
	}
}

// change reads the turn detection from a session that the client asks for.
func (s *settings) change(session gjson.Result) {
	d := session.Get("audio.input.turn_detection")
	if !d.Exists() {
		return
	}
	s.manual = d.Type == gjson.Null
	create := d.Get("create_response")
	s.auto = !s.manual && (!create.Exists() || create.Bool())
	if ms := d.Get("prefix_padding_ms"); ms.Type == gjson.Number && ms.Int() >= 0 && ms.Int() < 10_000 {
		s.padding = time.Duration(ms.Int()) * time.Millisecond
	}
	interrupt := d.Get("interrupt_response")
	s.patient = interrupt.Exists() && !interrupt.Bool()
}

// listening returns what the floor needs of the settings.
func (s *settings) listening() floor.Listening {
	return floor.Listening{Manual: s.manual, Auto: s.auto}
}

package rtc

import (
	"encoding/base64"
	"encoding/json"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// pcmuFormat is what a model is made to hear and speak while its caller is on a telephone's sound.
const pcmuFormat = `{"type":"` + events.PCMU + `"}`

// formatsEvent makes the model hear and speak what a line needs.
func formatsEvent(id string, l line) []byte {
	format := events.Object{"format": json.RawMessage(l.asked().raw)}
	return events.Encode(events.Object{"type": events.TypeFormats, "event_id": id, "session": events.Object{
		"type": "realtime", "audio": events.Object{"input": format, "output": format}}})
}

// openingEvent is the session.update of the offer.
func (p *player) openingEvent(update []byte) []byte {
	return events.Set(events.Set(p.sessionAsIs(update), "event_id", events.Quote(p.ids.Next())), "type",
		events.Quote(events.TypeOpening))
}

// openedEvent tells the call that its client can be reached.
func openedEvent() []byte { return events.Encode(events.Object{"type": events.TypeOpened}) }

// playedEvent tells the call what was heard of a response.
func playedEvent(response string, ms int, cut bool) []byte {
	return events.Encode(events.Object{"type": events.TypePlayed, "response_id": response, "audio_ms": ms, "cut": cut})
}

// appendEvent is sound of the caller for the model.
func appendEvent(audio []byte) []byte {
	const head, tail = `{"type":"` + events.TypeAppend + `","audio":"`, `"}`
	b := make([]byte, 0, len(head)+base64.StdEncoding.EncodedLen(len(audio))+len(tail))
	b = append(b, head...)
	b = base64.StdEncoding.AppendEncode(b, audio)
	return append(b, tail...)
}

// fromClient takes an event of the data channel and returns what follows. What it does not know passes,
// bad JSON and what nests too deep included: the call judges it.
func (p *player) fromClient(event []byte) effects {
	if handoff.TooDeep(event) {
		return effects{up: [][]byte{event}}
	}
	switch events.PeekType(event) {
	case events.TypeAppend:
		return p.refuse(event, events.TypeAppend+" is not available on WebRTC: sound comes from the audio track.")
	case events.TypePlayed,
		events.TypeFormats,
		events.TypeOpened,
		events.TypeOpening: // they would be taken for ours
		return p.refuse(event, "Events of Switchboard are not events of clients.")
	case events.TypeOutputClear:
		return p.clear()
	case events.TypeSessionUpdate:
		event = p.sessionAsIs(event)
	case events.TypeCreate:
		if gjson.GetBytes(event, "response.audio.output.format").Exists() {
			event = p.formats.keep(event, "response.audio.output.format", p.formats.out)
		}
	}
	return effects{up: [][]byte{event}}
}

func (p *player) refuse(event []byte, why string) effects {
	return effects{down: [][]byte{events.Error(p.ids.Next(), events.Fault{
		Kind: "invalid_request_error", Code: "invalid_event", Message: why,
		EventID: gjson.GetBytes(event, "event_id").String(),
	})}}
}

// sessionAsIs keeps the formats of a client's session.update. One without audio leaves them as they are.
func (p *player) sessionAsIs(event []byte) []byte {
	if !gjson.GetBytes(event, "session.audio").IsObject() {
		return event
	}
	event = p.formats.keep(event, "session.audio.input.format", p.formats.in)
	if gjson.GetBytes(event, "session.type").String() == "transcription" {
		return event // it has no output
	}
	return p.formats.keep(event, "session.audio.output.format", p.formats.out)
}

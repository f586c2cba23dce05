package rtc

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// pcmuFormat is the format that a model is asked for on the narrow line.
const pcmuFormat = `{"type":"` + events.PCMU + `"}`

// formatsEvent returns the event that asks the model for the formats of a line.
func formatsEvent(id string, l line) []byte {
	format := events.Object{"format": json.RawMessage(l.modelFormat().raw)}
	return events.Encode(events.Object{"type": events.TypeFormats, "event_id": id, "session": events.Object{
		"type": "realtime", "audio": events.Object{"input": format, "output": format}}})
}

// openingEvent returns the event with the session.update of the offer.
func (p *player) openingEvent(update []byte) []byte {
	return events.Set(events.Set(p.sessionAsIs(update), "event_id", events.Quote(p.ids.Next())), "type",
		events.Quote(events.TypeOpening))
}

// openedEvent returns the event that tells the call that its client can be reached.
func openedEvent() []byte { return events.Encode(events.Object{"type": events.TypeOpened}) }

// playedEvent returns the event that tells the call how many milliseconds of a response were heard.
func playedEvent(response string, ms int, cut bool) []byte {
	return events.Encode(events.Object{"type": events.TypePlayed, "response_id": response, "audio_ms": ms, "cut": cut})
}

// fromClient handles an event of the data channel and returns what follows. Other events are passed on unchanged, also
// those that are not JSON or nest too deep: the call refuses these.
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
		events.TypeOpening: // the call would take them for the leg's
		return p.refuse(event, "Events of Switchboard are not events of clients.")
	case events.TypeOutputClear:
		return p.clear()
	case events.TypeSessionUpdate:
		event = p.sessionAsIs(event)
	case events.TypeCreate:
		if gjson.GetBytes(event, "response.audio.output.format").Exists() {
			event = p.formats.keepFormat(event, "response.audio.output.format", p.formats.out)
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

// sessionAsIs sets the formats in a client's session.update to the present ones. An update without audio needs no
// change.
func (p *player) sessionAsIs(event []byte) []byte {
	if !gjson.GetBytes(event, "session.audio").IsObject() {
		return event
	}
	event = p.formats.keepFormat(event, "session.audio.input.format", p.formats.in)
	if gjson.GetBytes(event, "session.type").String() == "transcription" {
		return event // it has no output
	}
	return p.formats.keepFormat(event, "session.audio.output.format", p.formats.out)
}

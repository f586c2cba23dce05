package realtime

import (
	"encoding/base64"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
)

// pcmuFormat is what a model is made to hear and speak while its caller is on WebRTC.
const pcmuFormat = `{"type":"` + pcmuName + `"}`

// Events of OpenAI's Realtime API that only a WebRTC client sees, beside typeOutputClear.
const (
	typeBufferStarted = "output_audio_buffer.started"
	typeBufferStopped = "output_audio_buffer.stopped"
	typeBufferCleared = "output_audio_buffer.cleared"
)

// newRTCNames hands out ids for a leg's events. Its truncations get ids of their own: the model refuses
// one when the item is gone, which is nobody's concern.
func newRTCNames() (events, cuts *names) {
	events = newNames()
	suffix := events.prefix[len("sb_"):]
	events.prefix = "sb_rtc_" + suffix
	return events, &names{prefix: "sb_rtc_cut_" + suffix}
}

// formatsEvent makes the model hear and speak µ-law.
func formatsEvent(id string) []byte {
	format := object{"format": rawJSON(pcmuFormat)}
	return encode(object{"type": typeSessionUpdate, "event_id": id, "session": object{
		"type": "realtime", "audio": object{"input": format, "output": format}}})
}

// bufferEvent tells the client of its output audio buffer.
func bufferEvent(id, kind, response string) []byte {
	return encode(object{"type": kind, "event_id": id, "response_id": response})
}

// playedEvent tells the call what was heard of a response.
func playedEvent(response string, ms int, cut bool) []byte {
	return encode(object{"type": typePlayed, "response_id": response, "audio_ms": ms, "cut": cut})
}

// truncateEvent tells the model how much of an item was heard.
func truncateEvent(id string, c clip) []byte {
	return encode(object{"type": typeItemTruncate, "event_id": id,
		"item_id": c.item, "content_index": c.content, "audio_end_ms": c.heard / bytesPerMS})
}

// appendEvent is sound of the caller for the model.
func appendEvent(audio []byte) []byte {
	const head, tail = `{"type":"` + typeAppend + `","audio":"`, `"}`
	b := make([]byte, 0, len(head)+base64.StdEncoding.EncodedLen(len(audio))+len(tail))
	b = append(b, head...)
	b = base64.StdEncoding.AppendEncode(b, audio)
	return append(b, tail...)
}

// fromClient takes an event of the data channel and returns what follows. What it does not know passes,
// bad JSON and what nests too deep included: the call judges it.
func (p *player) fromClient(event []byte) told {
	if handoff.TooDeep(event) {
		return told{up: [][]byte{event}}
	}
	switch peekType(event) {
	case typeAppend:
		return p.refuse(event, typeAppend+" is not available on WebRTC: sound comes from the audio track.")
	case typePlayed: // it would be taken for ours
		return p.refuse(event, typePlayed+" is not an event of clients.")
	case typeOutputClear:
		return p.clear()
	case typeSessionUpdate:
		event = p.sessionAsIs(event)
	case typeCreate:
		if gjson.GetBytes(event, "response.audio.output.format").Exists() {
			event = p.formats.keep(event, "response.audio.output.format", p.formats.out)
		}
	}
	return told{up: [][]byte{event}}
}

func (p *player) refuse(event []byte, why string) told {
	return told{down: [][]byte{errorEvent(p.ids.next(), clientFault{
		kind: "invalid_request_error", code: "invalid_event", message: why, eventID: gjson.GetBytes(event, "event_id").String(),
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

package realtime

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// How a response or item ends, from OpenAI's Realtime API reference (response.status, item.status).
const (
	statusCompleted  = "completed"
	statusCancelled  = "cancelled"
	statusFailed     = "failed"
	statusIncomplete = "incomplete"
)

// Events we act on, from the same reference. Others pass.
const (
	typeAppend         = "input_audio_buffer.append"
	typeCommit         = "input_audio_buffer.commit"
	typeInputClear     = "input_audio_buffer.clear"
	typeCommitted      = "input_audio_buffer.committed"
	typeInputCleared   = "input_audio_buffer.cleared"
	typeSpeechStarted  = "input_audio_buffer.speech_started"
	typeSpeechStopped  = "input_audio_buffer.speech_stopped"
	typeOutputClear    = "output_audio_buffer.clear"
	typeSessionUpdate  = "session.update"
	typeSessionCreated = "session.created"
	typeSessionUpdated = "session.updated"
	typeItemCreate     = "conversation.item.create"
	typeItemRetrieve   = "conversation.item.retrieve"
	typeItemDelete     = "conversation.item.delete"
	typeItemTruncate   = "conversation.item.truncate"
	typeItemAdded      = "conversation.item.added"
	typeItemCreated    = "conversation.item.created" // the name of older servers for added
	typeItemDone       = "conversation.item.done"
	typeTranscribed    = "conversation.item.input_audio_transcription.completed"
	typeTranscription  = "conversation.item.input_audio_transcription." // prefix of all about it
	typeCreate         = "response.create"
	typeCancel         = "response.cancel"
	typeCreated        = "response.created"
	typeDone           = "response.done"
	typeOutputAdded    = "response.output_item.added"
	typeOutputDone     = "response.output_item.done"
	typeArguments      = "response.function_call_arguments.delta"
	typeAudioDelta     = "response.output_audio.delta"
	typeTextDelta      = "response.output_text.delta"
	typeSpokenDelta    = "response.output_audio_transcript.delta"
	typeError          = "error"
	typeResponse       = "response." // prefix of all about one
)

// typePlayed is ours, from a [performer] to its call: response_id, audio_ms that were heard, and cut.
const typePlayed = "switchboard.played"

// Error codes of the same reference: an ask that met a running response, and a commit without sound.
const (
	codeActive      = "conversation_already_has_active_response"
	codeCommitEmpty = "input_audio_buffer_commit_empty"
)

// Kinds of items.
const (
	itemMessage   = "message"
	itemCall      = "function_call"
	itemOutput    = "function_call_output"
	itemReasoning = "reasoning"
)

// peekType returns the type of an event without decoding it: nearly all peers write it first. An event
// without a type gives "".
func peekType(event []byte) string {
	rest, ok := bytes.CutPrefix(event, []byte(`{"type":`))
	if ok {
		rest = bytes.TrimPrefix(rest, []byte(" "))
		if len(rest) > 0 && rest[0] == '"' {
			rest = rest[1:]
			if end := bytes.IndexByte(rest[:min(len(rest), 96)], '"'); end >= 0 && bytes.IndexByte(rest[:end], '\\') < 0 {
				return intern(rest[:end])
			}
		}
	}
	return gjson.GetBytes(event, "type").String()
}

// maxID bounds an id that is kept, in bytes; those of the API are shorter.
const maxID = 256

// longID tells whether an event of the model names a response, an item or a call with an id longer than maxID.
// Nobody keeps such an id, so nobody could say later whose it is.
func longID(event []byte) bool {
	if len(event) <= maxID {
		return false
	}
	long := func(r gjson.Result) bool { return len(r.Str) > maxID }
	for _, path := range []string{"response_id", "item_id", "previous_item_id", "call_id", "item.id", "item.call_id", "response.id"} {
		if long(gjson.GetBytes(event, path)) {
			return true
		}
	}
	for _, raw := range gjson.GetBytes(event, "response.output").Array() {
		if long(raw.Get("id")) || long(raw.Get("call_id")) {
			return true
		}
	}
	return false
}

// peekBytes is how far into an event [peekField] looks: peers write ids before what is long.
const peekBytes = 512

// peekField returns a string field of an event without decoding it where it stands near the beginning.
func peekField(event []byte, name string) []byte {
	if value := peekHead(event, name); value != nil {
		return value
	}
	return []byte(gjson.GetBytes(event, name).String())
}

// peekHead returns a string field that stands near the beginning of an event, or nil.
func peekHead(event []byte, name string) []byte {
	head := event[:min(len(event), peekBytes)]
	for {
		at := bytes.IndexByte(head, '"')
		if at < 0 {
			return nil
		}
		head = head[at+1:]
		if len(head) < len(name)+3 || string(head[:len(name)]) != name || string(head[len(name):len(name)+3]) != `":"` {
			continue
		}
		value := head[len(name)+3:]
		if end := bytes.IndexByte(value, '"'); end >= 0 && bytes.IndexByte(value[:end], '\\') < 0 {
			return value[:end]
		}
	}
}

// isObject tells whether an event is a JSON object.
func isObject(event []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(event, " \t\r\n"), []byte("{")) && gjson.ValidBytes(event)
}

// intern spares the allocation for the two types that make up nearly all traffic.
func intern(kind []byte) string {
	switch string(kind) {
	case typeAppend:
		return typeAppend
	case typeAudioDelta:
		return typeAudioDelta
	}
	return string(kind)
}

// Where the sound of an event stands.
const (
	keyDelta  = `"delta":`
	keyAppend = `"audio":`
)

// soundBytes returns how many bytes of audio an event carries as base64 behind a key.
func soundBytes(event []byte, key string) int {
	_, rest, ok := bytes.Cut(event, []byte(key))
	if !ok {
		return 0
	}
	rest = bytes.TrimPrefix(rest, []byte(" "))
	if len(rest) == 0 || rest[0] != '"' {
		return 0
	}
	end := bytes.IndexByte(rest[1:], '"')
	if end < 0 {
		return 0
	}
	return len(bytes.TrimRight(rest[1:1+end], "=")) * 3 / 4
}

// An item is what we read of a conversation item.
type item struct {
	id, kind, role, status  string
	callID, name, arguments string
	text                    string // input_text parts, joined
	content                 bool   // an assistant's message that holds anything
	written                 bool   // it holds something to read
}

func readItem(r gjson.Result) item {
	it := item{
		id: r.Get("id").String(), kind: r.Get("type").String(), role: r.Get("role").String(),
		status: r.Get("status").String(), callID: r.Get("call_id").String(), name: r.Get("name").String(),
	}
	switch it.kind {
	case itemCall:
		it.arguments = r.Get("arguments").String()
	case itemMessage:
		for _, part := range r.Get("content").Array() {
			if part.Get("type").String() == "input_text" {
				if it.text != "" {
					it.text += " "
				}
				it.text += part.Get("text").String()
			}
			it.written = it.written || part.Get("text").String() != ""
			it.content = it.content || it.written || part.Get("transcript").String() != ""
		}
	}
	return it
}

// encode marshals an event of ours; they hold only strings and maps of them, which always marshal.
func encode(event any) []byte {
	b, err := json.Marshal(event)
	if err != nil {
		panic("realtime: event cannot be marshalled: " + err.Error())
	}
	return b
}

type object = map[string]any

// outputEvent gives the model the output of a call.
func outputEvent(eventID, itemID, callID, output string) []byte {
	return encode(object{"type": typeItemCreate, "event_id": eventID,
		"item": object{"type": itemOutput, "id": itemID, "call_id": callID, "output": output}})
}

// messageEvent gives the model a message of ours.
func messageEvent(eventID, itemID, text string) []byte {
	return encode(object{"type": typeItemCreate, "event_id": eventID, "item": object{
		"type": itemMessage, "id": itemID, "role": "system",
		"content": []object{{"type": "input_text", "text": text}}}})
}

// askEvent asks the model to speak. mute keeps it from calling tools, where the client forces one.
func askEvent(eventID, tag string, mute bool) []byte {
	response := object{"metadata": object{tagKey: tag}}
	if mute {
		response["tool_choice"] = "none"
	}
	return encode(object{"type": typeCreate, "event_id": eventID, "response": response})
}

// cancelEvent ends a response.
func cancelEvent(eventID, response string) []byte {
	return encode(object{"type": typeCancel, "event_id": eventID, "response_id": response})
}

// clientFault is an error that the client caused.
type clientFault struct {
	kind, code, message, param, eventID string
}

// errorEvent is an error in the form of OpenAI's; empty parts are null.
func errorEvent(eventID string, f clientFault) []byte {
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return encode(object{"type": typeError, "event_id": eventID, "error": object{
		"type": f.kind, "code": null(f.code), "message": f.message, "param": null(f.param), "event_id": null(f.eventID)}})
}

// names hands out ids of our events, unique in a call and unlike those of another Switchboard that may
// stand in front of this one.
type names struct {
	prefix string // Set once
	n      int
}

func newNames() *names {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	return &names{prefix: "sb_" + hex.EncodeToString(b[:]) + "_"}
}

func (x *names) next() string {
	x.n++
	return x.prefix + strconv.Itoa(x.n)
}

// own tells whether an id is one of ours.
func (x *names) own(id string) bool { return strings.HasPrefix(id, x.prefix) }

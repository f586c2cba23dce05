package events

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// Statuses of a response or item that has ended, from OpenAI's Realtime API reference (response.status, item.status).
const (
	StatusCompleted  = "completed"
	StatusCancelled  = "cancelled"
	StatusFailed     = "failed"
	StatusIncomplete = "incomplete"
)

// The events that we act on, from the same reference. Others are passed on.
const (
	TypeAppend         = "input_audio_buffer.append"
	TypeCommit         = "input_audio_buffer.commit"
	TypeInputClear     = "input_audio_buffer.clear"
	TypeCommitted      = "input_audio_buffer.committed"
	TypeInputCleared   = "input_audio_buffer.cleared"
	TypeSpeechStarted  = "input_audio_buffer.speech_started"
	TypeSpeechStopped  = "input_audio_buffer.speech_stopped"
	TypeOutputClear    = "output_audio_buffer.clear"
	TypeOutputStarted  = "output_audio_buffer.started" // of WebRTC and SIP: what the provider plays
	TypeOutputStopped  = "output_audio_buffer.stopped"
	TypeOutputCleared  = "output_audio_buffer.cleared"
	TypeSessionUpdate  = "session.update"
	TypeSessionCreated = "session.created"
	TypeSessionUpdated = "session.updated"
	TypeItemCreate     = "conversation.item.create"
	TypeItemRetrieve   = "conversation.item.retrieve"
	TypeItemDelete     = "conversation.item.delete"
	TypeItemTruncate   = "conversation.item.truncate"
	TypeItemAdded      = "conversation.item.added"
	TypeItemCreated    = "conversation.item.created" // the name of older servers for added
	TypeItemDone       = "conversation.item.done"
	TypeItemDeleted    = "conversation.item.deleted"
	TypeItemTruncated  = "conversation.item.truncated"
	TypeItemRetrieved  = "conversation.item.retrieved"
	TypeTranscribed    = "conversation.item.input_audio_transcription.completed"
	TypeNotTranscribed = "conversation.item.input_audio_transcription.failed"
	TypeTranscription  = "conversation.item.input_audio_transcription." // prefix of all about it
	TypeCreate         = "response.create"
	TypeCancel         = "response.cancel"
	TypeCreated        = "response.created"
	TypeDone           = "response.done"
	TypeOutputAdded    = "response.output_item.added"
	TypeOutputDone     = "response.output_item.done"
	TypeArguments      = "response.function_call_arguments.delta"
	TypeAudioDelta     = "response.output_audio.delta"
	TypeTextDelta      = "response.output_text.delta"
	TypeSpokenDelta    = "response.output_audio_transcript.delta"
	TypeError          = "error"
	TypeResponse       = "response." // prefix of all about one
)

// Events of ours for clients that ask for them (?events=handoff).
const (
	TypeCall    = "handoff.call"    // call_id of the socket's call; comes first
	TypeRenewed = "handoff.renewed" // the model's session was replaced, after took_ms without one
	TypeCut     = "handoff.cut"     // the caller interrupts these response_ids: stop playing them (?lowers=1)
)

// Events of ours that a leg which plays the sound sends to its call. Clients cannot send them.
const (
	// TypePlayed reports how much of a response was heard: response_id, audio_ms, and cut.
	TypePlayed = "switchboard.played"
	// TypeFormats is a session.update that sets the audio formats which the leg carries.
	TypeFormats = "switchboard.formats"
	// TypeOpened reports that the client can be reached, and so can set up its session.
	TypeOpened = "switchboard.opened"
	// TypeOpening is the session.update for the session in the client's offer.
	TypeOpening = "switchboard.opening"
)

// Events of ours that a call sends to a leg which plays the sound: session.created and session.updated with the
// model's session as it is, before the client may see it. They are for the leg alone.
const (
	TypeMade    = "switchboard." + TypeSessionCreated
	TypeChanged = "switchboard." + TypeSessionUpdated
)

// Error codes of the same reference: an ask while a response runs, a commit without sound, and the end of a session
// that has reached its longest duration.
const (
	CodeActive      = "conversation_already_has_active_response"
	CodeCommitEmpty = "input_audio_buffer_commit_empty"
	CodeExpired     = "session_expired"
)

// TagKey is our key in the metadata of every response.create that is sent to the model; its value is the tag of the
// ask. Clients never see it.
const TagKey = "sb"

// TagOf returns the tag of a response, or "".
func TagOf(response gjson.Result) string { return response.Get("metadata." + TagKey).String() }

// OutOfBand reports whether a response says that it belongs to no conversation.
func OutOfBand(response gjson.Result) bool { return response.Get("conversation_id").Raw == "null" }

// PCMU and PCMA are the values of session.audio.output.format.type for G.711.
const (
	PCMU = "audio/pcmu"
	PCMA = "audio/pcma"
)

// Kinds of items.
const (
	ItemMessage   = "message"
	ItemCall      = "function_call"
	ItemOutput    = "function_call_output"
	ItemReasoning = "reasoning"
)

// How the events of sound begin, which are nearly all traffic.
const (
	appendHead = `{"type":"` + TypeAppend + `"`
	deltaHead  = `{"type":"` + TypeAudioDelta + `"`
)

// PeekType returns the type of an event, or "". It need not decode the event if the type comes first, as with nearly
// all peers.
func PeekType(event []byte) string {
	switch {
	case bytes.HasPrefix(event, []byte(appendHead)):
		return TypeAppend
	case bytes.HasPrefix(event, []byte(deltaHead)):
		return TypeAudioDelta
	}
	rest, ok := bytes.CutPrefix(event, []byte(`{"type":`))
	if ok {
		rest = bytes.TrimPrefix(rest, []byte(" "))
		if len(rest) > 0 && rest[0] == '"' {
			rest = rest[1:]
			end := bytes.IndexByte(rest[:min(len(rest), 96)], '"')
			if end >= 0 && bytes.IndexByte(rest[:end], '\\') < 0 {
				return intern(rest[:end])
			}
		}
	}
	return gjson.GetBytes(event, "type").String()
}

// MaxID bounds the ids that are accepted, in bytes; those of the API are shorter.
const MaxID = 256

// LongID reports whether an event of the model has an id of a response, item or call that is longer than MaxID. Such
// ids are not kept, so it could not be known later whose they are.
func LongID(event []byte) bool {
	if len(event) <= MaxID {
		return false
	}
	long := func(r gjson.Result) bool { return len(r.String()) > MaxID } // of any JSON type: others read it as a string
	for _, path := range []string{"response_id", "item_id", "previous_item_id", "call_id", "item.id", "item.call_id",
		"response.id"} {
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

// peekBytes is how far into an event [PeekHead] looks: peers write ids before long fields.
const peekBytes = 512

// PeekField returns a string field of an event. It need not decode the event if the field is near the beginning.
func PeekField(event []byte, name string) []byte {
	if value := PeekHead(event, name); value != nil {
		return value
	}
	return []byte(gjson.GetBytes(event, name).String())
}

// PeekHead returns a string field near the beginning of an event, or nil.
func PeekHead(event []byte, name string) []byte {
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

// LooksWhole reports whether an event begins and ends like a JSON object.
func LooksWhole(event []byte) bool {
	return len(event) > 1 && event[0] == '{' && event[len(event)-1] == '}'
}

// IsObject reports whether an event is a JSON object.
func IsObject(event []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(event, " \t\r\n"), []byte("{")) && gjson.ValidBytes(event)
}

// intern returns a string, without an allocation for the types of sound.
func intern(kind []byte) string {
	switch string(kind) {
	case TypeAppend:
		return TypeAppend
	case TypeAudioDelta:
		return TypeAudioDelta
	}
	return string(kind)
}

// The keys of the sound in an event.
const (
	KeyDelta  = `"delta":`
	KeyAppend = `"audio":`
)

// Sound returns the audio that an event carries after a key, in base64.
func Sound(event []byte, key string) []byte {
	_, rest, ok := bytes.Cut(event, []byte(key))
	rest = bytes.TrimPrefix(rest, []byte(" "))
	if ok && len(rest) > 0 && rest[0] == '"' {
		sound, _, closed := bytes.Cut(rest[1:], []byte(`"`))
		if closed && bytes.IndexByte(sound, '\\') < 0 {
			return sound
		}
	}
	// Some encoders escape signs of base64, or put a space before the colon. The event may nest deep and be no JSON: to
	// validate it would recurse.
	return []byte(gjson.GetBytes(event, strings.Trim(key, `":`)).String())
}

// SoundBytes returns how many bytes of audio there are in base64.
func SoundBytes(sound []byte) int { return len(bytes.TrimRight(sound, "=")) * 3 / 4 }

// Append returns the event that gives the model sound of the caller.
func Append(audio []byte) []byte {
	const head, tail = appendHead + `,"audio":"`, `"}`
	b := make([]byte, 0, len(head)+base64.StdEncoding.EncodedLen(len(audio))+len(tail))
	b = base64.StdEncoding.AppendEncode(append(b, head...), audio)
	return append(b, tail...)
}

// An Item holds the fields that we read of a conversation item.
type Item struct {
	ID, Kind, Role, Status  string
	CallID, Name, Arguments string
	Text                    string // input_text parts, joined
	Content                 bool   // a message with a text or transcript
	Written                 bool   // a message with a text
	Sound                   bool   // a message with sound
}

// OfCaller reports whether the item has words of the caller, written or as sound.
func (it Item) OfCaller() bool {
	return it.Kind == ItemMessage && it.Role == "user" && (it.Text != "" || it.Sound)
}

// ReadItem reads a conversation item; missing fields are zero.
func ReadItem(r gjson.Result) Item {
	it := Item{
		ID: r.Get("id").String(), Kind: r.Get("type").String(), Role: r.Get("role").String(),
		Status: r.Get("status").String(), CallID: r.Get("call_id").String(), Name: r.Get("name").String(),
	}
	switch it.Kind {
	case ItemCall:
		it.Arguments = r.Get("arguments").String()
	case ItemMessage:
		for _, part := range r.Get("content").Array() {
			if part.Get("type").String() == "input_text" {
				if it.Text != "" {
					it.Text += " "
				}
				it.Text += part.Get("text").String()
			}
			it.Sound = it.Sound || part.Get("type").String() == "input_audio"
			it.Written = it.Written || part.Get("text").String() != ""
			it.Content = it.Content || it.Written || part.Get("transcript").String() != ""
		}
	}
	return it
}

// Encode marshals an event of ours. They hold only values that can be marshalled.
func Encode(event any) []byte {
	b, err := json.Marshal(event)
	if err != nil {
		panic("realtime: event cannot be marshalled: " + err.Error())
	}
	return b
}

// An Object is a JSON object in an event that we make.
type Object = map[string]any

// Output returns the event that gives the model the output of a function call.
func Output(eventID, itemID, callID, output string) []byte {
	return Encode(Object{"type": TypeItemCreate, "event_id": eventID,
		"item": Object{"type": ItemOutput, "id": itemID, "call_id": callID, "output": output}})
}

// Message returns the event that gives the model a system message.
func Message(eventID, itemID, text string) []byte {
	return Encode(Object{"type": TypeItemCreate, "event_id": eventID, "item": Object{
		"type": ItemMessage, "id": itemID, "role": "system",
		"content": []Object{{"type": "input_text", "text": text}}}})
}

// Ask returns a response.create. mute keeps the model from calling tools, for sessions in which the client forces one.
func Ask(eventID, tag string, mute bool) []byte {
	response := Object{"metadata": Object{TagKey: tag}}
	if mute {
		response["tool_choice"] = "none"
	}
	return Encode(Object{"type": TypeCreate, "event_id": eventID, "response": response})
}

// Begun returns a response.created.
func Begun(response string) []byte {
	return Encode(Object{"type": TypeCreated, "response": Object{"object": "realtime.response", "id": response,
		"status": "in_progress", "output": []string{}, "metadata": nil}})
}

// ItemDone returns a conversation.item.done with an item of raw JSON.
func ItemDone(item string) []byte {
	return Encode(Object{"type": TypeItemDone, "item": json.RawMessage(item)})
}

// Cancel returns the event that cancels a response.
func Cancel(eventID, response string) []byte {
	return Encode(Object{"type": TypeCancel, "event_id": eventID, "response_id": response})
}

// Truncate returns the event that tells the model how many milliseconds of an item's sound were heard.
func Truncate(eventID, item string, content int64, ms int) []byte {
	return Encode(Object{"type": TypeItemTruncate, "event_id": eventID, "item_id": item, "content_index": content,
		"audio_end_ms": ms})
}

// Fault is an error that the client caused.
type Fault struct {
	Kind, Code, Message, Param, EventID string
}

// Error returns an error event in OpenAI's form; empty fields are null.
func Error(eventID string, f Fault) []byte {
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return Encode(Object{"type": TypeError, "event_id": eventID, "error": Object{
		"type": f.Kind, "code": null(f.Code), "message": f.Message, "param": null(f.Param),
		"event_id": null(f.EventID)}})
}

// oursPrefix begins every id of ours.
const oursPrefix = "sb_"

// Names makes the ids of our events. They are unique in a call, and differ from those of another Switchboard that may
// be in front of this one.
type Names struct {
	prefix string // Set once
	n      int
}

// NewNames returns Names with a random prefix, so that no other call has the same ids.
func NewNames() *Names {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	return &Names{prefix: oursPrefix + hex.EncodeToString(b[:]) + "_"}
}

// Next returns a new id.
func (x *Names) Next() string {
	x.n++
	return x.prefix + strconv.Itoa(x.n)
}

// Own reports whether an id was made by these Names.
func (x *Names) Own(id string) bool { return strings.HasPrefix(id, x.prefix) }

// Of returns Names with the same random prefix and a word in it, which makes the ids distinct.
func (x *Names) Of(kind string) *Names {
	return &Names{prefix: oursPrefix + kind + strings.TrimPrefix(x.prefix, oursPrefix)}
}

// LegKind is the word in the ids of events that a client's leg makes by itself.
const LegKind = "rtc_"

// OfLeg reports whether an id is of an event that a client's leg made by itself.
func OfLeg(id string) bool { return strings.HasPrefix(id, oursPrefix+LegKind) }

// Set puts raw JSON at a path of an event, and leaves the rest unchanged. Paths are constant.
func Set(event []byte, path, raw string) []byte {
	out, err := sjson.SetRawBytes(event, path, []byte(raw))
	if err != nil { // only for an invalid path
		return event
	}
	return out
}

// Remove takes a field out of an event.
func Remove(event []byte, path string) []byte {
	out, err := sjson.DeleteBytes(event, path)
	if err != nil {
		return event
	}
	return out
}

// Quote returns a text as JSON.
func Quote(s string) string { return string(Encode(s)) }

package realtime

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// sessionFields are the fields of a configuration that are checked, and the JSON types that each may have, beside null.
// The model checks the other fields.
var sessionFields = []struct{ path, kinds string }{
	{"type", "string"}, {"model", "string"}, {"instructions", "string"}, {"output_modalities", "array"},
	{"tools", "array"}, {"tool_choice", "string object"},
	{"parallel_tool_calls", "true false"}, {"include", "array"}, {"prompt", "object"}, {"reasoning", "object"},
	{"max_output_tokens", "number string"},
	{"audio", "object"}, {"audio.input", "object"}, {"audio.input.format", "object"},
	{"audio.input.transcription", "object"}, {"audio.input.turn_detection", "object"},
	{"audio.input.noise_reduction", "object"}, {"audio.output", "object"}, {"audio.output.format", "object"},
	{"audio.output.voice", "string object"}, {"audio.output.speed", "number"},
}

// CheckSession checks a session configuration that comes before its call, in a form or bound to a client secret. Its
// errors have code [handoff.CodeMalformed] and a param that begins with "session".
func CheckSession(session []byte) *handoff.Error {
	if handoff.TooDeep(session) { // first: parsers recurse
		return handoff.Malformed("session", fmt.Sprintf("the session nests deeper than %d levels", handoff.MaxDepth))
	}
	if !gjson.ValidBytes(session) || !gjson.ParseBytes(session).IsObject() {
		return handoff.Malformed("session", "the session is not a JSON object")
	}
	for _, field := range sessionFields {
		value := gjson.GetBytes(session, field.path)
		if value.Exists() && value.Type != gjson.Null && !isOf(value, field.kinds) {
			return handoff.Malformed("session."+field.path, "session."+field.path+" is of the wrong type")
		}
	}
	if kind := gjson.GetBytes(session, "type"); kind.Exists() && kind.String() != "realtime" {
		return handoff.Malformed("session.type",
			"session.type is realtime; a session that only transcribes has no voice that could hand anything over")
	}
	for i, tool := range gjson.GetBytes(session, "tools").Array() {
		if at := fmt.Sprintf("session.tools[%d]", i); !tool.IsObject() {
			return handoff.Malformed(at, at+" is not an object")
		} else if kind := tool.Get("type").String(); (kind == "" || kind == "function") &&
			tool.Get("name").String() == "" {
			return handoff.Malformed(at+".name", at+" has no name")
		}
	}
	return nil
}

func isOf(value gjson.Result, kinds string) bool {
	kind := map[gjson.Type]string{gjson.String: "string", gjson.Number: "number", gjson.True: "true",
		gjson.False: "false"}[value.Type]
	switch {
	case value.IsObject():
		kind = "object"
	case value.IsArray():
		kind = "array"
	}
	return slices.Contains(strings.Fields(kinds), kind)
}

// overlay returns an object with the fields of both; over wins, and objects in both are merged. Both were checked.
func overlay(under, over []byte) []byte {
	gjson.ParseBytes(over).ForEach(func(key, value gjson.Result) bool {
		path, raw := gjson.Escape(key.String()), value.Raw
		if below := gjson.GetBytes(under, path); below.IsObject() && value.IsObject() {
			raw = string(overlay([]byte(below.Raw), []byte(raw)))
		}
		under = events.Set(under, path, raw)
		return true
	})
	return under
}

// opening returns the first session.update for a configuration (nil: none is needed), and its model, which a running
// session cannot change and so belongs to the connection.
func opening(session []byte) (update []byte, model string) {
	if len(session) == 0 {
		return nil, ""
	}
	model = gjson.GetBytes(session, "model").String()
	session = events.Remove(session, "model")
	if len(gjson.ParseBytes(events.Remove(session, "type")).Map()) == 0 {
		return nil, model
	}
	session = events.Set(session, "type", `"realtime"`)
	return events.Encode(events.Object{"type": events.TypeSessionUpdate, "session": json.RawMessage(session)}), model
}

// ShowSession returns a configuration as OpenAI shows it before there is a call: as a session object. model is shown if
// the configuration names none.
func ShowSession(session []byte, model string) []byte {
	fields := map[string]string{"type": "realtime", "object": "realtime.session", "model": model}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fields[name] != "" && !gjson.GetBytes(session, name).Exists() {
			session = events.Set(session, name, events.Quote(fields[name]))
		}
	}
	return events.Set(session, "id", events.Quote("sess_"+rand.Text()))
}

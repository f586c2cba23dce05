package rtc

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"switchboard/realtime/events"
)

// cutMark is the end of a text that was cut.
const cutMark = "…"

// fit turns an event for a data channel into messages of at most limit bytes. An event that fits is unchanged. A delta
// is split and loses nothing. Of other events long sound is left out and long texts are cut, the longest first; then
// lists of items and content are emptied. A client waits for the end of a response, and has had its text in deltas. A
// function call whose arguments do not fit is shown as incomplete and without them, as half of them must not be run. If
// an event is too large even then, there is no message.
func fit(event []byte, limit int) [][]byte {
	if len(event) <= limit {
		return [][]byte{event}
	}
	d := json.NewDecoder(bytes.NewReader(event))
	d.UseNumber()
	var fields map[string]any
	if d.Decode(&fields) != nil {
		return nil
	}
	kind, _ := fields["type"].(string)
	if delta, ok := fields["delta"].(string); ok && strings.HasSuffix(kind, ".delta") {
		return split(fields, delta, limit)
	}
	if strings.HasSuffix(kind, "arguments.done") {
		return nil // the item's own event says that it is incomplete
	}
	for most := limit / 4; most >= 64; most /= 4 {
		shorten(fields, most)
		if b := events.Encode(fields); len(b) <= limit {
			return [][]byte{b}
		}
	}
	empty(fields)
	if b := events.Encode(fields); len(b) <= limit {
		return [][]byte{b}
	}
	return nil
}

// split splits a delta into several.
func split(fields map[string]any, delta string, limit int) (all [][]byte) {
	fields["delta"] = ""
	// A byte of text takes six in JSON at most.
	room := (limit - len(events.Encode(fields))) / 6
	if room < utf8.UTFMax {
		return nil
	}
	for delta != "" {
		n := runeEnd(delta, room)
		fields["delta"] = delta[:n]
		all, delta = append(all, events.Encode(fields)), delta[n:]
	}
	return all
}

// runeEnd returns the last index at or before n at which a text can be cut between runes, but not before its first
// rune.
func runeEnd(s string, n int) int {
	if len(s) <= n {
		return len(s)
	}
	for i := n; i > max(n-utf8.UTFMax, 0); i-- {
		if utf8.RuneStart(s[i]) {
			return i
		}
	}
	return n // not UTF-8
}

// shorten cuts all texts to most bytes and leaves out longer sound. It recurses, as events nest at most
// [handoff.MaxDepth] levels.
func shorten(v any, most int) any {
	switch v := v.(type) {
	case string:
		if len(v) > most {
			return v[:runeEnd(v, most-len(cutMark))] + cutMark
		}
	case []any:
		for i := range v {
			v[i] = shorten(v[i], most)
		}
	case map[string]any:
		if arguments, ok := v["arguments"].(string); ok && len(arguments) > most {
			v["arguments"], v["status"] = "", events.StatusIncomplete
		}
		for key, field := range v {
			text, ok := field.(string)
			switch {
			case ok && key == "audio" && len(text) > most:
				delete(v, key)
			case ok && (key == "type" || strings.HasSuffix(key, "id")): // part of an id would be another id
			default:
				v[key] = shorten(field, most)
			}
		}
	}
	return v
}

// empty empties the lists in an event, which may be long without a long text.
func empty(v any) {
	fields, ok := v.(map[string]any)
	if !ok {
		return
	}
	for key, field := range fields {
		if _, list := field.([]any); list {
			fields[key] = []any{}
			continue
		}
		empty(field)
	}
}

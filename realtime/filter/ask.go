package filter

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

const (
	// tagAside begins the tags of the client's out-of-band responses, which need no floor.
	tagAside = "out"
	// tagClient begins the tags of the client's other asks.
	tagClient = "c"
	// maxMetadata is how many pairs a response's metadata may have (API reference).
	maxMetadata = 16
)

// A pair is a key of the client's metadata with its raw value.
type pair struct{ key, value string }

// Aside reports whether a tag is that of an out-of-band response of the client.
func Aside(tag string) bool { return strings.HasPrefix(tag, tagAside) }

// Forget forgets an ask of the client that was refused.
func (m *Filter) Forget(tag string) {
	delete(m.toolsOfAsk, tag)
	delete(m.displaced, tag)
}

// Ask patches the client's response.create: it adds our tag, and our tools beside those that it brings. An out-of-band
// one gets only the client's tools, as our calls in it could not be answered.
func (m *Filter) Ask(event []byte) (patched []byte, tag string) {
	r := gjson.GetBytes(event, "response")
	m.asks++
	tag = tagClient + strconv.Itoa(m.asks)
	if r.Exists() && r.Type != gjson.Null && !r.IsObject() {
		return event, tag // the model refuses it
	}
	if r.Get("conversation").String() == "none" {
		tag = tagAside
	}
	event = m.askTools(event, r, tag)
	metadata := r.Get("metadata")
	switch n := len(metadata.Map()); {
	case metadata.IsObject() && n == maxMetadata:
		// Our tag takes the place of the last pair, which comes back with the response.
		if Aside(tag) { // out-of-band asks share one tag, but each needs its own pair
			tag += strconv.Itoa(m.asks)
		}
		var last pair
		metadata.ForEach(func(key, value gjson.Result) bool {
			last = pair{key.String(), value.Raw}
			return true
		})
		m.displaced[tag] = last
		event = events.Remove(event, "response.metadata."+gjson.Escape(last.key))
		event = events.Set(event, "response.metadata."+events.TagKey, events.Quote(tag))
	case metadata.IsObject() && n < maxMetadata:
		event = events.Set(event, "response.metadata."+events.TagKey, events.Quote(tag))
	case !metadata.Exists() || metadata.Type == gjson.Null:
		event = events.Set(event, "response.metadata", `{"`+events.TagKey+`":"`+tag+`"}`)
	}
	return event, tag
}

// askTools adds our tools to those that an ask brings, or sets only the client's if ours must not be called in it.
func (m *Filter) askTools(event []byte, r gjson.Result, tag string) []byte {
	s := &m.session
	if s.transcriptionOnly {
		return event
	}
	forced := s.now.forced
	if choice := r.Get("tool_choice"); choice.Exists() && choice.Type != gjson.Null {
		forced = forces(choice)
	}
	tools, aside := r.Get("tools"), Aside(tag)
	switch {
	case tools.IsArray() && !aside:
		ours := s.allowed(tools.Raw, forced)
		m.toolsOfAsk[tag] = ours
		if len(ours) > 0 {
			event = events.Set(event, "response.tools", s.join(tools.Raw, ours))
		}
	case (aside || forced) && (!tools.Exists() || tools.Type == gjson.Null) && len(s.now.ours) > 0:
		if !aside {
			m.toolsOfAsk[tag] = nil
		}
		event = events.Set(event, "response.tools", s.join(s.now.tools, nil))
	}
	return event
}

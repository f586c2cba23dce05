package mask

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

// A pair is one of a client's metadata, raw.
type pair struct{ key, value string }

// Aside reports whether a tag is of a response of the client out of band.
func Aside(tag string) bool { return strings.HasPrefix(tag, tagAside) }

// Forget forgets an ask of the client that was refused.
func (m *Mask) Forget(tag string) {
	delete(m.special, tag)
	delete(m.pairs, tag)
}

// Ask patches the client's response.create: its tag, and our tools beside its own. An out-of-band one
// gets the client's tools alone, for its requests could not be answered.
func (m *Mask) Ask(event []byte) (patched []byte, tag string) {
	r := gjson.GetBytes(event, "response")
	m.asks++
	tag = tagClient + strconv.Itoa(m.asks)
	if r.Exists() && r.Type != gjson.Null && !r.IsObject() {
		return event, tag // the model says what is wrong with it
	}
	if r.Get("conversation").String() == "none" {
		tag = tagAside
	}
	event = m.askTools(event, r, tag)
	metadata := r.Get("metadata")
	switch n := len(metadata.Map()); {
	case metadata.IsObject() && n == maxMetadata:
		// Our tag takes the place of the last pair, which comes back with the response.
		if Aside(tag) { // they share a tag, but not a pair
			tag += strconv.Itoa(m.asks)
		}
		var last pair
		metadata.ForEach(func(key, value gjson.Result) bool {
			last = pair{key.String(), value.Raw}
			return true
		})
		m.pairs[tag] = last
		event = events.Remove(event, "response.metadata."+gjson.Escape(last.key))
		event = events.Set(event, "response.metadata."+events.TagKey, events.Quote(tag))
	case metadata.IsObject() && n < maxMetadata:
		event = events.Set(event, "response.metadata."+events.TagKey, events.Quote(tag))
	case !metadata.Exists() || metadata.Type == gjson.Null:
		event = events.Set(event, "response.metadata", `{"`+events.TagKey+`":"`+tag+`"}`)
	}
	return event, tag
}

// askTools puts our tools beside those that an ask brings, or the client's alone where ours are not to be called.
func (m *Mask) askTools(event []byte, r gjson.Result, tag string) []byte {
	s := &m.session
	if s.foreign {
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
		m.special[tag] = ours
		if len(ours) > 0 {
			event = events.Set(event, "response.tools", s.join(tools.Raw, ours))
		}
	case (aside || forced) && (!tools.Exists() || tools.Type == gjson.Null) && len(s.now.ours) > 0:
		if !aside {
			m.special[tag] = nil
		}
		event = events.Set(event, "response.tools", s.join(s.now.tools, nil))
	}
	return event
}

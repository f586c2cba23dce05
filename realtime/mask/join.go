package mask

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// maxReclaims bounds how often our tools are put back into somebody else's session: another might take them out each
// time that we do.
const maxReclaims = 32

// Begin returns the session with which a call of the provider begins that we will join. It is what the client asked
// for, a raw session or nil, with our tools. Where that says nothing of them, it has our instructions, our effort of
// reasoning ("": the model's own) and transcription of the caller. Formats of sound are left out: SDP agrees on them.
func Begin(asked []byte, tools []handoff.Tool, guide handoff.Guide, effort string) []byte {
	s := session{additions: additions{tools: tools, guide: guide.Whole, added: guide.Added}, created: true}
	update := events.Encode(events.Object{
		"type": events.TypeSessionUpdate, "session": json.RawMessage(`{"type":"realtime"}`),
	})
	if len(asked) > 0 {
		update = events.Set(update, "session", string(asked))
	}
	for path, none := range map[string]string{pathTools: "[]", "session.audio": "{}"} {
		if !gjson.GetBytes(update, path).Exists() {
			update = events.Set(update, path, none)
		}
	}
	for _, path := range []string{"session.audio.input.format", "session.audio.output.format"} {
		update = events.Remove(update, path)
	}
	update = s.change(update, "")
	if !s.now.instructed && s.guide != "" {
		update = events.Set(update, pathInstructions, events.Quote(s.instructions(s.now.ours)))
	}
	if effort != "" && !gjson.GetBytes(update, "session.reasoning").Exists() {
		update = events.Set(update, "session.reasoning", string(events.Encode(events.Object{"effort": effort})))
	}
	return []byte(gjson.GetBytes(update, "session").Raw)
}

// Join makes the session somebody else's which runs already, before it begins for us. Our tools are added to it, and
// nothing else: its instructions and its transcription stay. It returns an update that changes nothing: its answer
// describes the session also where a server sends no session.created to a socket that joins.
func (m *Mask) Join() []byte {
	m.session.joined, m.session.guide, m.session.added, m.session.effort = true, "", "", ""
	return m.session.own(m.ids, change{}, events.Object{"type": "realtime"})
}

// Joined takes the answer to [Mask.Join] as the session's beginning.
func (m *Mask) Joined() { m.session.updates = nil }

// Leave returns the update that takes our tools out of a session that goes on without us.
func (m *Mask) Leave() []byte {
	m.session.toolless = true
	return m.session.setTools(m.ids, false)
}

// Reclaim takes a session.updated of a session that we joined, and returns the update that puts our tools back where
// somebody else set theirs; nil: there is nothing to do.
func (m *Mask) Reclaim(event []byte) []byte {
	s := &m.session
	r := gjson.GetBytes(event, "session")
	tools := r.Get("tools")
	off := !s.joined || !s.created || s.foreign || s.toolless
	if off || !tools.IsArray() || !m.Confirmed() || s.reclaims >= maxReclaims {
		return nil
	}
	theirs, ours := s.theirs(tools)
	s.base.tools, s.base.forced = theirs, forces(r.Get("tool_choice"))
	s.rebase()
	if slices.Equal(ours, s.allowed(theirs, s.base.forced)) {
		return nil
	}
	s.reclaims++
	return s.setTools(m.ids, false)
}

// theirs returns the tools in a session that are not ours, raw, and the names of those that are: in a session that
// we joined ours may stand from before, and are known by their descriptions. Of another all are the client's.
func (s *session) theirs(tools gjson.Result) (raw string, ours []string) {
	if !s.joined {
		return tools.Raw, nil
	}
	var all []string
	for _, r := range tools.Array() {
		name := r.Get("name").String()
		tool := s.tool(name)
		described := strings.HasPrefix(r.Get("description").String(), tool.Description)
		if tool.Name != "" && described && (tool.Description != "" || slices.Contains(s.now.ours, name)) {
			ours = append(ours, name)
			continue
		}
		all = append(all, r.Raw)
	}
	return "[" + strings.Join(all, ",") + "]", ours
}

// Hidden reports whether an item is ours.
func (m *Mask) Hidden(item string) bool { return m.items.hidden[item] }

package filter

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// maxReclaims bounds how often our tools are put back into another program's session: that might remove them each time.
const maxReclaims = 32

// Begin returns the session with which to begin a call of the provider that we will join: what the client asked for (a
// raw session, or nil), with our tools. If the client did not set them, it also has our instructions, this reasoning
// effort ("": the model's own) and transcription of the caller. Audio formats are left out, as SDP negotiates them.
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
	if !s.now.hasInstructions && s.guide != "" {
		update = events.Set(update, pathInstructions, events.Quote(s.instructions(s.now.ours)))
	}
	if effort != "" && !gjson.GetBytes(update, "session.reasoning").Exists() {
		update = events.Set(update, "session.reasoning", string(events.Encode(events.Object{"effort": effort})))
	}
	return []byte(gjson.GetBytes(update, "session").Raw)
}

// Join makes the session one of another program that runs already. It is called before the session begins for us. Only
// our tools are added; the session's instructions and transcription stay. It returns an update that changes nothing:
// the answer describes the session, if the server sends no session.created to a socket that joins.
func (m *Filter) Join() []byte {
	m.session.joined, m.session.guide, m.session.added, m.session.effort = true, "", "", ""
	return m.session.own(m.ids, change{}, events.Object{"type": "realtime"})
}

// Joined notes that the answer to [Filter.Join] has come, and is taken as the session's beginning.
func (m *Filter) Joined() { m.session.updates = nil }

// Leave returns the update that removes our tools from a session which goes on without us.
func (m *Filter) Leave() []byte {
	m.session.withoutOurs = true
	return m.session.setTools(m.ids, false)
}

// Reclaim handles a session.updated of a session that we joined. It returns the update that puts our tools back after
// another program has set its own. It returns nil if ours are in force or belong to no such session, while an update of
// ours is unanswered, and after maxReclaims.
func (m *Filter) Reclaim(event []byte) []byte {
	s := &m.session
	r := gjson.GetBytes(event, "session")
	tools := r.Get("tools")
	ours := s.joined && s.created && !s.transcriptionOnly && !s.withoutOurs
	if !ours || !tools.IsArray() || !m.Confirmed() || s.reclaims >= maxReclaims {
		return nil
	}
	theirs, there := s.clientTools(tools)
	s.base.tools, s.base.forced = theirs, forces(r.Get("tool_choice"))
	s.rebase()
	if slices.Equal(there, s.allowed(theirs, s.base.forced)) {
		return nil
	}
	s.reclaims++
	return s.setTools(m.ids, false)
}

// clientTools returns the tools in a session that are not ours, raw, and the names of those that are. Only a session
// that we joined may have tools of ours from before; they are recognised by name and description.
func (s *session) clientTools(tools gjson.Result) (raw string, ours []string) {
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

// Hidden reports whether an item is hidden from the client.
func (m *Filter) Hidden(item string) bool { return m.items.hidden[item] }

package filter

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// ourPrefix is put before the name of a tool of ours if the client has a tool of that name.
const ourPrefix = "switchboard_"

// additions are our tools and instructions for a session. Owned by the session.
type additions struct {
	tools       []handoff.Tool // Set once
	guide       string         // Set once: our instructions if the client has none; or ""
	added       string         // Set once: our addition to the client's instructions; or ""
	withoutOurs bool           // our tools are left out: the model refused them, or we leave
}

// allowed returns the names of our tools beside the client's: none if the client forces a choice or ours are left out.
// A tool whose name the client uses gets ourPrefix; if the client uses that name, too, the tool is left out.
func (s *additions) allowed(tools string, forced bool) []string {
	if forced || s.withoutOurs {
		return nil
	}
	theirs := names(tools)
	var ours []string
	for _, tool := range s.tools {
		name := tool.Name
		if theirs[name] {
			name = ourPrefix + name
		}
		if !theirs[name] {
			ours = append(ours, name)
		}
	}
	return ours
}

// names returns the names in a raw list of tools.
func names(tools string) map[string]bool {
	all := map[string]bool{}
	for _, r := range gjson.Parse(tools).Array() {
		all[r.Get("name").String()] = true
	}
	return all
}

// Requested returns the tool of ours that an item calls; false: the call is not ours.
func (m *Filter) Requested(it events.Item) (handoff.Tool, bool) {
	if it.Kind != events.ItemCall || !m.items.calls[it.CallID] {
		return handoff.Tool{}, false
	}
	return m.session.tool(it.Name), true
}

// Transcribes reports whether the caller's speech is transcribed, as far as is known.
func (m *Filter) Transcribes() bool {
	return m.session.now.transcriptionOn || m.session.now.ourTranscription
}

// tool returns our tool that the model has under a name; zero: there is none.
func (s *additions) tool(name string) handoff.Tool {
	for _, tool := range s.tools {
		if name == tool.Name || name == ourPrefix+tool.Name {
			return tool
		}
	}
	return handoff.Tool{}
}

// join appends our tools to the client's raw list.
func (s *additions) join(tools string, ours []string) string {
	var all []string
	for _, r := range gjson.Parse(tools).Array() {
		all = append(all, r.Raw)
	}
	for _, name := range ours {
		tool := s.tool(name)
		if name != tool.Name {
			tool.Description += renameNote(tool.Name, name)
		}
		all = append(all, string(events.Encode(events.Object{"type": "function", "name": name,
			"description": tool.Description, "parameters": tool.Parameters})))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// instructions returns our instructions, for a model that has our tools under these names.
func (s *additions) instructions(ours []string) string { return s.guide + s.renameNotes(ours) }

// addition returns our addition to the client's instructions, for such a model.
func (s *additions) addition(ours []string) string { return s.additionStart() + s.renameNotes(ours) }

// additionStart returns the beginning of the addition.
func (s *additions) additionStart() string { return "\n\n" + s.added }

// removeAddition removes our addition from the client's instructions in an event.
func (s *additions) removeAddition(event []byte, path string) []byte {
	text := gjson.GetBytes(event, path).String()
	if at := strings.LastIndex(text, s.additionStart()); s.added != "" && at >= 0 {
		return events.Set(event, path, events.Quote(text[:at]))
	}
	return event
}

// renameNotes returns a note for each of these names that is not the tool's own.
func (s *additions) renameNotes(ours []string) string {
	var text strings.Builder
	for _, name := range ours {
		if tool := s.tool(name); name != tool.Name {
			text.WriteString(renameNote(tool.Name, name))
		}
	}
	return text.String()
}

// needsTranscription reports whether we have to turn transcription on in a view. If the client turned it off it stays
// off, unless a tool of ours acts on what the caller said.
func (s *additions) needsTranscription(v view) bool {
	switch {
	case v.transcriptionOn || len(s.tools) == 0:
		return false
	case v.transcriptionOff:
		return slices.ContainsFunc(s.tools, func(t handoff.Tool) bool { return t.Words })
	}
	return true
}

// renameNote tells the model that a tool has another name here: descriptions, results and messages use its own name.
func renameNote(own, name string) string {
	return " Where Switchboard says " + own + ", here or in its tools, results and messages, it means " + name + "; " +
		own + " itself is another tool."
}

// withoutTools removes our tools from a list.
func withoutTools(tools gjson.Result, ours []string) (kept string, dropped bool) {
	var all []string
	for _, r := range tools.Array() {
		if kind := r.Get("type").String(); (kind == "function" || kind == "") &&
			slices.Contains(ours, r.Get("name").String()) {
			dropped = true
			continue
		}
		all = append(all, r.Raw)
	}
	return "[" + strings.Join(all, ",") + "]", dropped
}

// forces reports whether a tool choice forces the model to call a tool.
func forces(choice gjson.Result) bool {
	return choice.IsObject() || choice.String() == "required"
}

package mask

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// ourPrefix begins the name of a tool of ours whose own name the client uses itself.
const ourPrefix = "switchboard_"

// additions are our tools and instructions for a session, which owns them.
type additions struct {
	tools    []handoff.Tool // Set once
	guide    string         // Set once: our instructions, where the client has none; or ""
	added    string         // Set once: those after the client's; or ""
	toolless bool           // the model refused our tools
}

// allowed names our tools that may stand beside the client's, as the model is to have them: none while it forces
// a choice or the model refused them, and under another name where the client uses ours. One whose other name is the
// client's, too, is left out.
func (s *additions) allowed(tools string, forced bool) []string {
	if forced || s.toolless {
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
func (m *Mask) Requested(it events.Item) (handoff.Tool, bool) {
	if it.Kind != events.ItemCall || !m.items.calls[it.CallID] {
		return handoff.Tool{}, false
	}
	return m.session.tool(it.Name), true
}

// tool returns the tool of ours that the model has under a name. Zero: it is none.
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
			tool.Description += renamed(tool.Name, name)
		}
		all = append(all, string(events.Encode(events.Object{"type": "function", "name": name,
			"description": tool.Description, "parameters": tool.Parameters})))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// instructions are ours for a model that has our tools under these names.
func (s *additions) instructions(ours []string) string { return s.guide + s.renames(ours) }

// addition are our words after the client's, for such a model.
func (s *additions) addition(ours []string) string { return s.addedMark() + s.renames(ours) }

// addedMark begins them.
func (s *additions) addedMark() string { return "\n\n" + s.added }

// unadded takes our words out of the client's instructions in an event.
func (s *additions) unadded(event []byte, path string) []byte {
	text := gjson.GetBytes(event, path).String()
	if at := strings.LastIndex(text, s.addedMark()); s.added != "" && at >= 0 {
		return events.Set(event, path, events.Quote(text[:at]))
	}
	return event
}

// renames tells which of these names are not our tools' own.
func (s *additions) renames(ours []string) string {
	var text strings.Builder
	for _, name := range ours {
		if tool := s.tool(name); name != tool.Name {
			text.WriteString(renamed(tool.Name, name))
		}
	}
	return text.String()
}

// listens reports whether the caller's speech is to be transcribed for us in a view: a client that has it off keeps it
// off, unless a tool of ours acts on what the caller said.
func (s *additions) listens(v view) bool {
	switch {
	case v.transcribed || len(s.tools) == 0:
		return false
	case v.silenced:
		return slices.ContainsFunc(s.tools, func(t handoff.Tool) bool { return t.Words })
	}
	return true
}

// renamed tells the model that what it reads of a tool's own name means another: descriptions, results and messages
// call ours by its own name.
func renamed(own, name string) string {
	return " Where Switchboard says " + own + ", here or in its tools, results and messages, it means " + name + "; " +
		own + " itself is another tool."
}

// without drops our tools from a list.
func without(tools gjson.Result, ours []string) (kept string, dropped bool) {
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

// forces reports whether a tool choice makes the model call something.
func forces(choice gjson.Result) bool {
	return choice.IsObject() || choice.String() == "required"
}

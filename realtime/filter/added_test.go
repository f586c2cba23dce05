package filter

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

const addition = "A test adds this."

func newAddingFilter() *Filter {
	return New(events.NewNames(), slices.Clone(ourTools), handoff.Guide{Whole: guide, Added: addition})
}

// begun lets the session begin and acknowledges our updates, which it returns.
func (m *Filter) begun() []string {
	var all []string
	_, updates := m.FromModel(events.TypeSessionCreated, []byte(freshSession))
	for _, u := range updates {
		all = append(all, string(u))
	}
	for !m.Confirmed() {
		m.model(`{"type":"session.updated","session":{}}`)
	}
	return all
}

// TestAddedToTheirs: a client's instructions go to the model with our words after them, and the client sees its own.
// What is no text to add to stays as it is.
func TestAddedToTheirs(t *testing.T) {
	const after = "\n\n" + addition
	for name, c := range map[string]struct{ session, want string }{
		"theirs":        {`{"instructions":"mine"}`, `"mine\n\n` + addition + `"`},
		"with a prompt": {`{"instructions":"mine","prompt":{"id":"p"}}`, `"mine\n\n` + addition + `"`},
		"none":          {`{"instructions":""}`, `""`},
		"blanks":        {`{"instructions":" \n"}`, `" \n"`},
		"null":          {`{"instructions":null}`, `null`},
		"no text":       {`{"instructions":7}`, `7`},
		"a prompt":      {`{"prompt":{"id":"p"}}`, `"be nice"`}, // as the model was, in the place of our own
		"others stand":  {`{"tool_choice":"auto"}`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			for _, first := range []bool{true, false} {
				m := newAddingFilter()
				if !first {
					m.begun()
				}
				sent := string(m.client(`{"type":"session.update","event_id":"u","session":` + c.session + `}`).Forward)
				got := gjson.Get(sent, pathInstructions).Raw
				if want := c.want; got != want && (!first || name != "a prompt") {
					t.Fatalf("before it begins %t: the model gets %s, want %s", first, got, want)
				}
				if name != "theirs" {
					continue
				}
				if first {
					if ours := m.begun()[0]; gjson.Get(ours, pathInstructions).Exists() {
						t.Errorf("ours are set over them: %s", ours)
					}
				}
				echo := `{"type":"session.updated","session":{"id":"s","instructions":` + events.Quote("mine"+after) + `}}`
				if shown := m.model(echo); gjson.Get(shown, pathInstructions).String() != "mine" {
					t.Errorf("before it begins %t: the client sees %s", first, shown)
				}
				shown := m.model(`{"type":"response.created","response":{"id":"r","instructions":` + events.Quote("mine"+after) + `}}`)
				if gjson.Get(shown, "response.instructions").String() != "mine" {
					t.Errorf("the client sees %s", shown)
				}
			}
		})
	}
}

// TestAddedNames: where a tool of ours has another name because of the client's tools, our words say so for as long.
func TestAddedNames(t *testing.T) {
	m := newAddingFilter()
	m.client(`{"type":"session.update","session":{"instructions":"mine"}}`)
	first := string(m.client(`{"type":"session.update","session":{"tools":[{"type":"function","name":"codex"}]}}`).Forward)
	want := "mine\n\n" + addition + renameNote("codex", "switchboard_codex")
	if got := gjson.Get(first, pathInstructions).String(); got != want {
		t.Errorf("with the client's tool: %q", got)
	}
	m.begun()
	again := string(m.client(`{"type":"session.update","session":{"tools":[]}}`).Forward)
	if got := gjson.Get(again, pathInstructions).String(); got != "mine\n\n"+addition {
		t.Errorf("without the client's tool: %q", got)
	}
	shown := m.model(`{"type":"session.updated","session":{"instructions":` + events.Quote(want) + `,"tools":[]}}`)
	if gjson.Get(shown, pathInstructions).String() != "mine" {
		t.Errorf("the client sees %s", shown)
	}
}

// TestAddedRefused: instructions that the model refuses with our words go to it once more without them, and so do all
// that follow.
func TestAddedRefused(t *testing.T) {
	m := newAddingFilter()
	m.begun()
	given := `{"type":"session.update","event_id":"u","session":{"instructions":"mine"}}`
	m.client(given)
	refusal, known := m.Refused("u", []byte(`{"type":"error","error":{"event_id":"u","code":"string_above_max_length",`+
		`"param":"session.instructions"}}`))
	if !known || refusal.Shown != nil || len(refusal.Again) != 1 ||
		gjson.GetBytes(refusal.Again[0], pathInstructions).String() != "mine" {
		t.Fatalf("%t, the client sees %s, sent again %s", known, refusal.Shown, refusal.Again)
	}
	m.model(`{"type":"session.updated","session":{"instructions":"mine"}}`)
	later := string(m.client(`{"type":"session.update","session":{"instructions":"mine, too"}}`).Forward)
	if got := gjson.Get(later, pathInstructions).String(); got != "mine, too" {
		t.Errorf("later %q", got)
	}
}

// TestReasons: how hard the model thinks is asked for by itself, so that a model which cannot refuses that alone; what
// a client says of it wins, whenever it says so.
func TestReasons(t *testing.T) {
	effort := func(updates []string) (all []string) {
		for _, u := range updates {
			if r := gjson.Get(u, "session.reasoning.effort"); r.Exists() && !gjson.Get(u, pathTools).Exists() {
				all = append(all, r.Str)
			}
		}
		return all
	}
	m := newAddingFilter()
	m.SetEffort("high")
	_, updates := m.FromModel(events.TypeSessionCreated, []byte(freshSession))
	last := string(updates[len(updates)-1])
	if got := effort([]string{last}); !slices.Equal(got, []string{"high"}) {
		t.Fatalf("asked for %v in %s", got, last)
	}
	refusal, known := m.Refused(gjson.Get(last, "event_id").Str, []byte(`{"type":"error","error":{"event_id":`+
		gjson.Get(last, "event_id").Raw+`,"param":"session.reasoning"}}`))
	if !known || refusal.Shown != nil || refusal.Tools || refusal.Transcription || len(refusal.Again) > 0 {
		t.Errorf("refused: %+v", refusal)
	}
	if got := toolNames(string(m.client(`{"type":"session.update","session":{"tools":[]}}`).Forward), pathTools); !strings.Contains(got, "codex") {
		t.Errorf("our tools went with it: %s", got)
	}
	theirs := newAddingFilter()
	theirs.SetEffort("high")
	theirs.client(`{"type":"session.update","session":{"reasoning":{"effort":"minimal"}}}`)
	if got := effort(theirs.begun()); len(got) > 0 {
		t.Errorf("over the client's own: %v", got)
	}
	joins := newAddingFilter()
	joins.SetEffort("high")
	joins.Join()
	joins.Joined()
	if got := effort(joins.begun()); len(got) > 0 {
		t.Errorf("in somebody else's session: %v", got)
	}
	if got := effort(newAddingFilter().begun()); len(got) > 0 {
		t.Errorf("unasked: %v", got)
	}
}

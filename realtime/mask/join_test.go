package mask

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// In somebody else's session our tools stand beside theirs, and nothing else changes.
func TestJoin(t *testing.T) {
	own := `{"type":"function","name":"codex","description":"Works.","parameters":{}}`
	old := `{"type":"function","name":"codex","description":"Works. And more.","parameters":{}}`
	other := `{"type":"function","name":"codex","description":"A shop.","parameters":{}}`
	weather := `{"type":"function","name":"weather"}`
	for name, c := range map[string]struct{ session, tools, later, again string }{
		"no tools":           {`{}`, `["codex"]`, `{"tools":[` + own + `]}`, ``},
		"theirs":             {`{"tools":[` + weather + `]}`, `["weather","codex"]`, `{"tools":[` + weather + `]}`, `["weather","codex"]`},
		"ours from before":   {`{"tools":[` + weather + `,` + own + `]}`, `["weather","codex"]`, `{"tools":[` + old + `]}`, ``},
		"theirs has a name":  {`{"tools":[` + other + `]}`, `["codex","switchboard_codex"]`, `{"tools":[]}`, `["codex"]`},
		"they force a tool":  {`{"tools":[` + weather + `],"tool_choice":"required"}`, `["weather"]`, `{"tools":[` + weather + `],"tool_choice":"auto"}`, `["weather","codex"]`},
		"they begin forcing": {`{"tools":[]}`, `["codex"]`, `{"tools":[` + own + `],"tool_choice":"required"}`, `[]`},
		"nothing is told":    {`{}`, `["codex"]`, `{"voice":"x"}`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(events.NewNames(), []handoff.Tool{{Name: "codex", Description: "Works.", Parameters: []byte(`{}`), Words: true}}, "our guide")
			if got := gjson.GetBytes(m.Join(), "session").Raw; got != `{"type":"realtime"}` {
				t.Errorf("joins with %s", got)
			}
			m.Joined()
			_, updates := m.FromModel("session.created", []byte(`{"type":"session.created","session":`+c.session+`}`))
			if len(updates) != 1 || gjson.GetBytes(updates[0], "session.tools.#.name").Raw != c.tools || strings.Contains(string(updates[0]), "guide") {
				t.Fatalf("updates %s", updates)
			}
			later := []byte(`{"type":"session.updated","session":` + c.later + `}`)
			m.FromModel("session.updated", later)
			again := m.Reclaim(later)
			if got := gjson.GetBytes(again, "session.tools.#.name").Raw; got != c.again {
				t.Errorf("put back %s", again)
			}
			if got := gjson.GetBytes(m.Leave(), "session.tools.#.description").Raw; strings.Contains(got, "Works") {
				t.Errorf("left behind %s", got)
			}
		})
	}
}

// Who takes our tools out each time that they are put back wins.
func TestReclaimEnds(t *testing.T) {
	m := New(events.NewNames(), []handoff.Tool{{Name: "codex", Description: "Works."}}, "")
	m.Join()
	m.Joined()
	m.FromModel("session.created", []byte(`{"session":{}}`))
	n := 0
	for range 2 * maxReclaims {
		theirs := []byte(`{"session":{"tools":[]}}`)
		m.FromModel("session.updated", theirs)
		if m.Reclaim(theirs) != nil {
			n++
		}
	}
	if n != maxReclaims {
		t.Errorf("put back %d times", n)
	}
}

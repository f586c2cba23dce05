package filter

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		"no tools": {`{}`, `["codex"]`, `{"tools":[` + own + `]}`, ``},
		"theirs": {`{"tools":[` + weather + `]}`, `["weather","codex"]`, `{"tools":[` + weather + `]}`,
			`["weather","codex"]`},
		"ours from before": {`{"tools":[` + weather + `,` + own + `]}`, `["weather","codex"]`, `{"tools":[` + old + `]}`,
			``},
		"theirs has a name": {`{"tools":[` + other + `]}`, `["codex","switchboard_codex"]`, `{"tools":[]}`, `["codex"]`},
		"they force a tool": {`{"tools":[` + weather + `],"tool_choice":"required"}`, `["weather"]`, `{"tools":[` + weather +
			`],"tool_choice":"auto"}`, `["weather","codex"]`},
		"they begin forcing": {`{"tools":[]}`, `["codex"]`, `{"tools":[` + own + `],"tool_choice":"required"}`, `[]`},
		"nothing is told":    {`{}`, `["codex"]`, `{"voice":"x"}`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(events.NewNames(),
				[]handoff.Tool{{Name: "codex", Description: "Works.", Parameters: []byte(`{}`), Words: true}},
				handoff.Guide{Whole: "our guide", Added: "our guide too"})
			if got := gjson.GetBytes(m.Join(), "session").Raw; got != `{"type":"realtime"}` {
				t.Errorf("joins with %s", got)
			}
			m.Joined()
			_, updates := m.FromModel("session.created", []byte(`{"type":"session.created","session":`+c.session+`}`))
			if len(updates) != 1 || gjson.GetBytes(updates[0], "session.tools.#.name").Raw != c.tools ||
				strings.Contains(string(updates[0]), "guide") {
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

// Another program that removes our tools each time wins in the end.
func TestReclaimEnds(t *testing.T) {
	m := New(events.NewNames(), []handoff.Tool{{Name: "codex", Description: "Works."}}, handoff.Guide{})
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

// While a change of the client's tools is on its way, a call that the model begins is made with the tools it had
// before: what was the client's there stays the client's, though by now the name is ours again.
func TestClashWhileAnUpdateIsOnItsWay(t *testing.T) {
	const theirs = `{"type":"session.update","session":{"type":"realtime","tools":[{"type":"function","name":"codex"}]}}`
	const none = `{"type":"session.update","session":{"type":"realtime","tools":[]}}`
	ack := `{"type":"session.updated","session":{}}`
	for _, c := range []struct {
		name   string
		before []string // updates that the model has confirmed
		update string
		call   string
		hidden bool
	}{
		{"theirs goes, and is called", []string{theirs}, none, "codex", false},
		{"theirs goes, ours is called", []string{theirs}, none, "switchboard_codex", true},
		{"theirs comes, ours is called", nil, theirs, "codex", true},
		{"theirs stays, and is called", []string{theirs}, theirs, "codex", false},
		{"theirs stays, ours is called", []string{theirs}, theirs, "switchboard_codex", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newOpenFilter()
			for _, event := range c.before {
				m.client(event)
				m.model(ack)
			}
			m.client(c.update)
			m.model(began("r1", ""))
			if shown := m.model(itemDone("r1", callItem("i1", "c1", c.call, "completed"))); (shown == "") != c.hidden {
				t.Errorf("the client sees %q", shown)
			}
			if own := m.client(`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"c1",` +
				`"output":"x"}}`); own.Leaked != c.hidden {
				t.Errorf("its output is dropped: %t", own.Leaked)
			}
		})
	}
}

// A response may bring tools of its own: there, too, the client's tool keeps its name, and calls by that name are the
// client's.
func TestClashInOneResponse(t *testing.T) {
	m := newOpenFilter()
	ask := m.create(`{"type":"response.create","response":{"tools":[{"type":"function","name":"codex"}]}}`)
	if names := toolNames(ask, "response.tools"); names != `["codex","switchboard_`+allTools[1:]+"]" {
		t.Errorf("tools %s", names)
	}
	if got := gjson.Get(ask, `response.tools.#(name=="switchboard_codex").description`).String(); !strings.Contains(got,
		"switchboard_codex") {
		t.Errorf("described as %q", got)
	}
	m.model(began("r1", gjson.Get(ask, "response.metadata.sb").String()))
	for name, hidden := range map[string]bool{"codex": false, "switchboard_codex": true} {
		if shown := m.model(itemDone("r1", callItem("i_"+name, "c_"+name, name, "completed"))); (shown == "") != hidden {
			t.Errorf("of %s the client sees %q", name, shown)
		}
	}
	m.model(began("r2", ""))
	if m.model(itemDone("r2", callItem("i2", "c2", "codex", "completed"))) != "" {
		t.Error("in the next response the name is ours again")
	}
}

// A response that was interrupted may end without having begun. There, too, a call is whose the name is: of its ask's
// tools, and outside of the conversation none is ours.
func TestClashInAResponseThatNeverBegan(t *testing.T) {
	for _, c := range []struct {
		name, ask, call string
		hidden          bool
	}{
		{"theirs", `{"tools":[{"type":"function","name":"codex"}]}`, "codex", false},
		{"ours", `{"tools":[{"type":"function","name":"codex"}]}`, "switchboard_codex", true},
		{"beside", `{"conversation":"none","tools":[{"type":"function","name":"codex"}]}`, "codex", false},
		{"without tools", `{}`, "codex", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newOpenFilter()
			tag := gjson.Get(m.create(`{"type":"response.create","response":`+c.ask+`}`), "response.metadata.sb").String()
			shown := m.model(done("r1", tag, "cancelled", callItem("i1", "c1", c.call, "completed")))
			if hidden := !strings.Contains(shown, "i1"); hidden != c.hidden {
				t.Errorf("the client sees %s", shown)
			}
			if n := len(m.toolsOfAsk) + len(m.toolsOfResponse) + len(m.outOfBand); n != 0 {
				t.Errorf("%d are left open", n)
			}
		})
	}
}

// TestBegin: a call that the provider carries begins with what its client asked for, and what is ours beside that.
func TestBegin(t *testing.T) {
	t.Parallel()
	tools := []handoff.Tool{{Name: "codex", Description: "Works.", Parameters: json.RawMessage(`{"type":"object"}`)}}
	const ours = `{"type":"function","name":"codex","description":"Works.","parameters":{"type":"object"}}`
	const heard = `"transcription":{"model":"` + TranscriptionModel + `"}`
	for name, c := range map[string]struct{ asked, effort, want string }{
		"nothing": {"", "", `{"type":"realtime","instructions":"Guide.","tools":[` + ours + `],"audio":{"input":{` + heard + `}}}`},
		"what it says of reasoning stands": {`{"type":"realtime","reasoning":{"effort":"high"}}`, "low",
			`{"type":"realtime","reasoning":{"effort":"high"},"instructions":"Guide.","tools":[` + ours + `],"audio":{"input":{` + heard + `}}}`},
		"effort": {"", "low", `{"type":"realtime","reasoning":{"effort":"low"},"instructions":"Guide.","tools":[` + ours + `],"audio":{"input":{` + heard + `}}}`},
		"its own": {`{"type":"realtime","model":"other","instructions":"Be a pirate.","tools":[{"type":"function","name":"weather"}],` +
			`"audio":{"input":{"format":{"type":"audio/pcmu"},"transcription":{"model":"w"}},"output":{"voice":"cedar","format":{"type":"audio/pcmu"}}}}`, "",
			`{"type":"realtime","instructions":"Be a pirate.","tools":[{"type":"function","name":"weather"},` + ours + `],` +
				`"audio":{"input":{"transcription":{"model":"w"}},"output":{"voice":"cedar"}}}`},
		"a forced choice leaves no room for ours": {`{"type":"realtime","tool_choice":"required","tools":[{"type":"function","name":"weather"}]}`, "",
			`{"type":"realtime","instructions":"Guide.","tool_choice":"required","tools":[{"type":"function","name":"weather"}],"audio":{"input":{` + heard + `}}}`},
	} {
		var got, want any
		if err := json.Unmarshal(Begin([]byte(c.asked), tools, handoff.Guide{Whole: "Guide."}, c.effort), &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

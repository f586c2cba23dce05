package filter

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

func fault(id string) []byte {
	return []byte(`{"type":"error","error":{"type":"invalid_request_error","code":"invalid_value","event_id":"` + id +
		`"}}`)
}

// A refused update changes nothing at the model: what the client asks for after it stands on what was in force.
func TestUpdateAfterARefusedOne(t *testing.T) {
	ours := events.Quote(guide)
	for _, c := range []struct {
		name, refused, accepted string
		echo                    string // of the accepted one
		instructions            string // that the client sees then
		again                   string // tools that we set once more
	}{
		{"instructions, then tools", `{"instructions":"mine"}`, `{"tools":[]}`,
			`{"instructions":` + ours + `,"tools":[` + allCalled() + `]}`, "be nice", ""},
		{"a forced choice, then a voice", `{"tools":[{"name":"w"}],"tool_choice":"required"}`, `{"voice":"cedar"}`,
			`{"instructions":` + ours + `,"tools":[` + allCalled() + `]}`, "be nice", ""},
		{"a forced choice, then tools without ours", `{"tool_choice":"required"}`, `{"tools":[{"name":"w"}]}`,
			`{"instructions":` + ours + `,"tools":[{"name":"w"}]}`, "be nice", `["w",` + allTools + `]`},
		{"tools, then a choice that sends them along", `{"tools":[{"name":"w"}],"bad":1}`, `{"tool_choice":"required"}`,
			`{"instructions":` + ours + `,"tools":[{"name":"w"}]}`, "be nice", `[]`},
		{"the client's own codex, then a voice", `{"tools":[{"name":"codex"}]}`, `{"voice":"cedar"}`,
			`{"instructions":` + ours + `,"tools":[` + allCalled() + `]}`, "be nice", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newOpenFilter()
			m.client(`{"type":"session.update","event_id":"bad","session":` + c.refused + `}`)
			m.client(`{"type":"session.update","event_id":"good","session":` + c.accepted + `}`)
			refusal, known := m.Refused("bad", fault("bad"))
			if !known || string(refusal.Shown) != string(fault("bad")) {
				t.Fatalf("the client sees %s", refusal.Shown)
			}
			again := refusal.Again
			sent := ""
			for _, e := range again {
				sent = toolNames(string(e), pathTools)
			}
			if sent != c.again {
				t.Errorf("set again: %s, want %s", sent, c.again)
			}
			echo := m.model(`{"type":"session.updated","session":` + c.echo + `}`)
			for _, name := range gjson.Get(echo, pathTools+".#.name").Array() {
				if name.String() != "w" {
					t.Errorf("the client sees %s", echo)
				}
			}
			if got := gjson.Get(echo, pathInstructions).String(); got != c.instructions {
				t.Errorf("the client sees the instructions %q", got)
			}
			for range again {
				if got := m.model(`{"type":"session.updated","session":{}}`); got != "" {
					t.Errorf("the client sees ours: %s", got)
				}
			}
			if c.again != "[]" && m.model(itemDone("r1", callItem("i1", "c1", "codex", "completed"))) != "" {
				t.Error("a call of ours leaks to the client")
			}
			if !m.Confirmed() {
				t.Error("an update is left")
			}
		})
	}
}

func allCalled() string {
	var list strings.Builder
	for i, tool := range ourTools {
		if i > 0 {
			list.WriteString(",")
		}
		list.WriteString(`{"type":"function","name":` + events.Quote(tool.Name) + `}`)
	}
	return list.String()
}

// What is refused of ours is not asked for again and again.
func TestOursRefused(t *testing.T) {
	m := newTestFilter()
	_, updates := m.FromModel(events.TypeSessionCreated, []byte(freshSession))
	for range 3 {
		for _, e := range updates {
			refusal, known := m.Refused(gjson.GetBytes(e, "event_id").String(), nil)
			if !known || len(refusal.Again) > 0 {
				t.Fatalf("again: %s", refusal.Again)
			}
		}
		updates = nil
	}
	if !m.Confirmed() {
		t.Error("an update is left")
	}
	got := string(m.client(`{"type":"session.update","event_id":"e","session":{"voice":"cedar"}}`).Forward)
	if strings.Contains(got, "codex") {
		t.Errorf("then the model is sent %s", got)
	}
}

// A client's update that was on its way when the model refused our tools or our transcription is sent again without.
func TestOnItsWayWhenOursWasRefused(t *testing.T) {
	const given = `{"type":"session.update","event_id":"e","session":{"tools":[{"type":"function","name":"w"}],` +
		`"audio":{"input":{"noise_reduction":null}}}}`
	for i, lacks := range []string{pathTools, pathTranscription} {
		m := newTestFilter()
		_, own := m.FromModel(events.TypeSessionCreated, []byte(freshSession))
		m.client(given)
		m.Refused(gjson.GetBytes(own[i], "event_id").String(), nil)
		m.model(`{"type":"session.updated","session":{}}`)
		refusal, known := m.Refused("e", fault("e"))
		if !known || refusal.Shown != nil || len(refusal.Again) != 1 {
			t.Fatalf("%s: %+v", lacks, refusal)
		}
		again := gjson.ParseBytes(refusal.Again[0])
		if ours := strings.Contains(again.Get(pathTools).Raw, "codex"); ours != (i == 1) ||
			again.Get(pathTranscription).Exists() != (i == 0) {
			t.Errorf("%s: again %s", lacks, again)
		}
		if refusal, _ = m.Refused("e", fault("e")); refusal.Shown == nil || len(refusal.Again) > 0 && i == 0 {
			t.Errorf("%s: refused again, the client is told %s, and the model sent %s", lacks, refusal.Shown, refusal.Again)
		}
	}
}

// A response that begins while the client's instructions are on their way is made with ours: they do not show.
func TestInstructionsOnTheirWay(t *testing.T) {
	m := newOpenFilter()
	m.client(`{"type":"session.update","session":{"instructions":"mine"}}`)
	got := m.model(`{"type":"response.created","response":{"id":"r1","instructions":` + events.Quote(guide) + `}}`)
	if gjson.Get(got, "response.instructions").String() != "be nice" {
		t.Errorf("the client sees %s", got)
	}
}

// A model that answers no updates, and whose errors name no event, refuses what still waits: not ours of long ago, with
// which our tools would go, and not in silence.
func TestNamelessRefusalAfterOverdue(t *testing.T) {
	m := newTestFilter()
	m.FromModel(events.TypeSessionCreated, []byte(freshSession))
	m.Overdue()
	m.client(`{"type":"session.update","event_id":"bad","session":{"voice":"nobody"}}`)
	nameless := `{"type":"error","error":{"type":"invalid_request_error","code":"invalid_value",` +
		`"param":"session.audio.output.voice"}}`
	refusal, known := m.Refused("", []byte(nameless))
	if !known || string(refusal.Shown) != nameless || refusal.Tools || refusal.Transcription {
		t.Errorf("the client sees %s, and of ours was refused: tools %t, words %t", refusal.Shown, refusal.Tools,
			refusal.Transcription)
	}
	got := string(m.client(`{"type":"session.update","event_id":"e","session":{"tools":[]}}`).Forward)
	if !strings.Contains(got, "codex") {
		t.Errorf("then the model is sent %s", got)
	}
}

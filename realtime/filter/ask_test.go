package filter

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
)

// sixteen are as many pairs as a response may have, less so many.
func sixteen(less int) string {
	full := map[string]string{}
	for i := range maxMetadata - less {
		full[fmt.Sprintf("k%02d", i)] = "x"
	}
	raw, _ := json.Marshal(full)
	return string(raw)
}

func TestTagsOfResponses(t *testing.T) {
	m := newOpenFilter()
	for event, want := range map[string]string{
		`{"type":"response.create"}`:                                             `"sb":`,
		`{"type":"response.create","response":null}`:                             `"sb":`,
		`{"type":"response.create","response":{"metadata":null}}`:                `"sb":`,
		`{"type":"response.create","response":{"metadata":{"k":"v"}}}`:           `"k":"v","sb":`,
		`{"type":"response.create","response":{"metadata":` + sixteen(0) + `}}`:  `"k14":"x","sb":`,
		`{"type":"response.create","response":{"metadata":"x"}}`:                 `"metadata":"x"`,
		`{"type":"response.create","response":{"metadata":` + sixteen(-1) + `}}`: sixteen(-1),
		`{"type":"response.create","response":7}`:                                `"response":7`,
	} {
		if got := m.create(event); !strings.Contains(got, want) || !gjson.Valid(got) ||
			gjson.Get(got, "response.metadata.@values.#").Int() > max(16,
				gjson.Get(event, "response.metadata.@values.#").Int()) {
			t.Errorf("%s became %s", event, got)
		}
	}
}

// Of a client that fills a response's metadata none is lost, although our tag is among it on the way.
func TestFullMetadata(t *testing.T) {
	for _, conversation := range []string{"auto", "none"} {
		m := newOpenFilter()
		var tags []string
		for range 2 {
			event, tag := m.Ask([]byte(`{"type":"response.create","response":{"conversation":"` + conversation +
				`","metadata":` + sixteen(0) + `}}`))
			if tags = append(tags, tag); len(gjson.GetBytes(event, "response.metadata").Map()) != maxMetadata ||
				Aside(tag) != (conversation == "none") {
				t.Errorf("%s became %s", tag, event)
			}
			for _, kind := range []string{"created", "done"} {
				echo := m.model(`{"type":"response.` + kind + `","response":{"id":"r","metadata":` +
					gjson.GetBytes(event, "response.metadata").Raw + `}}`)
				if got := gjson.Get(echo, "response.metadata").Raw; got != sixteen(0) {
					t.Errorf("the client sees %s", got)
				}
			}
		}
		if tags[0] == tags[1] || len(m.displaced) > 0 {
			t.Errorf("tags %s, %d pairs are left", tags, len(m.displaced))
		}
	}
}

// A client's model in an update is not the running session's to change: the rest of the update counts.
func TestModelOfAnUpdate(t *testing.T) {
	m := newOpenFilter()
	got := string(m.client(`{"type":"session.update","event_id":"e","session":{"type":"realtime","model":"gpt-other",` +
		`"speed":1.5}}`).Forward)
	if want := `{"type":"session.update","event_id":"e","session":{"type":"realtime","speed":1.5}}`; got != want {
		t.Errorf("sent %s", got)
	}
}

// A conversation does not become a transcription behind the client's back, nor the other way round.
func TestTranscriptionSessionIsRefused(t *testing.T) {
	m := newOpenFilter()
	const update = `{"type":"session.update","event_id":"e","session":{"type":"transcription","tools":[]}}`
	v := m.client(update)
	if fault := gjson.GetBytes(v.Reply, "error"); v.Forward != nil || fault.Get("param").String() != "session.type" ||
		fault.Get("event_id").String() != "e" {
		t.Errorf("%s, %s", v.Forward, v.Reply)
	}
	if m.TranscriptionOnly() || !m.Confirmed() {
		t.Error("the session is another")
	}
	only := newTestFilter()
	only.model(strings.Replace(freshSession, `"type":"realtime"`, `"type":"transcription"`, 1))
	if v := only.client(update); string(v.Forward) != update {
		t.Errorf("%s, %s", v.Forward, v.Reply)
	}
}

// A client that has its caller's speech not transcribed has it so, and is not billed for it, where no tool of ours acts
// on what the caller said.
func TestTranscriptionStaysOff(t *testing.T) {
	m := newOpenFilter()
	const off = `{"type":"session.update","event_id":"e","session":{"type":"realtime",` +
		`"audio":{"input":{"transcription":null}}}}`
	if got := string(m.client(off).Forward); got != off {
		t.Errorf("sent %s", got)
	}
	const more = `{"type":"session.update","event_id":"e","session":{"type":"realtime",` +
		`"audio":{"input":{"turn_detection":null}}}}`
	if got := string(m.client(more).Forward); got != more {
		t.Errorf("then %s", got)
	}
	early := newTestFilter()
	if got := string(early.client(off).Forward); got != off {
		t.Errorf("sent %s", got)
	}
	if _, updates := early.FromModel("session.created", []byte(freshSession)); len(updates) != 1 {
		t.Errorf("then %s", updates)
	}
	none := New(m.ids, nil, handoff.Guide{Whole: guide})
	if _, updates := none.FromModel("session.created", []byte(freshSession)); len(updates) != 1 {
		t.Errorf("without tools %s", updates)
	}
}

// A stored prompt instructs the model: it gets our tools and not our instructions.
func TestStoredPrompt(t *testing.T) {
	const prompt = `{"type":"session.update","session":{"type":"realtime","prompt":{"id":"pmpt_1"}}}`
	early := newTestFilter()
	early.client(prompt)
	_, updates := early.FromModel("session.created", []byte(freshSession))
	if first := string(updates[0]); gjson.Get(first, "session.instructions").Exists() ||
		toolNames(first, "session.tools") != "["+allTools+"]" {
		t.Errorf("ours are %s", first)
	}
	stored := newTestFilter()
	_, updates = stored.FromModel("session.created",
		[]byte(strings.Replace(freshSession, `"tools":[]`, `"tools":[],"prompt":{"id":"pmpt_1"}`, 1)))
	if first := string(updates[0]); gjson.Get(first, "session.instructions").Exists() {
		t.Errorf("ours are %s", first)
	}
	late := newOpenFilter()
	if got := string(late.client(prompt).Forward); gjson.Get(got, "session.instructions").String() != "be nice" {
		t.Errorf("ours stay: %s", got)
	}
	late.model(`{"type":"session.updated","session":{"instructions":"be nice"}}`)
	if late.session.mayShowOurInstructions() {
		t.Error("ours still stand")
	}
}

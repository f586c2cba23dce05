package filter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// Our part of a session, as tests give it.
const guide = "You are the voice of a test."

var ourTools = []handoff.Tool{
	{Name: "codex", Description: "Works.", Parameters: json.RawMessage(`{"type":"object"}`)},
	{Name: "list_servers", Parameters: json.RawMessage(`{"type":"object"}`)},
	{Name: "read_session", Parameters: json.RawMessage(`{"type":"object"}`)},
	{Name: "status", Parameters: json.RawMessage(`{"type":"object"}`)},
	{Name: "remain_silent", Parameters: json.RawMessage(`{"type":"object"}`), Silence: true},
}

const freshSession = `{"type":"session.created","event_id":"e0","session":{"type":"realtime","id":"sess_1",` +
	`"instructions":"be nice","tools":[],"tool_choice":"auto",` +
	`"audio":{"input":{"transcription":null,"turn_detection":{"type":"server_vad","create_response":true}},` +
	`"output":{"format":{"type":"audio/pcm","rate":24000}}}}}`

func newTestFilter() *Filter {
	return New(events.NewNames(), slices.Clone(ourTools), handoff.Guide{Whole: guide})
}

// newOpenFilter is a filter past the beginning of the session, its updates acknowledged.
func newOpenFilter() *Filter {
	m := newTestFilter()
	for range m.session.begin([]byte(freshSession), m.ids) {
		m.session.show([]byte(`{"type":"session.updated"}`))
	}
	return m
}

func (m *Filter) client(event string) Decision {
	return m.FromClient(events.PeekType([]byte(event)), []byte(event))
}
func (m *Filter) model(event string) string {
	shown, _ := m.FromModel(events.PeekType([]byte(event)), []byte(event))
	return string(bytes.Join(shown, nil))
}
func (m *Filter) create(event string) string { e, _ := m.Ask([]byte(event)); return string(e) }
func toolNames(event, path string) string    { return gjson.Get(event, path+".#.name").String() }

// allTools names our tools as a part of a JSON list. Set once.
var allTools = func() string {
	var names []string
	for _, tool := range ourTools {
		names = append(names, events.Quote(tool.Name))
	}
	return strings.Join(names, ",")
}()

func TestToolsOfTheSession(t *testing.T) {
	for _, c := range []struct{ name, session, want string }{
		{"none given", `{"type":"realtime","speed":1}`, ""},
		{"empty", `{"type":"realtime","tools":[]}`, "[" + allTools + "]"},
		{"null", `{"type":"realtime","tools":null}`, "[" + allTools + "]"},
		{"theirs first", `{"type":"realtime","tools":[{"type":"function","name":"weather"}]}`, `["weather",` + allTools +
			"]"},
		{"theirs stays", `{"type":"realtime","tools":[{"type":"function","name":"codex"}]}`, `["codex","switchboard_` +
			allTools[1:] + "]"},
		{"required", `{"type":"realtime","tools":[{"type":"function","name":"weather"}],"tool_choice":"required"}`,
			`["weather"]`},
		{"one forced", `{"type":"realtime","tools":[],"tool_choice":{"type":"function","name":"weather"}}`, `[]`},
		{"forced later", `{"type":"realtime","tool_choice":"required"}`, `[]`},
		{"auto", `{"type":"realtime","tools":[],"tool_choice":"auto"}`, "[" + allTools + "]"},
		{"not a list", `{"type":"realtime","tools":"x"}`, ""},
		{"a model", `{"type":"realtime","tools":[],"model":"gpt-other"}`, "[" + allTools + "]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newOpenFilter()
			got := string(m.client(`{"type":"session.update","event_id":"x","session":` + c.session + `}`).Forward)
			if names := toolNames(got, "session.tools"); names != c.want {
				t.Errorf("tools %s, want %s", names, c.want)
			}
			if c.want == "" && gjson.Get(got, "session").Raw != c.session {
				t.Errorf("touched: %s", got)
			}
		})
	}
}

func TestToolsComeBackAfterForce(t *testing.T) {
	m := newOpenFilter()
	m.client(`{"type":"session.update","session":{"tools":[{"name":"weather"}],"tool_choice":"required"}}`)
	m.model(`{"type":"session.updated","session":{}}`)
	got := string(m.client(`{"type":"session.update","session":{"tool_choice":"auto"}}`).Forward)
	if names := toolNames(got, "session.tools"); names != `["weather",`+allTools+"]" {
		t.Errorf("tools %s", names)
	}
}

func TestClientsOwnToolIsTheirs(t *testing.T) {
	m := newOpenFilter()
	m.client(`{"type":"session.update","session":{"tools":[{"type":"function","name":"codex"}]}}`)
	echo := m.model(`{"type":"session.updated","session":{"tools":[{"type":"function","name":"codex"},` +
		`{"type":"function","name":"list_servers"}]}}`)
	if names := toolNames(echo, "session.tools"); names != `["codex"]` {
		t.Errorf("client sees %s", names)
	}
	m.model(began("r1", ""))
	theirs := itemDone("r1", callItem("i1", "c1", "codex", "completed"))
	if m.model(theirs) != theirs {
		t.Error("the client's own call is hidden")
	}
	for i, name := range []string{"list_servers", "switchboard_codex"} {
		if m.model(itemDone("r1", callItem(fmt.Sprint("o", i), fmt.Sprint("d", i), name, "completed"))) != "" {
			t.Errorf("our call of %s shows", name)
		}
	}
}

// TestRenamedTools holds what the model reads of a tool of ours whose name the client uses: its other name, in the
// tools and in our instructions, for as long as the client's stands.
func TestRenamedTools(t *testing.T) {
	m := newTestFilter()
	m.client(`{"type":"session.update","session":{"type":"realtime","tools":[{"type":"function","name":"codex"},` +
		`{"type":"function","name":"status"},{"type":"function","name":"switchboard_status"}]}}`)
	first := string(m.session.begin([]byte(freshSession), m.ids)[0])
	if names := toolNames(first,
		"session.tools"); names != `["codex","status","switchboard_status","switchboard_codex","list_servers",`+
		`"read_session","remain_silent"]` {
		t.Errorf("tools %s", names)
	}
	renamed := renameNote("codex", "switchboard_codex")
	if got := gjson.Get(first, "session.instructions").String(); got != guide+renamed {
		t.Errorf("instructions %q", got)
	}
	if got := gjson.Get(first,
		`session.tools.#(name=="switchboard_codex").description`).String(); got != "Works."+renamed {
		t.Errorf("described as %q", got)
	}
	echo := `{"type":"response.created","response":{"id":"r1","instructions":` + events.Quote(guide+renamed) + `}}`
	if got := m.model(echo); gjson.Get(got, "response.instructions").String() != "be nice" {
		t.Errorf("the client sees %s", got)
	}
	again := string(m.client(`{"type":"session.update","session":{"type":"realtime","tools":[]}}`).Forward)
	if toolNames(again, "session.tools") != "["+allTools+"]" ||
		gjson.Get(again, "session.instructions").String() != guide {
		t.Errorf("afterwards %s", again)
	}
	own := string(m.client(`{"type":"session.update","session":{"type":"realtime","instructions":"mine",` +
		`"tools":[{"type":"function","name":"codex"}]}}`).Forward)
	if gjson.Get(own, "session.instructions").String() != "mine" {
		t.Errorf("the client's instructions became %s", own)
	}
}

func TestUnknownFieldsAndNullsSurvive(t *testing.T) {
	m := newOpenFilter()
	got := string(m.client(`{"type":"session.update","event_id":"e","future":{"a":1.50},"session":{"type":"realtime",` +
		`"tools":[{"type":"function","name":"w","strict":null}],"audio":{"input":{"turn_detection":null,` +
		`"noise_reduction":null}},"prompt":null,"x":[null, 1e3]}}`).Forward)
	for path, want := range map[string]string{
		"future": `{"a":1.50}`, "session.audio.input.turn_detection": "null", "session.audio.input.noise_reduction": "null",
		"session.prompt": "null", "session.x": "[null, 1e3]",
		"session.tools.0":                   `{"type":"function","name":"w","strict":null}`,
		"session.audio.input.transcription": transcriber,
	} {
		if raw := gjson.Get(got, path).Raw; raw != want {
			t.Errorf("%s is %s, want %s", path, raw, want)
		}
	}
}

func TestToolsOfAResponse(t *testing.T) {
	for _, c := range []struct{ name, before, response, want string }{
		{"plain", "", `{}`, ""},
		{"own tools", "", `{"tools":[{"type":"function","name":"w"}]}`, `["w",` + allTools + "]"},
		{"own tools, forced", "", `{"tools":[{"type":"function","name":"w"}],"tool_choice":"required"}`, `["w"]`},
		{"forced with the session's", "", `{"tool_choice":"required"}`, `[]`},
		{"session forces", `{"tool_choice":"required"}`, `{"tools":[{"type":"function","name":"w"}]}`, `["w"]`},
		{"session forces, not here", `{"tool_choice":"required"}`, `{"tools":[],"tool_choice":"auto"}`, "[" + allTools + "]"},
		{"out of band", "", `{"conversation":"none"}`, `[]`},
		{"out of band, null", "", `{"conversation":"none","tools":null}`, `[]`},
		{"out of band with tools", "", `{"conversation":"none","tools":[{"type":"function","name":"w"}]}`, `["w"]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newOpenFilter()
			if c.before != "" {
				m.client(`{"type":"session.update","session":` + c.before + `}`)
			}
			if got := toolNames(m.create(`{"type":"response.create","response":`+c.response+`}`),
				"response.tools"); got != c.want {
				t.Errorf("tools %s, want %s", got, c.want)
			}
		})
	}
}

func TestPreviousItemIsVisible(t *testing.T) {
	m := newOpenFilter()
	added := func(id, previous, item string) string {
		return fmt.Sprintf(`{"type":"conversation.item.added","previous_item_id":%s,"item":{"id":%q,%s}}`, previous, id, item)
	}
	user := `"type":"message","role":"user"`
	m.model(added("u1", "null", user))
	m.items.hidden["sb_n"] = true
	m.model(began("r1", ""))
	m.model(itemDone("r1", callItem("k1", "c1", "codex", "in_progress")))
	for _, hidden := range []string{
		added("k1", `"u1"`, `"type":"function_call","call_id":"c1","name":"codex"`),
		added("o1", `"k1"`, `"type":"function_call_output","call_id":"c1"`),
		added("sb_n", `"o1"`, `"type":"message","role":"system"`),
	} {
		if got := m.model(hidden); got != "" {
			t.Errorf("client saw %s", got)
		}
	}
	for _, event := range []string{added("u2", `"sb_n"`, user),
		`{"type":"input_audio_buffer.committed","item_id":"u2","previous_item_id":"o1"}`} {
		if got := gjson.Get(m.model(event), "previous_item_id").Raw; got != `"u1"` {
			t.Errorf("%s: after %s", event, got)
		}
	}
	first := newOpenFilter()
	first.model(began("r1", "")) // it may tell of the item before it tells of the output
	first.model(added("k1", "null", `"type":"function_call","call_id":"c1","name":"codex"`))
	if got := gjson.Get(first.model(added("u1", `"k1"`, user)), "previous_item_id").Raw; got != "null" {
		t.Errorf("after %s", got)
	}
	plain := added("u3", `"u2"`, user)
	if m.model(plain) != plain {
		t.Error("an event without hidden items was touched")
	}
}

func TestHiddenItemsAreNotThere(t *testing.T) {
	m := newOpenFilter()
	m.model(itemDone("r1", callItem("k1", "c1", "codex", "completed")))
	for _, kind := range []string{events.TypeItemRetrieve, events.TypeItemDelete, events.TypeItemTruncate} {
		v := m.client(`{"type":"` + kind + `","event_id":"mine","item_id":"k1"}`)
		if v.Forward != nil || gjson.GetBytes(v.Reply, "error.event_id").String() != "mine" ||
			gjson.GetBytes(v.Reply, "error.code").String() != "item_not_found" {
			t.Errorf("%s: %s, %s", kind, v.Forward, v.Reply)
		}
		if v := m.client(`{"type":"` + kind + `","item_id":"u1"}`); v.Forward == nil || v.Reply != nil {
			t.Errorf("%s of the client's item does not pass", kind)
		}
	}
	for _, event := range []string{`{"type":"conversation.item.deleted","item_id":"k1"}`,
		`{"type":"conversation.item.retrieved","item":` + callItem("k1", "c1", "codex", "completed") + `}`} {
		if got := m.model(event); got != "" {
			t.Errorf("client saw %s", got)
		}
	}
}

func TestMixedResponse(t *testing.T) {
	m := newOpenFilter()
	m.model(began("r1", ""))
	message := `{"id":"m1","type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}`
	got := m.model(done("r1", "", "completed", message, callItem("k1", "c1", "codex", "completed"),
		callItem("k2", "c2", "weather", "completed")))
	if ids := gjson.Get(got, "response.output.#.id").String(); ids != `["m1","k2"]` {
		t.Errorf("output %s", ids)
	}
	echo := m.model(`{"type":"response.created","response":{"id":"r2","metadata":{"a":"b","sb":"c1"},"instructions":` +
		events.Quote(guide) + `,"tools":[{"type":"function","name":"codex"}]}}`)
	if echo != `{"type":"response.created","response":{"id":"r2","metadata":{"a":"b"},"instructions":"be nice",`+
		`"tools":[]}}` {
		t.Errorf("echo %s", echo)
	}
}

func TestTranscriptionGoesWithTheClients(t *testing.T) {
	m := newTestFilter()
	own := strings.Replace(freshSession, `"transcription":null`, `"transcription":{"model":"whisper-1"}`, 1)
	if got := len(m.session.begin([]byte(own), m.ids)); got != 1 {
		t.Errorf("%d updates", got)
	}
	m.session.show([]byte(`{}`))
	m.session.tools[0].Words = true
	got := string(m.client(`{"type":"session.update","event_id":"e","session":{"type":"realtime",` +
		`"audio":{"input":{"transcription":null}}}}`).Forward)
	if gjson.Get(got, "session.audio.input.transcription").Raw != transcriber {
		t.Errorf("sent %s", got)
	}
	echo := m.model(`{"type":"session.updated","session":{"audio":{"input":{"transcription":{` +
		`"model":"gpt-4o-mini-transcribe"}}}}}`)
	if gjson.Get(echo, "session.audio.input.transcription").Raw != "null" {
		t.Errorf("client saw %s", echo)
	}
}

// Where the client did not ask for transcription, its items hold no words of the caller.
func TestWordsOfTheCallerAreNotInItems(t *testing.T) {
	const said = `{"id":"u1","type":"message","role":"user","content":[{"type":"input_text","text":"look"},` +
		`{"type":"input_audio","transcript":"hi"}]}`
	m := newOpenFilter()
	for _, kind := range []string{events.TypeItemAdded, events.TypeItemCreated, events.TypeItemDone,
		"conversation.item.retrieved"} {
		event := `{"type":"` + kind + `","item":` + said + `}`
		if got := m.model(event); got != strings.Replace(event, `"hi"`, "null", 1) {
			t.Errorf("client saw %s", got)
		}
	}
	quiet := `{"type":"conversation.item.done","item":{"id":"u1","type":"message","role":"user",` +
		`"content":[{"type":"input_audio","transcript":null}]}}`
	theirs := `{"type":"conversation.item.done","item":{"id":"a1","type":"message","role":"assistant",` +
		`"content":[{"type":"output_audio","transcript":"hello"}]}}`
	for _, event := range []string{quiet, theirs} {
		if got := m.model(event); got != event {
			t.Errorf("%s became %s", event, got)
		}
	}
	m.client(`{"type":"session.update","session":{"type":"realtime",` +
		`"audio":{"input":{"transcription":{"model":"whisper-1"}}}}}`)
	if event := `{"type":"conversation.item.done","item":` + said + `}`; m.model(event) != event {
		t.Error("the client does not see what it asked for")
	}
}

func TestModelThatCannotTranscribe(t *testing.T) {
	m := newTestFilter()
	m.session.begin([]byte(freshSession), m.ids)
	early := `{"type":"session.update","event_id":"early","session":{"type":"realtime","audio":{"input":{}}}}`
	if got := m.client(early).Forward; string(got) == early {
		t.Error("no transcription")
	}
	if u, again := m.session.reject(m.session.updates[1].id, gjson.Result{}, m.ids); u == nil || u.by != byUs ||
		again != nil {
		t.Error("our update is not known")
	}
	if u, again := m.session.reject("early", gjson.Result{}, m.ids); u == nil || u.by != byClient || len(again) != 1 ||
		string(again[0]) != early {
		t.Errorf("the client's update becomes %s", again)
	}
	if m.model(`{"type":"session.updated","session":{}}`) != "" {
		t.Error("our other update shows")
	}
	event := `{"type":"session.update","event_id":"e","session":{"type":"realtime",` +
		`"audio":{"input":{"turn_detection":null}}}}`
	if got := string(m.client(event).Forward); got != event {
		t.Errorf("sent %s", got)
	}
}

func TestRefusedUpdateIsForgotten(t *testing.T) {
	m := newOpenFilter()
	m.client(`{"type":"session.update","event_id":"bad","session":{"tools":[{"name":"codex"}],"tool_choice":"required"}}`)
	m.session.reject("bad", gjson.Result{}, m.ids)
	if names := fmt.Sprintf("%q", m.session.now.ours); names != strings.ReplaceAll("["+allTools+"]", ",", " ") {
		t.Errorf("ours are %s", names)
	}
}

// A model that hides items, or leaves responses open, without end, ends its call.
func TestModelThatLeavesTooMuchOpen(t *testing.T) {
	for name, event := range map[string]func(int) string{
		"requests": func(i int) string {
			return itemDone("r", callItem(fmt.Sprintf("id_%010d", i), fmt.Sprintf("id_%010d", i), "codex", ""))
		},
		"responses": func(i int) string { return began(fmt.Sprintf("id_%010d", i), "") },
	} {
		t.Run(name, func(t *testing.T) {
			m, i := newTestFilter(), 0
			m.session.now.ours = []string{"codex"}
			for ; i < 100_000 && !m.Full(); i++ {
				m.model(event(i))
			}
			if i < 1000 || i == 100_000 {
				t.Errorf("full after %d", i)
			}
		})
	}
}

// Lines of the model.

func began(id, tag string) string {
	return fmt.Sprintf(`{"type":"response.created","response":{"id":%q,"status":"in_progress","output":[],"metadata":%s}}`,
		id, metadata(tag))
}

func done(id, tag, status string, items ...string) string {
	return fmt.Sprintf(`{"type":"response.done","response":{"id":%q,"status":%q,"output":[%s],"metadata":%s}}`, id, status,
		strings.Join(items, ","), metadata(tag))
}

func metadata(tag string) string {
	if tag == "" {
		return "null"
	}
	return fmt.Sprintf(`{"sb":%q}`, tag)
}

func callItem(id, call, name, status string) string {
	return fmt.Sprintf(`{"id":%q,"type":"function_call","call_id":%q,"name":%q,"status":%q,"arguments":"{}"}`, id, call,
		name, status)
}

func itemDone(response, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","response_id":%q,"output_index":0,"item":%s}`, response, item)
}

func itemAdded(item string) string {
	return fmt.Sprintf(`{"type":"conversation.item.added","previous_item_id":null,"item":%s}`, item)
}

// TestMerge: an update of a session leaves the fields of audio and its two sides as they are that it does not name, and
// sets all else whole.
func TestMerge(t *testing.T) {
	set := ""
	for _, step := range []struct{ update, want string }{
		{`{"audio":{}}`, `{"audio":{}}`},
		{`{"audio":{}}`, `{"audio":{}}`},
		{`{"type":"realtime","audio":{"input":{"format":{"rate":8},"turn_detection":{"a":1,"b":2}}}}`,
			`{"audio":{"input":{"format":{"rate":8},"turn_detection":{"a":1,"b":2}}},"type":"realtime"}`},
		{`{"audio":{"input":{"turn_detection":{"a":3}},"output":{"voice":"x"}},"audio.input":{"c":4}}`,
			`{"audio":{"input":{"format":{"rate":8},"turn_detection":{"a":3}},"output":{"voice":"x"}},"type":"realtime",` +
				`"audio.input":{"c":4}}`},
		{`{"audio":{"input":null},"audio.input":{"d":5}}`,
			`{"audio":{"input":null,"output":{"voice":"x"}},"type":"realtime","audio.input":{"d":5}}`},
	} {
		if set = merge(gjson.Parse(set), gjson.Parse(step.update), ""); set != step.want {
			t.Fatalf("%s makes it %s, want %s", step.update, set, step.want)
		}
	}
}

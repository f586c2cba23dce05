package simulator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

func user(id, text string) string {
	return fmt.Sprintf(`{"id":%q,"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}`, id, text)
}

func TestItemsKeepTheirOrder(t *testing.T) {
	w := newWorld(t, brainOf())
	w.take()
	for _, c := range []struct{ id, previous, want string }{
		{"a", "", ""}, {"b", "", "a"}, {"first", `,"previous_item_id":"root"`, ""},
		{"middle", `,"previous_item_id":"a"`, "a"}, {"last", `,"previous_item_id":null`, "b"},
	} {
		w.send(`{"type":"conversation.item.create","item":%s%s}`, user(c.id, "x"), c.previous)
		got := w.take()
		if diff := cmp.Diff([]string{"conversation.item.added", "conversation.item.done"}, types(got)); diff != "" {
			t.Fatal(diff)
		}
		for _, e := range got {
			if p := e.Get("previous_item_id"); p.String() != c.want || c.want == "" && p.Type != gjson.Null {
				t.Errorf("%s stands behind %s, want %q", c.id, p.Raw, c.want)
			}
			if it := e.Get("item"); it.Get("id").Str != c.id || it.Get("object").Str != "realtime.item" ||
				it.Get("status").Str != "completed" {
				t.Errorf("%s", it.Raw)
			}
		}
	}
	w.send(`{"type":"conversation.item.create","item":{"type":"message","role":"system",` +
		`"content":[{"type":"input_text","text":"x"}]}}`)
	if id := one(t, w.take(), "conversation.item.done").Get("item.id").Str; id == "" || len(id) > maxItemID {
		t.Errorf("made id %q", id)
	}
}

func TestItemsAreRetrievedAndDeleted(t *testing.T) {
	w := newWorld(t, brainOf())
	w.send(`{"type":"conversation.item.create","item":%s}`, user("a", "hello"))
	w.take()
	w.send(`{"type":"conversation.item.retrieve","item_id":"a"}`)
	if text := one(t, w.take(), "conversation.item.retrieved").Get("item.content.0.text").Str; text != "hello" {
		t.Errorf("retrieved %q", text)
	}
	w.send(`{"type":"conversation.item.delete","item_id":"a"}`)
	if id := one(t, w.take(), "conversation.item.deleted").Get("item_id").Str; id != "a" {
		t.Errorf("deleted %q", id)
	}
	for _, verb := range []string{"retrieve", "delete", "truncate"} {
		w.send(`{"type":"conversation.item.%s","event_id":"r","item_id":"a","content_index":0,"audio_end_ms":0}`, verb)
		w.fails("item_"+verb+"_invalid_item_id", "r")
		w.send(`{"type":"conversation.item.%s","event_id":"r"}`, verb)
		w.fails("missing_required_parameter", "r")
	}
}

func TestTruncate(t *testing.T) {
	w := newWorld(t, steps([]Move{Say{Text: "one two three four five six seven eight nine"}}))
	w.send(`{"type":"conversation.item.create","item":%s}`, user("u", "x"))
	w.send(`{"type":"response.create"}`)
	w.pass(time.Second) // and 300 ms ahead
	id := one(t, w.take(), "response.output_item.added").Get("item.id").Str
	w.send(`{"type":"response.cancel"}`)
	w.take()
	w.send(`{"type":"conversation.item.truncate","event_id":"t","item_id":%q,"content_index":0,"audio_end_ms":5000}`, id)
	w.fails("invalid_value", "t")
	w.send(`{"type":"conversation.item.truncate","event_id":"t","item_id":"u","content_index":0,"audio_end_ms":0}`)
	w.fails("invalid_value", "t")
	w.send(`{"type":"conversation.item.truncate","event_id":"t","item_id":%q,"content_index":1,"audio_end_ms":0}`, id)
	w.fails("invalid_value", "t")
	w.send(`{"type":"conversation.item.create","item":{"id":"c","type":"function_call","role":"assistant","name":"x","arguments":""}}`)
	w.take()
	w.send(`{"type":"conversation.item.truncate","event_id":"t","item_id":"c","content_index":0,"audio_end_ms":0}`)
	w.fails("invalid_value", "t")
	w.send(`{"type":"conversation.item.truncate","item_id":%q,"content_index":0,"audio_end_ms":900}`, id)
	if e := one(t, w.take(), "conversation.item.truncated"); e.Get("audio_end_ms").Int() != 900 ||
		e.Get("item_id").Str != id {
		t.Error(e.Raw)
	}
	w.send(`{"type":"conversation.item.retrieve","item_id":%q}`, id)
	if it := one(t, w.take(), "conversation.item.retrieved").Get("item"); it.Get("content.0.transcript").Str != "" {
		t.Errorf("the transcript is still there: %s", it.Raw)
	}
}

func TestItemsThatAreRefused(t *testing.T) {
	w := newWorld(t, brainOf())
	w.send(`{"type":"conversation.item.create","item":%s}`, user("a", "x"))
	w.take()
	for body, code := range map[string]string{
		`{}`: "missing_required_parameter", `{"item":null}`: "missing_required_parameter", `{"item":[]}`: "invalid_type",
		`{"item":{}}`:                         "invalid_value",
		`{"item":{"type":"mcp_call"}}`:        "invalid_value",
		`{"item":` + user("a", "again") + `}`: "invalid_value",
		`{"item":` + user("b", "x") + `,"previous_item_id":"nosuch"}`:                        "invalid_value",
		`{"item":` + user(strings.Repeat("x", 33), "x") + `}`:                                "string_above_max_length",
		`{"item":{"type":"message","role":"assistant","content":[{"type":"output_audio"}]}}`: "invalid_value",
		`{"item":{"type":"message","role":"user","content":[]}}`:                             "missing_required_parameter",
		`{"item":{"type":"message","role":"user","content":"x"}}`:                            "invalid_type",
		`{"item":{"type":"message","role":"system","content":[{"type":"input_audio"}]}}`:     "invalid_value",
		`{"item":{"type":"function_call","name":"x"}}`:                                       "missing_required_parameter",
		`{"item":{"type":"function_call","arguments":"{}"}}`:                                 "missing_required_parameter",
		`{"item":{"type":"function_call_output","output":""}}`:                               "invalid_tool_call_id",
		`{"item":{"type":"function_call_output","call_id":"x"}}`:                             "missing_required_parameter",
		`{"item":{"type":"function_call_output","call_id":"x","output":{"a":1}}}`:            "invalid_type",
		`{"item":{"type":"function_call_output","call_id":"x","output":"{}"}}`:               "invalid_tool_call_id",
	} {
		event := `{"type":"conversation.item.create","event_id":"i",` + strings.TrimPrefix(body, "{")
		if body == `{}` {
			event = `{"type":"conversation.item.create","event_id":"i"}`
		}
		w.s.receive(w.now, []byte(event))
		w.drain()
		w.fails(code, "i")
	}
}

func TestEventsThatAreRefused(t *testing.T) {
	w := newWorld(t, brainOf())
	w.take()
	for frame, code := range map[string]string{
		`{`: "invalid_json", ``: "invalid_json", "\x00\x01": "invalid_json", `[]`: "invalid_event", `"x"`: "invalid_event",
		`{"type":7}`: "invalid_event", `{}`: "missing_required_parameter", `null`: "missing_required_parameter",
	} {
		w.s.receive(w.now, []byte(frame))
		w.drain()
		w.fails(code, "")
	}
	for frame, code := range map[string]string{
		`{"type":"output_audio_buffer.clear","event_id":"x"}`:                 "invalid_value",
		`{"type":"response.make","event_id":"x"}`:                             "invalid_value",
		`{"type":"session.update","event_id":"x"}`:                            "missing_required_parameter",
		`{"type":"session.update","event_id":"x","session":[]}`:               "invalid_type",
		`{"type":"response.create","event_id":"x","response":[]}`:             "invalid_type",
		`{"type":"response.cancel","event_id":"x","response_id":"resp_1"}`:    "response_cancel_not_active",
		`{"type":"input_audio_buffer.append","event_id":"x"}`:                 "missing_required_parameter",
		`{"type":"input_audio_buffer.append","event_id":"x","audio":"-"}`:     "invalid_value",
		`{"type":"input_audio_buffer.commit","event_id":"x"}`:                 "input_audio_buffer_commit_empty",
		`{"type":"conversation.item.truncate","event_id":"x","item_id":true}`: "invalid_type",
	} {
		w.s.receive(w.now, []byte(frame))
		w.drain()
		w.fails(code, "x")
	}
}

// A client that renews its session replays what was said; none of it is answered again.
func TestReplayedConversationIsNotAnswered(t *testing.T) {
	w := newWorld(t, brainOf())
	for _, item := range []string{
		user("u1", "Run the tests on bigpc"),
		`{"type":"function_call","call_id":"c1","name":"codex","arguments":"{\"server\":\"bigpc\",\"prompt\":\"Run the ` +
			`tests\"}"}`,
		`{"type":"function_call_output","call_id":"c1","output":"{\"say\":\"One fails.\",\"server\":\"bigpc\"}"}`,
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"One fails."}]}`,
	} {
		w.send(`{"type":"conversation.item.create","item":%s}`, item)
	}
	w.send(`{"type":"session.update","session":{"type":"realtime","tools":[{"type":"function","name":"codex"}]}}`)
	w.take()
	w.says("Fix it")
	w.pass(time.Minute)
	out := one(t, w.take(), "response.done").Get("response.output").Array()
	if len(out) != 1 || out[0].Get("arguments").Str != `{"server":"bigpc","prompt":"Fix it"}` {
		t.Errorf("%v", out)
	}
}

func TestConversationIsBounded(t *testing.T) {
	var c conversation
	for i := range maxItems + 10 {
		c.insert(len(c.items), &item{ID: fmt.Sprint(i), Type: message})
	}
	if len(c.items) != maxItems || c.items[0].ID != "10" {
		t.Errorf("%d items, the first is %s", len(c.items), c.items[0].ID)
	}
	big := strings.Repeat("x", maxItemBytes/2)
	for range 3 {
		c.insert(len(c.items), &item{Type: message, Output: &big})
	}
	if len(c.items) != 1 {
		t.Errorf("%d items of half the bound each", len(c.items))
	}
}

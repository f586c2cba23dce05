package simulator

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

func TestSpokenResponse(t *testing.T) {
	w := newWorld(t, steps([]Move{Say{Text: "one two three four five six"}}))
	w.take()
	w.send(`{"type":"response.create","response":{"metadata":{"who":"me"}}}`)
	w.pass(time.Minute)
	got := w.take()
	want := []string{
		"response.created", "response.output_item.added", "conversation.item.added", "response.content_part.added",
		"response.output_audio_transcript.delta", "response.output_audio.delta",
		"response.output_audio.done", "response.output_audio_transcript.done", "response.content_part.done",
		"response.output_item.done", "conversation.item.done", "rate_limits.updated", "response.done",
	}
	if diff := cmp.Diff(want, types(got)); diff != "" {
		t.Error(diff)
	}
	done := one(t, got, "response.done").Get("response")
	for path, want := range map[string]string{
		"status": "completed", "object": "realtime.response", "metadata.who": "me", "output.0.status": "completed",
		"output.0.content.0.type": "output_audio", "output.0.content.0.transcript": "one two three four five six",
		"output_modalities.0": "audio", "audio.output.format.type": "audio/pcm",
	} {
		if s := done.Get(path).String(); s != want {
			t.Errorf("%s is %q, want %q", path, s, want)
		}
	}
	if u := done.Get("usage"); u.Get("total_tokens").Int() != u.Get("input_tokens").Int()+u.Get("output_tokens").Int() ||
		u.Get("output_token_details.audio_tokens").Int() == 0 {
		t.Errorf("usage %s", u.Raw)
	}
	if one(t, got, "response.created").Get("response.usage").Type != gjson.Null {
		t.Error("usage before the end")
	}
	var text strings.Builder
	for _, d := range all(got, "response.output_audio_transcript.delta") {
		text.WriteString(d.Get("delta").Str)
	}
	if text.String() != "one two three four five six" {
		t.Errorf("transcript %q", text.String())
	}
	ids := map[string]bool{}
	for _, e := range got {
		if id := e.Get("event_id").Str; id == "" || ids[id] {
			t.Errorf("event_id %q", id)
		} else {
			ids[id] = true
		}
	}
}

// Sound lasts as long as the words would take and is sent a little ahead of when it is heard.
func TestSoundLastsAsLongAsItsWords(t *testing.T) {
	words := strings.TrimSpace(strings.Repeat("word ", 27)) // ten seconds
	for kind, perSecond := range map[string]int{formatPCM: 48000, formatPCMU: 8000, formatPCMA: 8000} {
		w := newWorld(t, steps([]Move{Say{Text: words}}))
		w.send(`{"type":"session.update","session":{"type":"realtime","audio":{"output":{"format":{"type":%q}}}}}`, kind)
		w.take()
		w.send(`{"type":"response.create"}`)
		began := w.now
		sent := time.Duration(0)
		for w.s.active() != nil {
			w.pass(20 * time.Millisecond)
			for _, e := range all(w.take(), "response.output_audio.delta") {
				data, err := base64.StdEncoding.DecodeString(e.Get("delta").Str)
				if err != nil {
					t.Fatal(err)
				}
				sent += time.Duration(len(data)) * time.Second / time.Duration(perSecond)
				if samples, _ := (format{Type: kind}).decodeSamples(data); loudness(samples) > 40 {
					t.Fatalf("%s is heard: %d", kind, loudness(samples))
				}
			}
			if ahead := sent - w.now.Sub(began); ahead < 300*time.Millisecond && sent < 10*time.Second ||
				ahead > 400*time.Millisecond {
				t.Fatalf("%s: %v ahead after %v", kind, ahead, w.now.Sub(began))
			}
		}
		if sent != 10*time.Second {
			t.Errorf("%s: %v of sound", kind, sent)
		}
	}
}

func loudness(samples []int16) int {
	most := 0
	for _, s := range samples {
		most = max(most, int(s), -int(s))
	}
	return most
}

func TestWrittenResponse(t *testing.T) {
	w := newWorld(t, steps([]Move{Say{Text: "one two"}}))
	w.send(`{"type":"session.update","session":{"type":"realtime","output_modalities":["text"]}}`)
	w.take()
	w.send(`{"type":"response.create"}`)
	w.pass(time.Second)
	want := []string{
		"response.created", "response.output_item.added", "conversation.item.added", "response.content_part.added",
		"response.output_text.delta", "response.output_text.done", "response.content_part.done",
		"response.output_item.done", "conversation.item.done", "rate_limits.updated", "response.done",
	}
	if diff := cmp.Diff(want, types(w.take())); diff != "" {
		t.Error(diff)
	}
}

func TestFunctionCalls(t *testing.T) {
	w := newWorld(t, steps([]Move{
		Call{Tool: "codex", Arguments: `{"server":"büro","prompt":"Go"}`, ID: "call_a"},
		Call{Tool: "list_servers", Arguments: `{}`},
	}))
	w.take()
	w.send(`{"type":"response.create"}`)
	w.pass(time.Second)
	got := w.take()
	call := []string{
		"response.output_item.added", "conversation.item.added", "response.function_call_arguments.delta",
		"response.function_call_arguments.done", "response.output_item.done", "conversation.item.done",
	}
	want := append([]string{"response.created"}, call...)
	want = append(append(want, call...), "rate_limits.updated", "response.done")
	if diff := cmp.Diff(want, types(got)); diff != "" {
		t.Error(diff)
	}
	args, n := "", 0
	for _, d := range all(got, "response.function_call_arguments.delta") {
		if d.Get("call_id").Str == "call_a" {
			args += d.Get("delta").Str
			n++
		}
	}
	if args != `{"server":"büro","prompt":"Go"}` || n != callPieces {
		t.Errorf("%d deltas make %s", n, args)
	}
	out := one(t, got, "response.done").Get("response.output").Array()
	if len(out) != 2 || out[0].Get("call_id").Str != "call_a" || out[0].Get("status").Str != "completed" ||
		out[1].Get("call_id").Str == "" {
		t.Errorf("output %v", out)
	}
	added := all(got, "conversation.item.added")
	if added[0].Get("previous_item_id").Type != gjson.Null ||
		added[1].Get("previous_item_id").Str != out[0].Get("id").Str {
		t.Error("previous_item_id is not the item before")
	}
	w.send(`{"type":"conversation.item.create","event_id":"e1","item":{"type":"function_call_output",` +
		`"call_id":"nosuch","output":"{}"}}`)
	w.fails("invalid_tool_call_id", "e1")
}

func TestCancel(t *testing.T) {
	w := newWorld(t, steps([]Move{Say{Text: "one two three four five six seven eight nine ten"}},
		[]Move{Say{Text: "again"}}))
	w.send(`{"type":"response.cancel","event_id":"c0"}`)
	w.got = w.got[1:] // session.created
	w.fails("response_cancel_not_active", "c0")
	w.send(`{"type":"response.create"}`)
	w.pass(time.Second)
	w.take()
	w.send(`{"type":"response.cancel"}`)
	got := w.take()
	want := []string{
		"response.output_audio.done", "response.output_audio_transcript.done", "response.content_part.done",
		"response.output_item.done", "conversation.item.done", "rate_limits.updated", "response.done",
	}
	if diff := cmp.Diff(want, types(got)); diff != "" {
		t.Error(diff)
	}
	done := one(t, got, "response.done").Get("response")
	if done.Get("status").Str != "cancelled" || done.Get("status_details.reason").Str != "client_cancelled" ||
		done.Get("output.0.status").Str != "incomplete" {
		t.Errorf("%s", done.Raw)
	}
	w.send(`{"type":"response.create"}`)
	w.pass(time.Minute)
	if done := one(t, w.take(), "response.done"); done.Get("response.status").Str != "completed" {
		t.Error("no response after a cancelled one")
	}
}

func TestOneResponseAtATime(t *testing.T) {
	w := newWorld(t, steps([]Move{Say{Text: "one two three"}}, []Move{Say{Text: "beside"}}, []Move{Say{Text: "after"}}))
	w.send(`{"type":"response.create"}`)
	active := one(t, w.take(), "response.created").Get("response.id").Str
	w.send(`{"type":"response.create","event_id":"e2"}`)
	if got := w.got[0].Get("error.message").Str; !strings.Contains(got, active) {
		t.Errorf("the error does not name %s: %s", active, got)
	}
	w.fails("conversation_already_has_active_response", "e2")
	w.send(`{"type":"response.create","response":{"conversation":"none","metadata":{"k":"v"},` +
		`"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}]}}`)
	w.pass(time.Minute)
	got := w.take()
	if n := len(all(got, "response.done")); n != 2 {
		t.Fatalf("%d responses done", n)
	}
	for _, done := range all(got, "response.done") {
		beside := done.Get("response.metadata.k").Str == "v"
		if beside == (done.Get("response.id").Str == active) ||
			beside != (done.Get("response.conversation_id").Type == gjson.Null) {
			t.Errorf("%s", done.Raw)
		}
	}
	// the other was added before
	if n := len(all(got, "conversation.item.done")) + len(all(got, "conversation.item.added")); n != 1 {
		t.Errorf("an out-of-band response reached the conversation: %d events", n)
	}
}

func TestOutOfBandIsBounded(t *testing.T) {
	w := newWorld(t, func(Heard) []Move { return says("It takes a while.") })
	for range maxOutOfBand + 1 {
		w.send(`{"type":"response.create","response":{"conversation":"none"}}`)
	}
	w.take()
	w.send(`{"type":"response.create","event_id":"x","response":{"conversation":"none"}}`)
	w.fails("rate_limit_exceeded", "x")
}

func TestResponseParameters(t *testing.T) {
	w := newWorld(t, brainOf())
	w.take()
	for body, code := range map[string]string{
		`{"foo":1}`: "unknown_parameter", `{"modalities":["text"]}`: "unknown_parameter",
		`{"conversation":"x"}`:                   "invalid_value",
		`{"output_modalities":["text","audio"]}`: "invalid_value", `{"metadata":{"a":1}}`: "invalid_type",
		`{"tools":[{"type":"x"}]}`:                                  "invalid_value",
		`{"audio":{"output":{"format":{"type":"mp3"}}}}`:            "invalid_value",
		`{"input":[{"type":"item_reference","id":"nosuch"}]}`:       "invalid_value",
		`{"input":[{"type":"message","role":"king","content":[]}]}`: "invalid_value",
	} {
		w.send(`{"type":"response.create","event_id":"p","response":%s}`, body)
		w.fails(code, "p")
	}
}

// The brain works in a session whose tools and choice the response overrides.
func TestResponseToolsOverrideTheSession(t *testing.T) {
	w := newWorld(t, brainOf())
	w.send(`{"type":"session.update","session":{"type":"realtime","output_modalities":["text"],` +
		`"tools":[{"type":"function","name":"list_servers"}]}}`)
	w.take()
	for _, c := range []struct{ params, item string }{
		{`{}`, "function_call"}, {`{"tools":[]}`, "message"}, {`{"tool_choice":"none"}`, "message"},
	} {
		w.send(`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text",` +
			`"text":"Which machines do I have?"}]}}`)
		w.send(`{"type":"response.create","response":%s}`, c.params)
		w.pass(time.Minute)
		if got := one(t, w.take(), "response.done").Get("response.output.0.type").Str; got != c.item {
			t.Errorf("%s gives %s", c.params, got)
		}
	}
}

func TestNothingNewIsAnEmptyResponse(t *testing.T) {
	w := newWorld(t, brainOf())
	w.says("Thanks!")
	w.pass(time.Minute)
	w.take()
	w.send(`{"type":"response.create"}`)
	if diff := cmp.Diff([]string{"response.created", "rate_limits.updated", "response.done"},
		types(w.take())); diff != "" {
		t.Error(diff)
	}
}

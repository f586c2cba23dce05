package responses

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers/responses/simulator"
	"switchboard/servers/responses/wire"
)

// A fault makes a request fail. It reports whether it answered.
type fault = func(http.ResponseWriter, simulator.Request) bool

// raw answers a request with these events, and then cuts the connection.
func raw(events ...string) fault {
	return func(w http.ResponseWriter, _ simulator.Request) bool {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", e)
		}
		return true
	}
}

// status refuses a request with a status.
func status(code int, word string, headers ...string) fault {
	return func(w http.ResponseWriter, _ simulator.Request) bool {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		simulator.Refuse(w, code, word, "not now")
		return true
	}
}

// dropped ends a connection without an answer.
func dropped(http.ResponseWriter, simulator.Request) bool { panic(http.ErrAbortHandler) }

const (
	created = `{"type":"response.created","sequence_number":0,"response":{"id":"r1","output":[],"error":null}}`
	added   = `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","role":"assistant",` +
		`"id":"m1"}}`
	delta   = `{"type":"response.output_text.delta","output_index":0,"item_id":"m1","delta":"half"}`
	message = `{"type":"response.output_item.done","output_index":0,"item":{"type":"message","role":"assistant",` +
		`"id":"m1","content":[{"type":"output_text","text":"half"}]}}`
	failed = `{"type":"response.failed","response":{"id":"r1","error":{"code":"server_error","message":"sorry"}}}`
)

func TestRetries(t *testing.T) {
	soon := []string{"Retry-After-Ms", "5"}
	for _, c := range []struct {
		name   string
		faults []fault
		asked  int
		text   string       // the answer, or
		code   handoff.Code // why the turn failed
	}{
		{"too many requests", []fault{status(429, "rate_limit_exceeded", soon...)}, 2, "done: go", ""},
		{"again and again", []fault{status(429, "", soon...),
			status(503, "", soon...), status(500, "", soon...)}, 4, "done: go", ""},
		{"too often", []fault{status(429, "", soon...), status(429, "", soon...),
			status(429, "", soon...), status(429, "", soon...)}, 4, "", handoff.CodeModelLimit},
		{"dropped every time", slices.Repeat([]fault{dropped}, 4), 4, "", handoff.CodeAgentFailed},
		{"cut every time", slices.Repeat([]fault{raw(created)}, 3), 3, "", handoff.CodeAgentFailed},
		{"the server says not to", []fault{status(429, "insufficient_quota", "X-Should-Retry", "false")}, 1, "",
			handoff.CodeModelLimit},
		{"a wrong key", []fault{status(401, "invalid_api_key")}, 1, "", handoff.CodeModelRefused},
		{"a wrong request", []fault{status(400, "invalid_value")}, 1, "", handoff.CodeModelRefused},
		{"cut before anything was heard", []fault{raw(created)}, 2, "done: go", ""},
		{"nothing at all", []fault{raw()}, 2, "done: go", ""},
		{"failed before anything was heard", []fault{raw(created, failed)}, 2, "done: go", ""},
		{"half an event", []fault{raw(created, `{"type":"response.outp`)}, 2, "done: go", ""},
		{"cut after an item began", []fault{raw(created, added)}, 1, "", handoff.CodeAgentFailed},
		{"cut after a delta", []fault{raw(created, added, delta)}, 1, "", handoff.CodeAgentFailed},
		{"cut after a message", []fault{raw(created, added, delta, message)}, 1, "half", handoff.CodeAgentFailed},
		{"failed after a delta", []fault{raw(created, added, delta, failed)}, 1, "", handoff.CodeAgentFailed},
		{"half an event after a delta", []fault{raw(created, added, delta, `{"type"`)}, 1, "", handoff.CodeAgentFailed},
		{"an error event", []fault{raw(`{"type":"error","code":"invalid_prompt","message":"no"}`)}, 1, "",
			handoff.CodeModelRefused},
		{"a nested error event", []fault{raw(`{"type":"error","error":{"code":"rate_limit_exceeded","message":"no"}}`)}, 2,
			"done: go", ""},
		{"an answer that does not stream", []fault{func(w http.ResponseWriter, _ simulator.Request) bool {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_, _ = fmt.Fprint(w, `{"id":"r9","status":"completed","error":null,"output":[{"type":"message",`+
				`"role":"assistant","id":"m","content":[{"type":"output_text","text":"whole"}]}]}`)
			return true
		}}, 1, "whole", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, looksOnce(""))
			k := newTalk(t, newRig(t, f, nil))
			for _, fault := range c.faults {
				f.Misbehave(fault)
			}
			end := k.say(handoff.Text("go"))
			if end.Text != c.text || end.Code != c.code || (end.Status == handoff.TurnFailed) != (c.code != "") {
				t.Errorf("%+v", end)
			}
			if n := len(f.Requests()); n != c.asked {
				t.Errorf("asked %d times, want %d", n, c.asked)
			}
			// After any fault the thread goes on.
			if end := k.say(handoff.Text("more")); end.Text != "done: more" {
				t.Errorf("then %+v", end)
			}
		})
	}
}

// TestRetryAfterIsHonoured: a request is not repeated before the time in Retry-After.
func TestRetryAfterIsHonoured(t *testing.T) {
	f := newFake(t, looksOnce(""))
	k := newTalk(t, newRig(t, f, nil))
	f.Misbehave(status(429, "rate_limit_exceeded", "Retry-After", "1"))
	begun := time.Now()
	if end := k.say(handoff.Text("go")); end.Text != "done: go" || time.Since(begun) < time.Second {
		t.Errorf("%+v after %s", end, time.Since(begun))
	}
}

// TestRefusals: status and headers say whether a refusal passes and when; its body says what it is, as far as it can
// be read.
func TestRefusals(t *testing.T) {
	const body = `{"error":{"code":"slow_down","message":"not now"}}`
	day := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for _, c := range []struct {
		status  int
		body    string
		headers []string
		passing bool
		after   time.Duration // within two seconds; negative: nothing was said
		says    string
	}{
		{429, body, nil, true, -1, "slow_down: not now"},
		{429, body, []string{"Retry-After", "7"}, true, 7 * time.Second, "slow_down: not now"},
		{429, body, []string{"Retry-After", "0.5", "Retry-After-Ms", "9000"}, true, 9 * time.Second, "slow_down: not now"},
		{503, body, []string{"Retry-After", day(30 * time.Second)}, true, 30 * time.Second, "slow_down: not now"},
		{503, body, []string{"Retry-After", day(-time.Hour)}, true, 0, "slow_down: not now"},
		{503, body, []string{"Retry-After", "soon"}, true, -1, "slow_down: not now"},
		{503, body, []string{"Retry-After", "-1"}, true, -1, "slow_down: not now"},
		{503, body, []string{"Retry-After", "121"}, false, 121 * time.Second, "slow_down: not now"},
		{503, body, []string{"Retry-After", "1e99"}, false, 24 * time.Hour, "slow_down: not now"},
		{503, body, []string{"X-Should-Retry", "false"}, false, -1, "slow_down: not now"},
		{400, body, []string{"X-Should-Retry", "true"}, true, -1, "slow_down: not now"},
		{400, `{"error":{"code":null,"message":"no"}}`, nil, false, -1, ": no"},
		{400, `{"error":{"code":42,"message":"no"}}`, nil, false, -1, "42: no"},
		{408, "", nil, true, -1, ": 408 Request Timeout"},
		{409, `{"error":"busy"}`, nil, true, -1, ": 409 Conflict"},
		{502, "<html>", nil, true, -1, ": 502 Bad Gateway"},
		{502, strings.Repeat("[", 100_000), nil, true, -1, ": 502 Bad Gateway"},
	} {
		res := &http.Response{StatusCode: c.status, Status: fmt.Sprint(c.status, " ", http.StatusText(c.status)), Header: http.Header{}}
		for header := range slices.Chunk(c.headers, 2) {
			res.Header.Set(header[0], header[1])
		}
		r := refusedBy(res, []byte(c.body))
		if r.passing != c.passing || (r.after-c.after).Abs() > 2*time.Second || (r.after < 0) != (c.after < 0) || r.Error() != c.says {
			t.Errorf("%d %.40s %q: passing %v after %v, %q", c.status, c.body, c.headers, r.passing, r.after, r.Error())
		}
	}
}

// TestBrokenAnswerIsNotGoneOnFrom: after an answer that broke off, everything is sent, including the part that was
// received.
func TestBrokenAnswerIsNotGoneOnFrom(t *testing.T) {
	f := newFake(t, looksOnce(""))
	k := newTalk(t, newRig(t, f, nil))
	k.say(handoff.Text("one"))
	f.Misbehave(raw(created, added, delta, message))
	k.say(handoff.Text("two"))
	k.say(handoff.Text("three"))
	if req := f.Requests()[2]; req.Previous != "" || words(req.Input) != "u:one a:done: one u:two a:half u:three" {
		t.Errorf("after %q it sends %s", req.Previous, words(req.Input))
	}
}

// TestIncompleteAnswer: an answer that its server cut short ends the turn as incomplete, with its text, and later
// requests go on from it.
func TestIncompleteAnswer(t *testing.T) {
	f := newFake(t, looksOnce(""))
	k := newTalk(t, newRig(t, f, nil))
	f.Misbehave(raw(created, added, delta, message,
		`{"type":"response.incomplete","response":{"id":"r1","status":"incomplete","output":[],"usage":{"input_tokens":3}}}`))
	if end := k.say(handoff.Text("one")); end.Status != handoff.TurnCompleted || end.Text != "half" {
		t.Errorf("%+v", end)
	}
	if turn := k.record().Turns[0]; turn.Status != threads.Incomplete || turn.Anchor.Response != "r1" ||
		turn.Text != "half" || usageOf(turn.Usage).Input != 3 {
		t.Errorf("%+v", turn)
	}
}

// toldBy records what a reader publishes.
type toldBy struct{ lines []string }

func (b *toldBy) began(it handoff.Item) { b.lines = append(b.lines, "began "+it.ID) }
func (b *toldBy) delta(item string, kind handoff.DeltaKind, text string) {
	b.lines = append(b.lines, string(kind)+" "+item+" "+text)
}
func (b *toldBy) finished(it handoff.Item) { b.lines = append(b.lines, "finished "+it.ID+" "+it.Text) }

func (b *toldBy) reader() *reader {
	var n names
	return newReader(listener{b, n.name, func() error { return nil }, func(items []json.RawMessage) error {
		for _, it := range items {
			b.lines = append(b.lines, "kept "+wire.Read(it).ID)
		}
		return nil
	}})
}

// TestItemsInterleave: items are identified by output_index, even if several are written at once or have no ids.
func TestItemsInterleave(t *testing.T) {
	var b toldBy
	r := b.reader()
	for _, e := range []string{
		created,
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"x","summary":[]}}`,
		`{"type":"response.output_item.added","output_index":1,"item":{"type":"message","role":"assistant","id":"x"}}`,
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"item_id":"x","delta":"hm"}`,
		`{"type":"response.output_text.delta","output_index":1,"item_id":"x","delta":"he"}`,
		`{"type":"response.new_thing","output_index":1,"delta":{"a":1}}`,
		`{"type":"response.output_text.delta","output_index":1,"item_id":"x","delta":"y"}`,
		`{"type":"response.output_item.done","output_index":1,"item":{"type":"message","role":"assistant",` +
			`"content":[{"type":"output_text","text":"hey"}]}}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"x",` +
			`"summary":[{"text":"hm"}]}}`,
		`{"type":"response.completed","response":{"id":"r1","output":[{},{},{"type":"function_call","call_id":"c",` +
			`"name":"n","arguments":"{}"}],"usage":{"input_tokens":3}}}`,
	} {
		must(t, r.take([]byte(e)))
	}
	got := strings.Join(b.lines, "; ")
	const want = "began x; began item_1; reasoning x hm; message item_1 he; message item_1 y; kept item_1; finished " +
		"item_1 hey; finished x hm"
	if got != want || !r.done || len(r.Items) != 3 || len(r.Rest) != 2 || wire.Read(r.Items[2]).ID == "" ||
		r.Usage.Input != 3 {
		t.Errorf("%s\n%s\n%s", got, r.Items, r.Rest)
	}
}

// TestPartsOfAnItem: the finished text of an item is the text of its deltas, also with several parts. Of raw reasoning
// and its summary one is shown. The parts of a message are joined as in output_text of the SDKs, those of reasoning
// are paragraphs.
func TestPartsOfAnItem(t *testing.T) {
	var b toldBy
	r := b.reader()
	for _, e := range []string{
		created,
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"x","summary":[]}}`,
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"One"}`,
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"."}`,
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":2,"delta":"Two."}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"x",` +
			`"summary":[{"text":"One."},{"text":""},{"text":"Two."}]}}`,
		`{"type":"response.reasoning_summary_text.delta","output_index":2,"summary_index":0,"delta":"In short."}`,
		`{"type":"response.reasoning_text.delta","output_index":2,"content_index":0,"delta":"At length."}`,
		`{"type":"response.output_item.done","output_index":2,"item":{"type":"reasoning","id":"y","summary":[{"text":"In ` +
			`short."}],"content":[{"text":"At length."}]}}`,
		`{"type":"response.reasoning_text.delta","output_index":3,"content_index":0,"delta":"At length."}`,
		`{"type":"response.reasoning_summary_text.delta","output_index":3,"summary_index":0,"delta":"In short."}`,
		`{"type":"response.output_item.done","output_index":3,"item":{"type":"reasoning","id":"z","summary":[{"text":"In ` +
			`short."}],"content":[{"text":"At length."}]}}`,
		`{"type":"response.output_item.added","output_index":1,"item":{"type":"message","role":"assistant","id":"m"}}`,
		`{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"Yes, "}`,
		`{"type":"response.refusal.delta","output_index":1,"content_index":1,"delta":"but no."}`,
		`{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"m","role":"assistant",` +
			`"content":[{"type":"output_text","text":"Yes, "},{"type":"refusal","refusal":"but no."}]}}`,
	} {
		must(t, r.take([]byte(e)))
	}
	said := map[string]string{}
	for _, line := range b.lines {
		word, rest, _ := strings.Cut(line, " ")
		id, text, _ := strings.Cut(rest, " ")
		switch word {
		case "reasoning", "message":
			said[id] += text
		case "finished":
			if text != said[id] {
				t.Errorf("%s is %q, and was told as %q", id, text, said[id])
			}
		}
	}
	if said["m"] != "Yes, but no." || said["x"] != "One.\n\nTwo." || said["item_1"] != "In short." ||
		said["item_2"] != "At length." {
		t.Errorf("told are %q", said)
	}
}

// FuzzReader: on any answer nothing panics, and updates are in order: an item is finished at most once, ids are
// unique, and in a complete answer nothing of an item follows its end.
func FuzzReader(f *testing.F) {
	f.Add(strings.Join([]string{created, added, delta, message, failed}, "\n"))
	f.Add(`{"type":"response.completed","response":{"id":"r","output":[{"type":"message"},{"type":"function_call",` +
		`"call_id":"c"}]}}`)
	f.Add(`{"type":"error","error":{"code":7}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var b toldBy
		r := b.reader()
		for line := range strings.SplitSeq(text, "\n") {
			if err := r.take([]byte(line)); err != nil || r.done {
				break
			}
		}
		finished := map[string]bool{}
		for _, line := range b.lines {
			if id, ok := strings.CutPrefix(line, "finished "); ok {
				if id, _, _ = strings.Cut(id, " "); finished[id] {
					t.Fatalf("%s is finished twice", id)
				}
				finished[id] = true
			}
		}
		ids := map[string]bool{}
		for _, it := range r.Items {
			if id := wire.Read(it).ID; id == "" || ids[id] {
				t.Fatalf("id %q in %s", id, r.Items)
			} else {
				ids[id] = true
			}
		}
	})
}

package responses

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

func newEmitter(background bool) *emitter {
	req := &request{Model: "bigpc", Background: background}
	return &emitter{
		resp: fresh("resp_1", req, time.Unix(1, 0)), label: "bigpc", canAsk: true, now: time.Now, shown: map[string]bool{},
	}
}

// wrote is a stream as it goes over the wire, read by the oracle.
func wrote(t testing.TB, steps ...[]event) *oracle {
	t.Helper()
	o := &oracle{}
	for _, events := range steps {
		for _, e := range events {
			if err := o.read(frame(e)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return o
}

func result(text string) handoff.Record {
	return handoff.Record{Outcome: handoff.OutcomeResult, Text: text}
}

// shape writes a stream briefly, to compare.
func shape(events ...[]event) string {
	var b strings.Builder
	for _, e := range slices.Concat(events...) {
		fmt.Fprintf(&b, "%s", strings.TrimPrefix(e.Type, "response."))
		if e.OutputIndex != nil {
			fmt.Fprintf(&b, " %d", *e.OutputIndex)
		}
		if e.Item != nil {
			fmt.Fprintf(&b, " %s %s", e.Item.Type, e.Item.Status)
		}
		if e.Delta != "" {
			fmt.Fprintf(&b, " %q", e.Delta)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestGrammar: a handoff with a message, a command and its answer, event by event.
func TestGrammar(t *testing.T) {
	m := newEmitter(true)
	steps := [][]event{m.begin()}
	for _, k := range []handoff.EventKind{
		handoff.EventDoing{ID: "m", Item: handoff.ItemMessage},
		handoff.EventDelta{ItemID: "m", Kind: handoff.DeltaMessage, Text: "I look"},
		handoff.EventDelta{ItemID: "m", Kind: handoff.DeltaMessage, At: 6, Text: " at it."},
		handoff.EventItem{Item: handoff.Item{ID: "m", Kind: handoff.ItemMessage, Text: "I look at it."}},
		handoff.EventDoing{ID: "c", Item: handoff.ItemCommand, Text: "go test"},
		handoff.EventItem{
			Item: handoff.Item{ID: "c", Kind: handoff.ItemCommand, Text: "go test", Output: "FAIL", Exit: new(1)},
		},
		handoff.EventItem{Item: handoff.Item{ID: "a", Kind: handoff.ItemMessage, Text: "It fails."}},
		handoff.EventUsage{Usage: handoff.Usage{Input: 5, Cached: 2, Output: 3, Reasoning: 1}},
	} {
		steps = append(steps, m.take(k, handoff.Record{}))
	}
	steps = append(
		steps, m.take(handoff.EventEnded{}, result("It fails.")), m.take(handoff.EventRemark{Text: "late"}, handoff.Record{}),
	)
	want := `created
queued
in_progress
output_item.added 0 message in_progress
content_part.added 0
output_text.delta 0 "I look"
output_text.delta 0 " at it."
output_text.done 0
content_part.done 0
output_item.done 0 message completed
output_item.added 1 mcp_call in_progress
mcp_call.in_progress 1
mcp_call_arguments.delta 1 "{\"command\":\"go test\"}"
mcp_call_arguments.done 1
mcp_call.failed 1
output_item.done 1 mcp_call failed
output_item.added 2 message in_progress
content_part.added 2
output_text.delta 2 "It fails."
output_text.done 2
content_part.done 2
output_item.done 2 message completed
completed
`
	if got := shape(steps...); got != want {
		t.Errorf("got\n%s", got)
	}
	o := wrote(t, steps...)
	used, _ := o.last["usage"].(map[string]any)
	if o.over != evCompleted || used["total_tokens"] != 8.0 || o.last["completed_at"] == nil || o.last["error"] != nil {
		t.Errorf("ends with %s %v", o.over, o.last)
	}
}

// TestOneTerminalEvent: at every outcome of a handoff, the stream has one terminal event, and the response has the same
// status.
func TestOneTerminalEvent(t *testing.T) {
	broken := &handoff.RecordError{Code: handoff.CodeModelLimit, Message: "The model takes no more."}
	for name, tt := range map[string]struct {
		end          func(*emitter) []event
		typ, status  string
		code, reason string
	}{
		"result": {func(m *emitter) []event { return m.take(handoff.EventEnded{}, result("ok")) }, evCompleted, completed, "", ""},
		"failed": {func(m *emitter) []event {
			return m.take(handoff.EventEnded{}, handoff.Record{Outcome: handoff.OutcomeFailed, Error: broken})
		}, evFailed, failed, "rate_limit_exceeded", ""},
		"stopped": {func(m *emitter) []event {
			return m.take(handoff.EventEnded{}, handoff.Record{Outcome: handoff.OutcomeInterrupted})
		}, evIncomplete, incomplete, "", "interrupted"},
		"never begun": {func(m *emitter) []event {
			return m.take(handoff.EventEnded{}, handoff.Record{Outcome: handoff.OutcomeCancelled})
		}, evIncomplete, incomplete, "", "interrupted"},
		"unknown": {func(m *emitter) []event {
			return m.take(handoff.EventEnded{}, handoff.Record{Outcome: handoff.OutcomeUnknown})
		}, evFailed, failed, "server_error", ""},
		"taken over":   {func(m *emitter) []event { return m.take(handoff.EventYielded{}, handoff.Record{}) }, evFailed, failed, "server_error", ""},
		"from outside": {func(m *emitter) []event { return m.failed("server_error", "gone") }, evFailed, failed, "server_error", ""},
		"cancelled":    {(*emitter).cancel, evIncomplete, cancelled, "", ""},
		"asked": {func(m *emitter) []event {
			return m.take(handoff.EventAsked{Question: handoff.OpenQuestion{Shown: handoff.RecordQuestion{ID: "q", Kind: handoff.QuestionCommand}}}, handoff.Record{})
		}, evCompleted, completed, "", ""},
	} {
		m := newEmitter(false)
		steps := [][]event{m.begin(), m.take(
			handoff.EventDoing{ID: "c", Item: handoff.ItemCommand, Text: "make"}, handoff.Record{},
		),
			m.take(handoff.EventDelta{ItemID: "m", Kind: handoff.DeltaMessage, Text: "half"}, handoff.Record{}), tt.end(m)}
		for _, late := range [][]event{m.take(handoff.EventEnded{}, result("late")), m.cancel(), m.failed("x", "y"),
			m.take(handoff.EventItem{Item: handoff.Item{ID: "z", Kind: handoff.ItemMessage, Text: "z"}}, handoff.Record{})} {
			if len(late) > 0 {
				t.Errorf("%s: after the end %s", name, shape(late))
			}
		}
		o := wrote(t, steps...)
		if o.over != tt.typ || o.last["status"] != tt.status || m.resp.Status != tt.status {
			t.Errorf("%s: %s %v", name, o.over, o.last["status"])
		}
		if e, _ := o.last["error"].(map[string]any); tt.code != "" && e["code"] != tt.code || tt.code == "" && e != nil {
			t.Errorf("%s: error %v", name, e)
		}
		if d, _ := o.last["incomplete_details"].(map[string]any); tt.reason != "" && d["reason"] != tt.reason {
			t.Errorf("%s: details %v", name, d)
		}
	}
}

// TestSerialWindows: items that run at the same time are written one after another, and a call that hangs does not
// block the others for ever.
func TestSerialWindows(t *testing.T) {
	m := newEmitter(false)
	steps := [][]event{m.begin()}
	for _, k := range []handoff.EventKind{
		handoff.EventDoing{ID: "hangs", Item: handoff.ItemCommand, Text: "sleep"},
		handoff.EventDoing{ID: "two", Item: handoff.ItemToolCall, Text: "files.read"},
		handoff.EventDelta{ItemID: "m", Kind: handoff.DeltaMessage, Text: "beside"},
		handoff.EventItem{Item: handoff.Item{ID: "two", Kind: handoff.ItemToolCall, Text: "files.read", Arguments: `{"path":"a"}`, Output: "text"}},
		handoff.EventDropped{ItemID: "hangs"},
	} {
		steps = append(steps, m.take(k, handoff.Record{}))
	}
	steps = append(steps, m.take(handoff.EventEnded{}, result("done")))
	o := wrote(t, steps...)
	var got []string
	for _, it := range o.output {
		got = append(got, fmt.Sprint(it["type"], " ", it["status"]))
	}
	if want := []string{"mcp_call incomplete", "mcp_call completed", "message incomplete", "message completed"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if o.output[1]["arguments"] != `{"path":"a"}` || o.output[1]["output"] != "text" {
		t.Errorf("the second is %v", o.output[1])
	}
}

// TestCommandArguments: the arguments of a command are the same whether its beginning was seen or only its end.
func TestCommandArguments(t *testing.T) {
	done := handoff.EventItem{
		Item: handoff.Item{ID: "c", Kind: handoff.ItemCommand, Text: "ls", Arguments: `{"command":"ls","dir":null}`},
	}
	began := handoff.EventDoing{ID: "c", Item: handoff.ItemCommand, Text: "ls"}
	for name, kinds := range map[string][]handoff.EventKind{"as it began": {began, done}, "when it was done": {done}, "cut": {began, handoff.EventDropped{ItemID: "c"}}} {
		m := newEmitter(false)
		steps := [][]event{m.begin()}
		for _, k := range kinds {
			steps = append(steps, m.take(k, handoff.Record{}))
		}
		o := wrote(t, append(steps, m.take(handoff.EventEnded{}, result("done")))...)
		if got := o.output[0]["arguments"]; got != `{"command":"ls"}` {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestTextThatChanges: if the final text differs from the deltas, the written item stays as incomplete, and the final
// text follows as another item.
func TestTextThatChanges(t *testing.T) {
	m := newEmitter(false)
	steps := [][]event{m.begin(),
		m.take(handoff.EventDelta{ItemID: "m", Kind: handoff.DeltaMessage, Text: "I think"}, handoff.Record{}),
		m.take(handoff.EventDelta{ItemID: "m", Kind: handoff.DeltaMessage, At: 99, Text: "after a gap"}, handoff.Record{}),
		m.take(handoff.EventItem{Item: handoff.Item{ID: "m", Kind: handoff.ItemMessage, Text: "No: it is."}}, handoff.Record{}),
		m.take(handoff.EventItem{Item: handoff.Item{ID: "r", Kind: handoff.ItemReasoning}}, handoff.Record{}),
		m.take(handoff.EventEnded{}, result("No: it is.")),
	}
	o := wrote(t, steps...)
	if len(o.output) != 2 || o.output[0]["status"] != incomplete || o.output[1]["status"] != completed {
		t.Errorf("got %v", o.output)
	}
}

// TestJSONAnswers: if JSON was requested, the answer is the only message, without its Markdown fence; any other answer
// fails.
func TestJSONAnswers(t *testing.T) {
	for answer, want := range map[string]string{
		`{"a":1}`: `{"a":1}`, "```json\n{\"a\":1}\n```\n": `{"a":1}`, "Here it is: {}": "",
	} {
		m := newEmitter(false)
		m.exact = true
		o := wrote(t, m.begin(), m.take(
			handoff.EventDelta{ItemID: "m", Kind: handoff.DeltaMessage, Text: "I look."}, handoff.Record{},
		),
			m.take(handoff.EventItem{Item: handoff.Item{ID: "m", Kind: handoff.ItemMessage, Text: "I look."}}, handoff.Record{}),
			m.take(handoff.EventItem{Item: handoff.Item{ID: "a", Kind: handoff.ItemMessage, Text: answer}}, handoff.Record{}),
			m.take(handoff.EventEnded{}, result(answer)))
		if want == "" {
			if o.over != evFailed || len(o.output) > 0 {
				t.Errorf("%q gives %v", answer, o.last)
			}
			continue
		}
		if text := fmt.Sprint(o.output[0]["content"]); len(o.output) != 1 || !strings.Contains(text, want) {
			t.Errorf("%q gives %v", answer, o.output)
		}
	}
}

// script is a handoff by chance: what servers and the router may say in any order, also out of it.
func script(r *rand.Rand) (kinds []handoff.EventKind, end handoff.Record) {
	ids := []string{"a", "b", "c", "d"}
	all := []handoff.ItemKind{
		handoff.ItemMessage, handoff.ItemReasoning, handoff.ItemCommand, handoff.ItemFileChange, handoff.ItemToolCall,
		handoff.ItemOther,
	}
	kindOf := func(id string) handoff.ItemKind { return all[int(id[0]+ids[0][0])%len(all)] }
	text := map[string]string{}
	for range r.IntN(40) {
		id := ids[r.IntN(len(ids))] + strconv.Itoa(r.IntN(3))
		kind := kindOf(id)
		delta := handoff.DeltaMessage
		if kind == handoff.ItemReasoning {
			delta = handoff.DeltaReasoning
		}
		switch r.IntN(7) {
		case 0:
			kinds = append(kinds, handoff.EventDoing{ID: id, Item: kind, Text: strings.Repeat("ls ", r.IntN(2))})
		case 1, 2:
			piece := []string{"ü", "words ", "\u2028", "\"", ""}[r.IntN(5)]
			kinds = append(kinds, handoff.EventDelta{ItemID: id, Kind: delta, At: len(text[id]) - r.IntN(6)/5, Text: piece})
			text[id] += piece
		case 3:
			whole := text[id] + []string{"", "!", "\x00"}[r.IntN(3)]
			kinds = append(kinds, handoff.EventItem{Item: handoff.Item{ID: id, Kind: kind, Text: whole[r.IntN(5)/4*min(1, len(whole)):], Output: "out", Failed: r.IntN(3) == 0}})
		case 4:
			kinds = append(kinds, handoff.EventDropped{ItemID: id})
		case 5:
			kinds = append(kinds, handoff.EventSnapshot{Items: []handoff.RecordItem{
				{ID: id, Kind: kind, Text: text[id], State: []string{"running", "done", "failed"}[r.IntN(3)]}}})
		case 6:
			kinds = append(kinds, handoff.EventUsage{Usage: handoff.Usage{Input: int64(r.IntN(9)), Output: 1}})
		}
	}
	outcomes := []handoff.Outcome{
		handoff.OutcomeResult, handoff.OutcomeFailed, handoff.OutcomeInterrupted, handoff.OutcomeCancelled,
		handoff.OutcomeUnknown,
	}
	end = handoff.Record{Outcome: outcomes[r.IntN(len(outcomes))], Text: []string{"", "done", "ü"}[r.IntN(3)]}
	if r.IntN(2) == 0 {
		end.Error = &handoff.RecordError{Code: handoff.CodeAgentFailed, Message: "It failed."}
	}
	return kinds, end
}

// FuzzStream: for any events of a handoff, the strictest reader accepts the stream, and the items that it read are
// those of the response.
func FuzzStream(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed, seed%3 == 0, seed%5 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, background, exact bool) {
		m := newEmitter(background)
		m.exact = exact
		kinds, end := script(rand.New(rand.NewPCG(seed, 1)))
		steps := [][]event{m.begin()}
		for _, k := range kinds {
			steps = append(steps, m.take(k, handoff.Record{}))
		}
		o := wrote(t, append(steps, m.take(handoff.EventEnded{}, end))...)
		var shown map[string]any
		if err := json.Unmarshal([]byte(encode(m.resp)), &shown); err != nil || !reflect.DeepEqual(shown, o.last) || o.over == "" {
			t.Errorf("%v: the response is\n%v, the stream said\n%v", err, shown, o.last)
		}
	})
}

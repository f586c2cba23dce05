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

// written is the stream of a handoff as it goes over the wire, read by the oracle.
func written(t testing.TB, m *emitter, end handoff.Record, kinds ...handoff.EventKind) *oracle {
	t.Helper()
	m.begin()
	for _, k := range kinds {
		m.take(k, handoff.Record{})
	}
	m.take(handoff.EventEnded{}, end)
	o := &oracle{}
	for _, e := range m.out {
		if err := o.read(frame(e)); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func result(text string) handoff.Record {
	return handoff.Record{Outcome: handoff.OutcomeResult, Text: text}
}

// shape writes a stream briefly, to compare.
func shape(events []event) string {
	var b strings.Builder
	for _, e := range events {
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
	o := written(t, m, result("It fails."),
		handoff.EventDoing{ID: "m", Item: handoff.ItemMessage},
		handoff.EventDelta{ItemID: "m", Kind: handoff.DeltaMessage, Text: "I look"},
		handoff.EventDelta{ItemID: "m", Kind: handoff.DeltaMessage, At: 6, Text: " at it."},
		handoff.EventItem{Item: handoff.Item{ID: "m", Kind: handoff.ItemMessage, Text: "I look at it."}},
		handoff.EventDoing{ID: "c", Item: handoff.ItemCommand, Text: "go test"},
		handoff.EventItem{
			Item: handoff.Item{ID: "c", Kind: handoff.ItemCommand, Text: "go test", Output: "FAIL", Exit: new(1)},
		},
		handoff.EventItem{Item: handoff.Item{ID: "a", Kind: handoff.ItemMessage, Text: "It fails."}},
		handoff.EventUsage{Usage: handoff.Usage{Input: 5, Cached: 2, Output: 3, Reasoning: 1}})
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
	if got := shape(m.out); got != want {
		t.Errorf("got\n%s", got)
	}
	used, _ := o.last["usage"].(map[string]any)
	if o.over != evCompleted || used["total_tokens"] != 8.0 || o.last["completed_at"] == nil || o.last["error"] != nil {
		t.Errorf("ends with %s %v", o.over, o.last)
	}
}

// TestSerialWindows: items that run at the same time are written one after another, and a call that hangs does not
// block the others for ever.
func TestSerialWindows(t *testing.T) {
	o := written(t, newEmitter(false), result("done"),
		handoff.EventDoing{ID: "hangs", Item: handoff.ItemCommand, Text: "sleep"},
		handoff.EventDoing{ID: "two", Item: handoff.ItemToolCall, Text: "files.read"},
		handoff.EventDelta{ItemID: "m", Kind: handoff.DeltaMessage, Text: "beside"},
		handoff.EventItem{Item: handoff.Item{ID: "two", Kind: handoff.ItemToolCall, Text: "files.read", Arguments: `{"path":"a"}`, Output: "text"}},
		handoff.EventDropped{ItemID: "hangs"})
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
		if got := written(t, newEmitter(false), result("done"), kinds...).output[0]["arguments"]; got != `{"command":"ls"}` {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestTextThatChanges: if the final text differs from the deltas, the written item stays as incomplete, and the final
// text follows as another item.
func TestTextThatChanges(t *testing.T) {
	o := written(t, newEmitter(false), result("No: it is."),
		handoff.EventDelta{ItemID: "m", Kind: handoff.DeltaMessage, Text: "I think"},
		handoff.EventDelta{ItemID: "m", Kind: handoff.DeltaMessage, At: 99, Text: "after a gap"},
		handoff.EventItem{Item: handoff.Item{ID: "m", Kind: handoff.ItemMessage, Text: "No: it is."}},
		handoff.EventItem{Item: handoff.Item{ID: "r", Kind: handoff.ItemReasoning}})
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
		o := written(t, m, result(answer), handoff.EventDelta{ItemID: "m", Kind: handoff.DeltaMessage, Text: "I look."},
			handoff.EventItem{Item: handoff.Item{ID: "m", Kind: handoff.ItemMessage, Text: "I look."}},
			handoff.EventItem{Item: handoff.Item{ID: "a", Kind: handoff.ItemMessage, Text: answer}})
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
		o := written(t, m, end, kinds...)
		var shown map[string]any
		if err := json.Unmarshal([]byte(handoff.Encode(m.resp)), &shown); err != nil || !reflect.DeepEqual(shown, o.last) || o.over == "" {
			t.Errorf("%v: the response is\n%v, the stream said\n%v", err, shown, o.last)
		}
	})
}

package responses

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers/responses/wire"
)

const here = "https://here/v1 key"

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// history returns items by short names: "u:hi" a person, "a:hi" the model, "c:1" a call, "o:1" its output, "r:" plain
// reasoning, "e:" encrypted reasoning, "f:hi" another model, "x:5" a compaction that keeps from item 5 on.
func history(words ...string) []threads.Item {
	var items []threads.Item
	for i, w := range words {
		kind, text, _ := strings.Cut(w, ":")
		it := threads.Item{From: here}
		id := fmt.Sprint("id", i)
		switch kind {
		case "u":
			it = threads.Item{JSON: userItem(handoff.TextInput(text))}
		case "a", "f":
			it.JSON = wire.Encode(object{"type": "message", "role": "assistant", "id": id,
				"content": []object{{"type": "output_text", "text": text}}})
		case "c":
			it.JSON = wire.Encode(object{"type": "function_call", "id": id, "call_id": text, "name": "grep", "arguments": "{}"})
		case "o":
			it = threads.Item{JSON: outputItem(wire.Item{CallID: text}, output{Text: "found " + text})}
		case "r":
			it.JSON = wire.Encode(object{"type": "reasoning", "id": id, "summary": []object{}})
		case "e":
			it.JSON = wire.Encode(object{"type": "reasoning", "id": id, "summary": []object{}, "encrypted_content": "gAAA"})
		case "x":
			keep := 0
			_, _ = fmt.Sscan(text, &keep)
			it = threads.Item{JSON: wire.Encode(compaction{Type: typeCompaction, Keep: keep, Summary: "what was"})}
		}
		if kind == "f" {
			it.From = "https://there/v1 key"
		}
		items = append(items, it)
	}
	return items
}

// words returns an input in these short names.
func words(input []json.RawMessage) string {
	var all []string
	for _, raw := range input {
		s := wire.Read(raw)
		word := ""
		switch {
		case s.IsCall():
			word = "c:" + s.CallID
		case s.IsOutput() && s.Text() == unanswered:
			word = "!:" + s.CallID
		case s.IsOutput():
			word = "o:" + s.CallID
		case s.Type == wire.Reasoning && s.Encrypted != "":
			word = "e:"
		case s.Type == wire.Reasoning:
			word = "r:"
		case s.Role == "assistant":
			word = "a:" + s.Text()
		case strings.HasPrefix(s.Text(), "[Summary"):
			word = "summary"
		default:
			word = "u:" + s.Text()
		}
		if s.ID != "" {
			word += "#" + s.ID
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}

func at(items int) threads.Anchor {
	return threads.Anchor{Response: "resp_1", Upstream: here, Items: items, At: noon.Add(-time.Hour)}
}

func TestContinuation(t *testing.T) {
	type anchor = threads.Anchor
	changed := func(a anchor, change func(*anchor)) anchor {
		change(&a)
		return a
	}
	for _, c := range []struct {
		name   string
		items  []string
		anchor anchor
		off    bool
		want   string // the previous response, then the input
	}{
		{name: "the first turn", items: []string{"u:hi"}, want: " u:hi"},
		{name: "on sends only what is new", items: []string{"u:hi", "a:yes", "u:more"}, anchor: at(2), want: "resp_1 u:more"},
		{name: "off sends everything", items: []string{"u:hi", "a:yes", "u:more"}, anchor: at(2), off: true,
			want: " u:hi a:yes u:more"},
		{name: "outputs go on from their calls", items: []string{"u:hi", "c:1", "c:2", "o:1", "o:2"}, anchor: at(3),
			want: "resp_1 o:1 o:2"},
		{name: "outputs come in call order", items: []string{"u:hi", "c:1", "c:2", "o:2", "o:1"}, anchor: at(3),
			want: "resp_1 o:1 o:2"},
		{name: "outputs come before steers", items: []string{"u:hi", "c:1", "u:wait", "o:1"}, anchor: at(2),
			want: "resp_1 o:1 u:wait"},
		{name: "a call is answered once", items: []string{"u:hi", "c:1", "o:1", "o:1"}, anchor: at(2), want: "resp_1 o:1"},
		{name: "an output without a call is left out", items: []string{"u:hi", "c:1", "o:1", "o:7"}, anchor: at(2),
			want: "resp_1 o:1"},
		{name: "interrupted calls are answered", items: []string{"u:hi", "c:1", "c:2", "o:1", "u:more"}, anchor: at(3),
			want: "resp_1 o:1 !:2 u:more"},
		{name: "calls of older responses are not answered again", items: []string{"u:hi", "c:1", "u:no", "a:ok", "u:more"},
			anchor: at(4), want: "resp_1 u:more"},
		{name: "no id", items: []string{"u:hi", "a:yes", "u:more"}, want: " u:hi a:yes u:more"},
		{name: "another upstream", items: []string{"u:hi", "a:yes", "u:more"},
			anchor: changed(at(2), func(a *anchor) { a.Upstream = "https://there" }), want: " u:hi a:yes u:more"},
		{name: "expired", items: []string{"u:hi", "a:yes", "u:more"},
			anchor: changed(at(2), func(a *anchor) { a.At = noon.Add(-keptFor) }), want: " u:hi a:yes u:more"},
		{name: "what a model said later is not in it", items: []string{"u:hi", "a:yes", "u:more", "a:broken off", "u:again"},
			anchor: at(2), want: " u:hi a:yes u:more a:broken off u:again"},
		{name: "compacted since", items: []string{"u:hi", "a:yes", "u:more", "x:2"}, anchor: at(2), want: " summary u:more"},
		{name: "compacted before", items: []string{"u:hi", "a:yes", "u:more", "x:2", "a:fine", "u:next"}, anchor: at(5),
			want: "resp_1 u:next"},
		{name: "replay after a compaction", items: []string{"u:hi", "a:yes", "u:more", "x:2", "a:fine", "u:next"}, off: true,
			want: " summary u:more a:fine u:next"},
		{name: "replay has no ids and no bare reasoning", items: []string{"u:hi", "r:", "a:yes", "u:more"}, off: true,
			want: " u:hi a:yes u:more"},
		{name: "replay keeps encrypted reasoning", items: []string{"u:hi", "e:", "c:1", "o:1"}, off: true,
			want: " u:hi e: c:1 o:1"},
		{name: "replay answers every call once, in order",
			items: []string{"u:hi", "c:1", "c:2", "o:2", "o:2", "o:9", "u:more"}, off: true,
			want: " u:hi c:1 c:2 !:1 o:2 u:more"},
		{name: "replay answers calls at the end", items: []string{"u:hi", "c:1"}, off: true, want: " u:hi c:1 !:1"},
		{name: "call ids are used again", items: []string{"u:hi", "c:1", "o:1", "c:1", "o:1"}, off: true,
			want: " u:hi c:1 o:1 c:1 o:1"},
		{name: "another model's words stay", items: []string{"u:hi", "f:yes", "u:more"}, off: true,
			want: " u:hi a:yes u:more"},
	} {
		p := planned(history(c.items...), c.anchor, continuation{ByID: !c.off, Upstream: here, Now: noon})
		if got := p.Previous + " " + words(p.Input); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	reference := threads.Item{JSON: json.RawMessage(`{"type":"item_reference","id":"msg_1"}`)}
	if p := planned(append(history("u:hi", "a:yes"), reference), anchor{},
		continuation{Upstream: here, Now: noon}); len(p.Input) != 2 {
		t.Errorf("a replay has a reference to what nobody keeps: %s", p.Input)
	}
}

// TestForeignReasoning: encrypted reasoning of another upstream is not sent.
func TestForeignReasoning(t *testing.T) {
	items := history("u:hi", "e:", "a:yes")
	p := planned(items, threads.Anchor{}, continuation{Upstream: "https://there"})
	if got := words(p.Input); got != "u:hi a:yes" {
		t.Error(got)
	}
}

// randomHistory returns a history decoded from bytes.
func randomHistory(steps []byte) []threads.Item {
	var all []string
	for i, b := range steps {
		all = append(all, []string{"u:w", "a:w", "c:", "o:", "r:", "e:", "c:", "o:"}[b%8])
		if k := b % 8; k == 2 || k == 3 || k > 5 {
			all[i] += fmt.Sprint(b / 8 % 4)
		}
	}
	return history(all...)
}

// FuzzContinuation: in any history, each call is answered exactly once before anything but outputs follows, no other
// output is sent, and a replay has no ids of items.
func FuzzContinuation(f *testing.F) {
	f.Add([]byte{0, 2, 3, 1}, uint8(2), true)
	f.Add([]byte{0, 2, 10, 0, 3, 11, 4, 1}, uint8(3), false)
	f.Fuzz(func(t *testing.T, steps []byte, anchored uint8, on bool) {
		items := randomHistory(steps[:min(len(steps), 40)])
		if it, ok := compacted(items); ok && len(steps)%3 == 0 {
			items = append(items, it)
			items = append(items, history("u:later", "c:1")...)
		}
		a := at(int(anchored))
		p := planned(items, a, continuation{ByID: on, Upstream: here, Now: noon})
		open := map[string]int{}
		if p.Previous != "" {
			for i := a.Items - 1; i >= 0 && items[i].From != ""; i-- {
				if s := wire.Read(items[i].JSON); s.IsCall() {
					open[s.CallID]++
				}
			}
			if !on || slices.ContainsFunc(items[a.Items:], func(it threads.Item) bool { return it.From != "" }) {
				t.Fatal("named a response that does not have everything")
			}
		}
		spoken := false
		for _, raw := range p.Input {
			s := wire.Read(raw)
			switch {
			case s.IsCall():
				open[s.CallID]++
			case s.IsOutput():
				if open[s.CallID]--; open[s.CallID] < 0 {
					t.Fatalf("answered what was not called: %s", words(p.Input))
				}
			case s.Role == "user" && spoken && p.Previous == "":
				for id, n := range open {
					if n > 0 {
						t.Fatalf("call %s is open when somebody speaks: %s", id, words(p.Input))
					}
				}
			}
			if spoken = true; s.ID != "" || s.Type == typeCompaction || s.Type == wire.Reasoning && s.Encrypted == "" {
				t.Fatalf("sent %s", raw)
			}
		}
		for id, n := range open {
			if n > 0 {
				t.Fatalf("call %s is open %d times after %q: %s", id, n, p.Previous, words(p.Input))
			}
		}
	})
}

package responses

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers/responses/wire"
)

// Bounds of a summary, in bytes.
const (
	maxSummary     = 32 << 10 // of the whole
	maxSummaryLine = 2 << 10  // of one message
	maxAsked       = 64 << 10 // of the newest words of a person, which are kept whole as far as that
)

// A compaction stands in a thread where its context was full. From then on everything before item Keep is left out,
// and its summary stands there instead. Nothing is deleted: readers of the thread still see all items.
type compaction struct {
	Type    string `json:"type"` // [typeCompaction]
	Keep    int    `json:"keep"` // counted in the thread
	Summary string `json:"summary"`
}

// compactionStart is how a compaction begins, and no other item of ours. Set once.
var compactionStart = []byte(`{"type":"` + typeCompaction + `"`)

// lastCompaction finds the newest compaction: where it stands (-1: there is none), the first item that is still
// sent, and what is sent for those before.
func lastCompaction(items []threads.Item) (at, from int, summary string) {
	for i := len(items) - 1; i >= 0; i-- {
		if it := items[i]; it.From == "" && bytes.HasPrefix(it.JSON, compactionStart) {
			var c compaction
			if json.Unmarshal(it.JSON, &c) == nil && c.Keep >= 0 && c.Keep <= i {
				return i, c.Keep, c.Summary
			}
		}
	}
	return -1, 0, ""
}

func summaryItem(summary string) json.RawMessage {
	return wire.Encode(object{"type": wire.Message, "role": "user", "content": []object{{
		"type": "input_text", "text": "[Summary of this session so far; the session goes on after it]\n" + summary,
	}}})
}

// compacted returns the item that leaves out about the older half of what is sent of a thread, by bytes; false
// when nothing can be left out. It never cuts a call from its output, nor reasoning from what follows it, and the
// newest words of a person are never lost.
func compacted(items []threads.Item) (threads.Item, bool) {
	_, from, summary := lastCompaction(items)
	sent, total := items[from:], 0
	for _, it := range sent {
		total += len(it.JSON)
	}
	cuttable := cuts(sent)
	keep, size := len(sent), 0
	for i := len(sent) - 1; i > 0 && size+len(sent[i].JSON) <= total/2; i-- {
		size += len(sent[i].JSON)
		if cuttable[i] {
			keep = i
		}
	}
	for keep > 0 && !cuttable[keep] { // the newest items alone are more than half
		keep--
	}
	if keep == 0 {
		return threads.Item{}, false
	}
	c := compaction{Type: typeCompaction, Keep: from + keep, Summary: summarized(summary, sent[:keep], sent[keep:])}
	if len(c.Summary) >= total {
		return threads.Item{}, false // it would only grow
	}
	return threads.Item{JSON: wire.Encode(c)}, true
}

// cuts tells before which items a history can be cut, its end among them: a call is not cut from its output, nor
// reasoning from what follows it.
func cuts(items []threads.Item) []bool {
	cuttable := slices.Repeat([]bool{true}, len(items)+1)
	calls := map[string]int{} // where they are
	for i, it := range items {
		s := wire.Read(it.JSON)
		switch {
		case s.IsCall():
			calls[s.CallID] = i
		case s.Type == wire.Reasoning:
			cuttable[i+1] = false
		}
		if at, ok := calls[s.CallID]; ok && s.IsOutput() {
			for k := at + 1; k <= i; k++ {
				cuttable[k] = false
			}
			delete(calls, s.CallID)
		}
	}
	return cuttable
}

// summarized puts items that are left out into words, after the summary that stood for older ones. The newest are
// kept when there are too many.
func summarized(before string, items, kept []threads.Item) string {
	var lines []string
	for _, it := range items {
		if line := summaryLine(wire.Read(it.JSON), maxSummaryLine); line != "" {
			lines = append(lines, line)
		}
	}
	text := strings.Join(lines, "\n")
	if before != "" {
		text = before + "\n" + text
	}
	if len(text) > maxSummary {
		text = "…" + handoff.Tail(text, maxSummary)
	}
	if newest := newestRequest(items); newest != "" && newestRequest(kept) == "" {
		text += "\n\nThe newest request, which still counts:\n" + newest
	}
	return text
}

// newestRequest returns the newest words of a person, "" for none.
func newestRequest(items []threads.Item) string {
	for i := len(items) - 1; i >= 0; i-- {
		if s := wire.Read(items[i].JSON); s.Role == "user" && items[i].From == "" {
			return handoff.Clip(s.Text(), maxAsked)
		}
	}
	return ""
}

// summaryLine is one item in a summary, "" when it is left out.
func summaryLine(s wire.Item, limit int) string {
	who := ""
	switch {
	case s.Type == wire.Message && s.Role == "assistant":
		who = "You said: "
	case s.Type == wire.Message && s.Role == "user":
		who = "You were told: "
	case s.IsCall():
		return handoff.Clip("You called "+s.Name+" "+s.Arguments+s.Input, limit/4)
	}
	text := strings.TrimSpace(s.Text())
	if who == "" || text == "" {
		return ""
	}
	return handoff.Clip(who+text, limit)
}

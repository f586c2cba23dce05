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
	maxSummary     = 32 << 10 // of the whole summary
	maxSummaryLine = 2 << 10  // of one message
	maxRequest     = 64 << 10 // of the newest words of a person
)

// A compaction is an item in a thread where the context was full. Later requests send its summary instead of the items
// before item Keep. Nothing is deleted: readers of the thread still see all items.
type compaction struct {
	Type    string `json:"type"` // [typeCompaction]
	Keep    int    `json:"keep"` // index in the thread of the first item that is still sent
	Summary string `json:"summary"`
}

// compactionStart is how the JSON of a compaction begins. Set once.
var compactionStart = []byte(`{"type":"` + typeCompaction + `"`)

// lastCompaction returns the index of the newest compaction (-1 for none), the index of the first item that is still
// sent, and the summary of those before.
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

// compacted returns a compaction that leaves out about the older half, by bytes, of what is sent of a thread; false if
// nothing can be left out. It separates no call from its output and no reasoning from the item after it, and never
// loses the newest words of a person.
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

// cuts reports, for each item and for the end, whether a history can be cut before it: not between a call and its
// output, nor between reasoning and the item after it.
func cuts(items []threads.Item) []bool {
	cuttable := slices.Repeat([]bool{true}, len(items)+1)
	calls := map[string]int{} // index by call id
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

// summarized returns the summary of items that are left out, after the summary of older ones. If it is too long, its
// end is kept.
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
			return handoff.Clip(s.Text(), maxRequest)
		}
	}
	return ""
}

// summaryLine returns the line of an item in a summary, "" for none.
func summaryLine(s wire.Item, limit int) string {
	prefix := ""
	switch {
	case s.Type == wire.Message && s.Role == "assistant":
		prefix = "You said: "
	case s.Type == wire.Message && s.Role == "user":
		prefix = "You were told: "
	case s.IsCall():
		return handoff.Clip("You called "+s.Name+" "+s.Arguments+s.Input, limit/4)
	}
	text := strings.TrimSpace(s.Text())
	if prefix == "" || text == "" {
		return ""
	}
	return handoff.Clip(prefix+text, limit)
}

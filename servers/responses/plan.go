package responses

import (
	"encoding/json"
	"slices"
	"time"

	"switchboard/handoff/threads"
	"switchboard/servers/responses/wire"
)

// keptFor is how long an upstream is trusted to know a response. They promise 30 days.
const keptFor = 29 * 24 * time.Hour

// unanswered is the output of a call that was never answered, because its turn was interrupted or lost. A
// model refuses to go on while a call of its last response has no output.
const unanswered = "Error: interrupted before it had a result"

// A plan is the part of a thread that one request sends: everything, or the items since the response that it names.
type plan struct {
	Previous string // the response to go on from; "": the input is the whole history
	Input    []json.RawMessage
}

// A continuation says how requests follow each other.
type continuation struct {
	ByID     bool   // name the previous response, where that can be
	Upstream string // who is asked
	Now      time.Time
}

// planned decides what a request sends. It names the newest response only when that is certainly kept where it is
// asked, and nothing that a model said came after it; otherwise it sends all.
func planned(items []threads.Item, a threads.Anchor, c continuation) plan {
	marker, from, summary := lastCompaction(items)
	if c.ByID && usable(items, a, c, marker) {
		return plan{Previous: a.Response, Input: fresh(items[from:a.Items], items[a.Items:])}
	}
	var input []json.RawMessage
	if summary != "" {
		input = append(input, summaryItem(summary))
	}
	return plan{Input: append(input, replayed(items[from:], c.Upstream)...)}
}

// usable reports whether the response of an anchor can be gone on from. marker is where the history was last
// compacted, -1 for never.
func usable(items []threads.Item, a threads.Anchor, c continuation, marker int) bool {
	if a.Response == "" || a.Upstream != c.Upstream || !c.Now.Before(a.At.Add(keptFor)) || a.Items > len(items) ||
		a.Items <= marker {
		return false
	}
	return !slices.ContainsFunc(items[a.Items:], func(it threads.Item) bool { return it.From != "" })
}

// outputOf finds the first output of a call.
func outputOf(call wire.Item, items []threads.Item) (json.RawMessage, bool) {
	for _, it := range items {
		if s := wire.Read(it.JSON); s.IsOutput() && s.CallID == call.CallID {
			return it.JSON, true
		}
	}
	return nil, false
}

// fresh returns what came after a history, whose last items are the response that is gone on from. Its calls are
// answered first, each exactly once and in call order.
func fresh(history, more []threads.Item) []json.RawMessage {
	var calls []wire.Item
	for i := len(history) - 1; i >= 0 && history[i].From != ""; i-- {
		if s := wire.Read(history[i].JSON); s.IsCall() {
			calls = append(calls, s)
		}
	}
	slices.Reverse(calls)
	input := answered(calls, more)
	for _, it := range more {
		if s := wire.Read(it.JSON); s.Type != "" && s.Type != typeChanges && !s.IsOutput() {
			input = append(input, it.JSON)
		}
	}
	return input
}

// replayed returns a whole history as it can be sent to a model that has none of it. Every call is followed by
// exactly one output; outputs without a call are left out.
func replayed(items []threads.Item, upstream string) []json.RawMessage {
	var input []json.RawMessage
	var calls []wire.Item // of the model's words that are being gone through
	for i, it := range items {
		s := wire.Read(it.JSON)
		if it.From == "" || s.IsOutput() {
			input, calls = append(input, answered(calls, items[i:])...), nil
		}
		if s.IsOutput() {
			continue
		}
		item, ok := portable(it, upstream)
		if !ok {
			continue
		}
		if s.IsCall() {
			calls = append(calls, s)
		}
		input = append(input, item)
	}
	return append(input, answered(calls, nil)...)
}

// answered returns one output for each call, in call order, out of what follows.
func answered(calls []wire.Item, following []threads.Item) []json.RawMessage {
	var outputs []json.RawMessage
	for _, call := range calls {
		out, ok := outputOf(call, following)
		if !ok {
			out = outputItem(call, output{Text: unanswered})
		}
		outputs = append(outputs, out)
	}
	return outputs
}

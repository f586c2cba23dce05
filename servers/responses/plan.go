package responses

import (
	"encoding/json"
	"slices"
	"time"

	"switchboard/handoff/threads"
	"switchboard/servers/responses/wire"
)

// keptFor is how long we rely on an upstream to have a response. The promise is 30 days.
const keptFor = 29 * 24 * time.Hour

// unanswered is the output of a call that never got one, since its turn was interrupted or lost. A model refuses to go
// on while a call of its last response has no output.
const unanswered = "Error: interrupted before it had a result"

// A plan is the part of a thread that one request sends: all of it, or the items since the response that it names.
type plan struct {
	Previous string // the response to go on from; "" if Input is the whole history
	Input    []json.RawMessage
}

// A continuation says how requests follow each other.
type continuation struct {
	ByID     bool   // name the previous response if possible
	Upstream string // address of the API
	Now      time.Time
}

// planned returns what a request sends. It names the newest response only if the API certainly has it and the model
// said nothing after it; otherwise it sends everything.
func planned(items []threads.Item, a threads.Anchor, c continuation) plan {
	marker, from, summary := lastCompaction(items)
	if c.ByID && usable(items, a, c, marker) {
		return plan{Previous: a.Response, Input: inputSince(items[from:a.Items], items[a.Items:])}
	}
	var input []json.RawMessage
	if summary != "" {
		input = append(input, summaryItem(summary))
	}
	return plan{Input: append(input, wholeInput(items[from:], c.Upstream)...)}
}

// usable reports whether a request can go on from the response of an anchor. marker is the index of the newest
// compaction, -1 for none.
func usable(items []threads.Item, a threads.Anchor, c continuation, marker int) bool {
	if a.Response == "" || a.Upstream != c.Upstream || !c.Now.Before(a.At.Add(keptFor)) || a.Items > len(items) ||
		a.Items <= marker {
		return false
	}
	return !slices.ContainsFunc(items[a.Items:], func(it threads.Item) bool { return it.From != "" })
}

// outputOf returns the first output of a call.
func outputOf(call wire.Item, items []threads.Item) (json.RawMessage, bool) {
	for _, it := range items {
		if s := wire.Read(it.JSON); s.IsOutput() && s.CallID == call.CallID {
			return it.JSON, true
		}
	}
	return nil, false
}

// inputSince returns the items after a history that ends with the response to go on from. The calls of that response
// are answered first, each exactly once and in their order.
func inputSince(history, more []threads.Item) []json.RawMessage {
	var calls []wire.Item
	for i := len(history) - 1; i >= 0 && history[i].From != ""; i-- {
		if s := wire.Read(history[i].JSON); s.IsCall() {
			calls = append(calls, s)
		}
	}
	slices.Reverse(calls)
	input := outputs(calls, more)
	for _, it := range more {
		if s := wire.Read(it.JSON); s.Type != "" && s.Type != typeChanges && !s.IsOutput() {
			input = append(input, it.JSON)
		}
	}
	return input
}

// wholeInput returns a history in the form for a model that has none of it. Every call is followed by exactly one
// output; outputs without a call are left out.
func wholeInput(items []threads.Item, upstream string) []json.RawMessage {
	var input []json.RawMessage
	var calls []wire.Item // of the present response
	for i, it := range items {
		s := wire.Read(it.JSON)
		if it.From == "" || s.IsOutput() {
			input, calls = append(input, outputs(calls, items[i:])...), nil
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
	return append(input, outputs(calls, nil)...)
}

// outputs returns one output for each call, in the order of the calls: the one that follows it, or [unanswered].
func outputs(calls []wire.Item, following []threads.Item) []json.RawMessage {
	var all []json.RawMessage
	for _, call := range calls {
		out, ok := outputOf(call, following)
		if !ok {
			out = outputItem(call, output{Text: unanswered})
		}
		all = append(all, out)
	}
	return all
}

package responses

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/handoff"
)

// maxItems bounds the items in the output of one response. Later ones are left out, except the answer.
const maxItems = 1000

// An emitter turns the events of a run into the events of one response. It has no side effects: the same input gives
// the same output. Items are written one after another, as OpenAI does it: while the item that began first is written,
// the texts of the others wait.
type emitter struct {
	resp   response
	label  string           // the machine
	exact  bool             // the answer has to be JSON, so no other message is written
	canAsk bool             // the reader can answer questions
	now    func() time.Time // for completed_at
	shown  map[string]bool  // ids of the agent's items that were written, or must not be

	seq         int
	queue       []*openItem
	last        string   // the text of the latest message that was written
	asked       []string // ids of the questions that the response ended with
	steeredInto string   // id of the run that the words went into
	out         []event  // the events of the current step
}

// An openItem is an item in the queue: it has begun and is not written to its end.
type openItem struct {
	of    string // the agent's id
	kind  handoff.ItemKind
	text  []byte        // of a message or a reasoning, as far as it is known; of a tool, its first text
	sent  int           // how many bytes of text were written
	begun bool          // it was added to the output
	at    int           // its index in the output
	args  bool          // the arguments of the tool were written
	whole *handoff.Item // the finished item; nil: it is not finished
}

// begin writes the first events of a stream.
func (e *emitter) begin() []event {
	e.resp.Status = inProgress
	if e.resp.Background {
		e.resp.Status = queued
	}
	e.lifecycle(evCreated)
	if e.resp.Background {
		e.lifecycle(evQueued)
		e.resp.Status = inProgress
	}
	e.lifecycle(evProgress)
	return e.take(nil, handoff.Record{})
}

// over reports whether the response has ended, so that no more events are written.
func (e *emitter) over() bool { return ended(e.resp.Status) }

// take writes the events that follow from an event of the run.
func (e *emitter) take(kind handoff.RunKind, rec handoff.Record) []event {
	if !e.over() {
		e.apply(kind, rec)
	}
	if !e.over() {
		e.flush()
	}
	out := e.out
	e.out = nil
	return out
}

// apply applies an event of the run.
func (e *emitter) apply(kind handoff.RunKind, rec handoff.Record) {
	switch k := kind.(type) {
	case handoff.RunSnapshot:
		e.snapshot(k)
	case handoff.RunDoing:
		if w := e.find(k.ID); w == nil && k.ID != "" {
			e.start(k.ID, k.Item, k.Text)
		}
	case handoff.RunDelta:
		e.delta(k)
	case handoff.RunItem:
		e.finish(k.Item)
	case handoff.RunDropped:
		e.drop(k.ItemID)
	case handoff.RunUsage:
		e.used(k.Usage)
	case handoff.RunAsked:
		if e.canAsk && answerable(k.Question.Shown) {
			e.flush()
			e.ask(k.Question.Shown)
		}
	case handoff.RunSteered:
		e.steeredInto = string(k.Into)
	case handoff.RunYielded:
		e.fail("server_error", "Another Switchboard has taken this work over.")
	case handoff.RunEnded:
		e.end(rec)
	}
}

// snapshot applies the items of a snapshot that are not known yet.
func (e *emitter) snapshot(s handoff.RunSnapshot) {
	for _, it := range s.Items {
		if it.State == "running" {
			if e.find(it.ID) == nil {
				e.start(it.ID, it.Kind, it.Text)
			}
			continue
		}
		e.finish(
			handoff.Item{
				ID: it.ID, Kind: it.Kind, Text: it.Text, Output: it.Output, Exit: it.Exit, Failed: it.State == "failed",
			},
		)
	}
	e.used(s.Usage)
}

func (e *emitter) used(u handoff.Usage) {
	if u == (handoff.Usage{}) {
		return
	}
	e.resp.Usage = &usage{
		Input: u.Input, InputDetails: inputDetails{u.Cached}, Output: u.Output, OutDetails: outDetails{u.Reasoning},
		Total: u.Input + u.Output,
	}
}

func (e *emitter) find(id string) *openItem {
	if i := slices.IndexFunc(e.queue, func(w *openItem) bool { return w.of == id }); i >= 0 {
		return e.queue[i]
	}
	return nil
}

// start adds an item to the queue, and returns nil if the item is not to be written.
func (e *emitter) start(id string, kind handoff.ItemKind, text string) *openItem {
	if e.shown[id] || !written(kind) || len(e.resp.Output)+len(e.queue) >= maxItems ||
		e.exact && kind == handoff.ItemMessage {
		return nil
	}
	w := &openItem{of: id, kind: kind, text: []byte(text)}
	e.queue = append(e.queue, w)
	return w
}

// written reports whether items of a kind are written: messages, reasoning and calls of tools.
func written(kind handoff.ItemKind) bool {
	switch kind {
	case handoff.ItemMessage, handoff.ItemReasoning, handoff.ItemCommand, handoff.ItemFileChange, handoff.ItemToolCall:
		return true
	}
	return false
}

// delta adds a piece to a message or a reasoning, unless a piece before it is missing.
func (e *emitter) delta(d handoff.RunDelta) {
	w := e.find(d.ItemID)
	if w == nil && d.At == 0 {
		switch d.Kind {
		case handoff.DeltaMessage:
			w = e.start(d.ItemID, handoff.ItemMessage, "")
		case handoff.DeltaReasoning:
			w = e.start(d.ItemID, handoff.ItemReasoning, "")
		}
	}
	if w == nil || w.whole != nil || w.tool() || d.At != len(w.text) {
		return
	}
	w.text = append(w.text, d.Text...)
}

func (w *openItem) tool() bool {
	return w.kind != handoff.ItemMessage && w.kind != handoff.ItemReasoning
}

// finish takes a finished item.
func (e *emitter) finish(it handoff.Item) {
	w := e.find(it.ID)
	if w == nil {
		if w = e.start(it.ID, it.Kind, ""); w == nil {
			return
		}
	}
	w.whole = &it
}

// drop withdraws an item. What was written of it stays, with the status incomplete.
func (e *emitter) drop(id string) {
	if w := e.find(id); w != nil {
		e.cut(w)
		e.queue = slices.DeleteFunc(e.queue, func(other *openItem) bool { return other == w })
	}
}

// flush writes what there is of the first item in the queue, and when it is finished goes on with the next.
func (e *emitter) flush() {
	for len(e.queue) > 0 && e.write(e.queue[0]) {
		e.shown[e.queue[0].of] = true
		e.queue = e.queue[1:]
	}
}

// write writes what is new of an item, and reports whether the item is finished.
func (e *emitter) write(w *openItem) bool {
	if w.tool() {
		return e.writeTool(w)
	}
	if w.whole != nil {
		whole := w.whole.Text
		if !strings.HasPrefix(whole, string(w.text[:w.sent])) { // the final text differs from what was written
			e.cut(w)
			*w = openItem{of: w.of, kind: w.kind, whole: w.whole}
		}
		w.text = append(w.text[:w.sent], whole[w.sent:]...)
	}
	if len(w.text) == 0 {
		return w.whole != nil
	}
	e.writeText(w)
	if w.whole == nil {
		return false
	}
	e.closeText(w, completed)
	return true
}

// writeText writes the new text of a message or a reasoning.
func (e *emitter) writeText(w *openItem) {
	prefix, added, delta, p := "msg_", evPart, evText, textPart("")
	if w.kind == handoff.ItemReasoning {
		prefix, added, delta, p = "rs_", evSummary, evThought, summaryPart("")
	}
	if !w.begun {
		it := item{Type: typeMessage, Status: inProgress, Role: "assistant", Content: &[]part{}}
		if w.kind == handoff.ItemReasoning {
			it = item{Type: typeThought, Status: inProgress, Summary: &[]part{}}
		}
		e.add(w, prefix, it)
		e.about(w, event{Type: added, Part: &p})
	}
	if w.sent < len(w.text) {
		ev := event{Type: delta, Delta: string(w.text[w.sent:])}
		if w.kind == handoff.ItemMessage {
			ev.Logprobs = none
		}
		e.about(w, ev)
		w.sent = len(w.text)
	}
}

// closeText ends a message or a reasoning with the text that was written.
func (e *emitter) closeText(w *openItem, status string) {
	text := string(w.text[:w.sent])
	it := &e.resp.Output[w.at]
	it.Status = status
	if w.kind == handoff.ItemReasoning {
		p := summaryPart(text)
		it.Summary = &[]part{p}
		e.about(w, event{Type: evThoughtEnd, Text: &text})
		e.about(w, event{Type: evSummaryEnd, Part: &p})
	} else {
		p := textPart(text)
		it.Content = &[]part{p}
		e.about(w, event{Type: evTextDone, Text: &text, Logprobs: none})
		e.about(w, event{Type: evPartDone, Part: &p})
		e.last = text
	}
	e.done(w.at)
}

// cut ends an item that is not finished.
func (e *emitter) cut(w *openItem) {
	if !w.begun {
		return
	}
	if !w.tool() {
		e.closeText(w, incomplete)
		return
	}
	e.arguments(w, toolArguments(w.kind, string(w.text), ""))
	e.resp.Output[w.at].Status = incomplete
	e.done(w.at)
}

// writeTool writes what is new of a command, an edit or another tool of the agent, and reports whether it is finished.
func (e *emitter) writeTool(w *openItem) bool {
	text := string(w.text)
	if w.whole != nil {
		text = w.whole.Text
	}
	if !w.begun {
		e.add(
			w, "mcp_",
			item{Type: typeCall, Status: inProgress, ServerLabel: e.label, Name: toolName(w.kind, text), Arguments: new("")},
		)
		e.about(w, event{Type: evCalling})
		if w.kind == handoff.ItemCommand && w.whole == nil {
			e.arguments(w, toolArguments(w.kind, text, ""))
		}
	}
	if w.whole == nil {
		return false
	}
	e.arguments(w, toolArguments(w.kind, text, w.whole.Arguments))
	it := &e.resp.Output[w.at]
	it.Status, it.Output = completed, &w.whole.Output
	typ := evCalled
	if w.whole.Failed || w.whole.Exit != nil && *w.whole.Exit != 0 {
		why := "it failed"
		if w.whole.Exit != nil {
			why = "exit code " + strconv.Itoa(*w.whole.Exit)
		}
		it.Status, it.Error, typ = failed, &why, evCallFailed
	}
	e.about(w, event{Type: typ})
	e.done(w.at)
	return true
}

// arguments writes the arguments of a tool, once.
func (e *emitter) arguments(w *openItem, args string) {
	if w.args {
		return
	}
	w.args = true
	e.resp.Output[w.at].Arguments = &args
	e.about(w, event{Type: evArgs, Delta: args})
	e.about(w, event{Type: evArgsDone, Arguments: &args})
}

// toolName returns the name of a tool of the agent.
func toolName(kind handoff.ItemKind, text string) string {
	switch kind {
	case handoff.ItemCommand:
		return "shell"
	case handoff.ItemFileChange:
		return "apply_patch"
	}
	name, _, _ := strings.Cut(text, " ")
	return cmp.Or(name, "tool")
}

// toolArguments returns the arguments of a tool as JSON. Those of a command are the same before and after it ran.
func toolArguments(kind handoff.ItemKind, text, known string) string {
	switch {
	case kind == handoff.ItemCommand:
		return encode(map[string]string{"command": text})
	case known != "" && json.Valid([]byte(known)):
		return known
	case kind == handoff.ItemFileChange:
		return encode(map[string][]string{"paths": strings.Split(text, "\n")})
	}
	return "{}"
}

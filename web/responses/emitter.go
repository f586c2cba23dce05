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

// maxItems bounds the output of one response. What an agent does beyond that is left out, but for its answer.
const maxItems = 1000

// An emitter turns what happens to a run into the events of one response. It is pure: the same events in give the same
// out. Items are written one after the other, as OpenAI does it: the first that began has the window, what the others
// say meanwhile waits.
type emitter struct {
	resp  response
	label string           // the machine
	exact bool             // the answer is to be JSON: no other message is written
	asks  bool             // who reads it can answer questions
	now   func() time.Time // for completed_at
	shown map[string]bool  // the agent's items that were written, or are not to be

	seq    int
	queue  []*writing
	last   string   // the text of the newest message written
	asked  []string // questions that it ended with
	stolen string   // the run that took the words in
	out    []event  // of the step that is made
}

// A writing is an item that began and is not written to its end.
type writing struct {
	of    string // the agent's id
	kind  handoff.ItemKind
	text  []byte // of a message or a thought, as far as it is known; else what it began with
	sent  int    // bytes of text that were written
	begun bool   // it was added to the output, at
	at    int
	args  bool          // the arguments of a tool were written
	whole *handoff.Item // it is finished
}

// begin writes how every stream begins.
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

// over reports whether nothing more is written.
func (e *emitter) over() bool { return ended(e.resp.Status) }

// take writes what follows from something that happened to the run.
func (e *emitter) take(kind handoff.RunKind, rec handoff.Record) []event {
	if !e.over() {
		e.hear(kind, rec)
	}
	if !e.over() {
		e.pump()
	}
	out := e.out
	e.out = nil
	return out
}

func (e *emitter) hear(kind handoff.RunKind, rec handoff.Record) {
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
		if e.asks {
			e.pump()
			e.ask(k.Question.Shown)
		}
	case handoff.RunSteered:
		e.stolen = string(k.Into)
	case handoff.RunYielded:
		e.fail("server_error", "Another Switchboard has taken this work over.")
	case handoff.RunEnded:
		e.end(rec)
	}
}

// snapshot takes how the run stands, as far as it is not known.
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

func (e *emitter) find(id string) *writing {
	if i := slices.IndexFunc(e.queue, func(w *writing) bool { return w.of == id }); i >= 0 {
		return e.queue[i]
	}
	return nil
}

// start puts an item at the end of the queue, if it is one to be written.
func (e *emitter) start(id string, kind handoff.ItemKind, text string) *writing {
	if e.shown[id] || !written(kind) || len(e.resp.Output)+len(e.queue) >= maxItems ||
		e.exact && kind == handoff.ItemMessage {
		return nil
	}
	w := &writing{of: id, kind: kind, text: []byte(text)}
	e.queue = append(e.queue, w)
	return w
}

// written reports whether items of a kind are written: messages, thoughts and calls of tools.
func written(kind handoff.ItemKind) bool {
	switch kind {
	case handoff.ItemMessage, handoff.ItemReasoning, handoff.ItemCommand, handoff.ItemFileChange, handoff.ItemToolCall:
		return true
	}
	return false
}

// delta takes a piece of a message or of a thought, if nothing before it is missing.
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

func (w *writing) tool() bool {
	return w.kind != handoff.ItemMessage && w.kind != handoff.ItemReasoning
}

func (e *emitter) finish(it handoff.Item) {
	w := e.find(it.ID)
	if w == nil {
		if w = e.start(it.ID, it.Kind, ""); w == nil {
			return
		}
	}
	w.whole = &it
}

// drop withdraws an item. What was written of it stays, as incomplete.
func (e *emitter) drop(id string) {
	if w := e.find(id); w != nil {
		e.cut(w)
		e.queue = slices.DeleteFunc(e.queue, func(other *writing) bool { return other == w })
	}
}

// pump writes of the first in the queue what there is, and goes on to the next when it is done.
func (e *emitter) pump() {
	for len(e.queue) > 0 && e.write(e.queue[0]) {
		e.shown[e.queue[0].of] = true
		e.queue = e.queue[1:]
	}
}

// write writes what is new of an item, and reports whether that was all of it.
func (e *emitter) write(w *writing) bool {
	if w.tool() {
		return e.writeTool(w)
	}
	if w.whole != nil {
		whole := w.whole.Text
		if !strings.HasPrefix(whole, string(w.text[:w.sent])) { // what was written of it is not what it came to be
			e.cut(w)
			*w = writing{of: w.of, kind: w.kind, whole: w.whole}
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

// writeText writes a piece of a message or of a thought.
func (e *emitter) writeText(w *writing) {
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

// closeText ends a message or a thought with what was written of it.
func (e *emitter) closeText(w *writing, status string) {
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

// cut ends an item that was begun and is not finished.
func (e *emitter) cut(w *writing) {
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

// writeTool writes a command, an edit or another tool that the agent uses itself.
func (e *emitter) writeTool(w *writing) bool {
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

func (e *emitter) arguments(w *writing, args string) {
	if w.args {
		return
	}
	w.args = true
	e.resp.Output[w.at].Arguments = &args
	e.about(w, event{Type: evArgs, Delta: args})
	e.about(w, event{Type: evArgsDone, Arguments: &args})
}

// toolName is what a tool of the agent is called.
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

// toolArguments is what it was called with, as JSON. Those of a command are the same before and after it ran.
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

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

// An emitter turns the events of a handoff into the events of one response. It has no side effects: the same input
// gives the same output. Items are written one after another, as OpenAI does it: while the item that began first is
// written, the texts of the others wait.
type emitter struct {
	resp   response
	label  string           // the machine
	exact  bool             // the answer has to be JSON, so no other message is written
	canAsk bool             // the reader can answer questions
	now    func() time.Time // for completed_at
	shown  map[string]bool  // ids of the agent's items that were written, or must not be

	seq         int
	queue       []*openItem
	last        string     // the text of the latest message that was written
	asked       []string   // ids of the questions that the response ended with
	steeredInto handoff.ID // the handoff that the words went into
	out         []event    // since drain was called
}

// An openItem is an item in the queue: it has begun and is not written to its end.
type openItem struct {
	of    string // the agent's id
	kind  handoff.ItemKind
	text  []byte        // of a message or a reasoning, as far as it is known; of a tool, its first text
	sent  int           // how many bytes of text were written
	begun bool          // it was added to the output
	at    int           // its index in the output
	whole *handoff.Item // the finished item; nil: it is not finished
}

func (w *openItem) tool() bool {
	return w.kind != handoff.ItemMessage && w.kind != handoff.ItemReasoning
}

// over reports whether the response has ended. Then nothing more must be written.
func (e *emitter) over() bool { return ended(e.resp.Status) }

// drain returns the events that were written since it was last called.
func (e *emitter) drain() []event {
	out := e.out
	e.out = nil
	return out
}

// begin writes the first events of a stream.
func (e *emitter) begin() {
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
}

// take writes the events that follow from an event of the handoff.
func (e *emitter) take(kind handoff.EventKind, rec handoff.Record) {
	switch k := kind.(type) {
	case handoff.EventSnapshot:
		e.snapshot(k)
	case handoff.EventDoing:
		if k.ID != "" && e.find(k.ID) == nil {
			e.start(k.ID, k.Item, k.Text)
		}
	case handoff.EventDelta:
		e.delta(k)
	case handoff.EventItem:
		e.finish(k.Item)
	case handoff.EventDropped: // what was written of the item stays, with the status incomplete
		if w := e.find(k.ItemID); w != nil {
			e.cut(w)
			e.queue = slices.DeleteFunc(e.queue, func(other *openItem) bool { return other == w })
		}
	case handoff.EventUsage:
		e.used(k.Usage)
	case handoff.EventAsked:
		if e.canAsk && answerable(k.Question.Shown) {
			e.flush()
			e.ask(k.Question.Shown)
		}
	case handoff.EventSteered:
		e.steeredInto = k.Into
	case handoff.EventYielded:
		e.fail("server_error", "Another Switchboard has taken this work over.")
	case handoff.EventEnded:
		e.flush()
		e.end(rec)
	}
	if !e.over() {
		e.flush()
	}
}

// snapshot applies the items of a snapshot that are not known yet.
func (e *emitter) snapshot(s handoff.EventSnapshot) {
	for _, it := range s.Items {
		switch {
		case it.State != "running":
			e.finish(handoff.Item{
				ID: it.ID, Kind: it.Kind, Text: it.Text, Output: it.Output, Exit: it.Exit, Failed: it.State == "failed",
			})
		case e.find(it.ID) == nil:
			e.start(it.ID, it.Kind, it.Text)
		}
	}
	e.used(s.Usage)
}

func (e *emitter) used(u handoff.Usage) {
	if u != (handoff.Usage{}) {
		e.resp.Usage = &usage{Input: u.Input, Output: u.Output, Total: u.Input + u.Output}
		e.resp.Usage.InputDetails.Cached, e.resp.Usage.OutputDetails.Reasoning = u.Cached, u.Reasoning
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
	switch kind {
	case handoff.ItemMessage, handoff.ItemReasoning, handoff.ItemCommand, handoff.ItemFileChange, handoff.ItemToolCall:
	default:
		return nil
	}
	if e.shown[id] || len(e.resp.Output)+len(e.queue) >= maxItems || e.exact && kind == handoff.ItemMessage {
		return nil
	}
	w := &openItem{of: id, kind: kind, text: []byte(text)}
	e.queue = append(e.queue, w)
	return w
}

// delta adds a piece to a message or a reasoning, unless a piece before it is missing.
func (e *emitter) delta(d handoff.EventDelta) {
	w := e.find(d.ItemID)
	if w == nil && d.At == 0 {
		switch d.Kind {
		case handoff.DeltaMessage:
			w = e.start(d.ItemID, handoff.ItemMessage, "")
		case handoff.DeltaReasoning:
			w = e.start(d.ItemID, handoff.ItemReasoning, "")
		}
	}
	if w != nil && w.whole == nil && !w.tool() && d.At == len(w.text) {
		w.text = append(w.text, d.Text...)
	}
}

// finish takes a finished item.
func (e *emitter) finish(it handoff.Item) {
	w := e.find(it.ID)
	if w == nil {
		w = e.start(it.ID, it.Kind, "")
	}
	if w != nil {
		w.whole = &it
	}
}

// flush writes what there is of the first item in the queue, and when it is finished goes on with the next.
func (e *emitter) flush() {
	for len(e.queue) > 0 && e.write(e.queue[0]) {
		e.queue = e.queue[1:]
	}
}

// cutAll empties the queue: it writes finished items whole, and ends the others as incomplete.
func (e *emitter) cutAll() {
	for _, w := range e.queue {
		if (w.begun || w.whole != nil) && !e.write(w) {
			e.cut(w)
		}
	}
	e.queue = nil
}

// cut ends an item that is not finished.
func (e *emitter) cut(w *openItem) {
	switch {
	case !w.begun:
	case w.tool():
		e.arguments(w, toolArguments(w.kind, string(w.text), ""))
		e.resp.Output[w.at].Status = incomplete
		e.done(w.at)
	default:
		e.closeText(w, incomplete)
	}
}

// write writes what is new of an item, and reports whether the item is finished.
func (e *emitter) write(w *openItem) bool {
	if w.tool() {
		e.writeTool(w)
	} else {
		e.writeText(w)
	}
	if w.whole == nil {
		return false
	}
	e.shown[w.of] = true
	return true
}

// writeText writes the new text of a message or a reasoning.
func (e *emitter) writeText(w *openItem) {
	if w.whole != nil {
		whole := w.whole.Text
		if !strings.HasPrefix(whole, string(w.text[:w.sent])) { // the final text differs from what was written
			e.cut(w)
			*w = openItem{of: w.of, kind: w.kind, whole: w.whole}
		}
		w.text = append(w.text[:w.sent], whole[w.sent:]...)
	}
	if len(w.text) == 0 {
		return
	}
	types := textTypes[w.kind]
	if !w.begun {
		e.add(w, types.prefix, textItem(w.kind, inProgress))
		e.about(w, event{Type: types.added, Part: new(textPart(w.kind, ""))})
	}
	if w.sent < len(w.text) {
		e.about(w, event{Type: types.delta, Delta: string(w.text[w.sent:]), Logprobs: types.logprobs})
		w.sent = len(w.text)
	}
	if w.whole != nil {
		e.closeText(w, completed)
	}
}

// closeText ends a message or a reasoning with the text that was written.
func (e *emitter) closeText(w *openItem, status string) {
	types, text := textTypes[w.kind], string(w.text[:w.sent])
	whole, id := textPart(w.kind, text), e.resp.Output[w.at].ID
	e.resp.Output[w.at] = textItem(w.kind, status, whole)
	e.resp.Output[w.at].ID = id
	e.about(w, event{Type: types.done, Text: &text, Logprobs: types.logprobs})
	e.about(w, event{Type: types.ended, Part: &whole})
	if w.kind == handoff.ItemMessage {
		e.last = text
	}
	e.done(w.at)
}

// writeTool writes what is new of a command, an edit or another tool of the agent.
func (e *emitter) writeTool(w *openItem) {
	text := string(w.text)
	if w.whole != nil {
		text = w.whole.Text
	}
	if !w.begun {
		e.add(w, "mcp_", item{
			Type: typeCall, Status: inProgress, ServerLabel: e.label, Name: toolName(w.kind, text), Arguments: new(""),
		})
		e.about(w, event{Type: evCalling})
		if w.kind == handoff.ItemCommand {
			e.arguments(w, toolArguments(w.kind, text, ""))
		}
	}
	if w.whole == nil {
		return
	}
	e.arguments(w, toolArguments(w.kind, text, w.whole.Arguments))
	it := &e.resp.Output[w.at]
	it.Status, it.Output = completed, &w.whole.Output
	typ := evCalled
	if exit := w.whole.Exit; w.whole.Failed || exit != nil && *exit != 0 {
		it.Status, it.Error, typ = failed, new("it failed"), evCallFailed
		if exit != nil {
			it.Error = new("exit code " + strconv.Itoa(*exit))
		}
	}
	e.about(w, event{Type: typ})
	e.done(w.at)
}

// arguments writes the arguments of a tool, once.
func (e *emitter) arguments(w *openItem, args string) {
	if *e.resp.Output[w.at].Arguments != "" {
		return
	}
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
		return handoff.Encode(map[string]string{"command": text})
	case known != "" && json.Valid([]byte(known)):
		return known
	case kind == handoff.ItemFileChange:
		return handoff.Encode(map[string][]string{"paths": strings.Split(text, "\n")})
	}
	return "{}"
}

// add adds an item to the output.
func (e *emitter) add(w *openItem, prefix string, it item) {
	w.begun, w.at = true, len(e.resp.Output)
	it.ID = prefix + strings.TrimPrefix(e.resp.ID, responsePrefix) + "_" + strconv.Itoa(w.at)
	e.append(it)
}

func (e *emitter) append(it item) {
	e.resp.Output = append(e.resp.Output, it)
	e.emit(event{Type: evAdded, OutputIndex: new(len(e.resp.Output) - 1), Item: &it})
}

// done closes an item of the output.
func (e *emitter) done(at int) {
	e.emit(event{Type: evDone, OutputIndex: &at, Item: new(e.resp.Output[at])})
}

// about writes an event about an item.
func (e *emitter) about(w *openItem, ev event) {
	ev.ItemID, ev.OutputIndex = e.resp.Output[w.at].ID, new(w.at)
	switch w.kind {
	case handoff.ItemMessage:
		ev.ContentIndex = new(0)
	case handoff.ItemReasoning:
		ev.SummaryIndex = new(0)
	}
	e.emit(ev)
}

func (e *emitter) emit(ev event) {
	ev.Seq = e.seq
	e.seq++
	e.out = append(e.out, ev)
}

// lifecycle writes an event with the present response.
func (e *emitter) lifecycle(typ string) {
	now := e.resp
	now.Output = append([]item{}, e.resp.Output...)
	e.emit(event{Type: typ, Response: &now})
}

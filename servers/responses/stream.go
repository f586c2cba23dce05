package responses

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"switchboard/handoff"
	"switchboard/servers/responses/wire"
)

// maxAnswerItems bounds the items of one response.
const maxAnswerItems = 512

// An answer is one complete response of a model.
type answer struct {
	ID         string
	Incomplete bool              // cut short by a limit of the server
	Items      []json.RawMessage // in order; each with an id that is unique in its turn
	Rest       []json.RawMessage // those that were not stored while the stream was read
	Usage      handoff.Usage
}

// calls returns the tool calls of the answer, in order.
func (a answer) calls() []wire.Item {
	var calls []wire.Item
	for _, it := range a.Items {
		if s := wire.Read(it); s.IsCall() && !slices.ContainsFunc(calls,
			func(c wire.Item) bool { return c.CallID == s.CallID }) {
			calls = append(calls, s)
		}
	}
	return calls
}

// A progress is told the parts of an answer while it is read.
type progress interface {
	began(it handoff.Item)
	delta(item string, kind handoff.DeltaKind, text string)
	finished(it handoff.Item)
}

// A listener receives an answer while it is read.
type listener struct {
	progress
	name  func(given string) string     // returns the id in the turn of an item with a given id
	begin func() error                  // called once, before anything of the answer is published or stored
	keep  func([]json.RawMessage) error // stores items before they are published
}

// A reader reads the events of one response. It identifies items by their output_index, never by the event before:
// some servers write several items at once.
type reader struct {
	to    listener          // Set once
	items map[int]*readItem // by output_index
	begun bool              // the answer has begun
	done  bool              // the response is complete
	answer
}

// A readItem is an item of a response while it is read.
type readItem struct {
	id   string          // in the turn
	part *part           // the newest part of reasoning; nil: none
	json json.RawMessage // nil until the item is finished
	kept bool            // it was stored
}

// thoughtDelta is the event with a piece of raw reasoning, rather than of its summary.
const thoughtDelta = "response.reasoning_text.delta"

// A part is a part of reasoning. Some servers send both the raw reasoning and its summary; the one that begins first
// is shown.
type part struct {
	raw bool // of the raw reasoning, not of its summary
	n   int
}

func newReader(to listener) *reader { return &reader{to: to, items: map[int]*readItem{}} }

// event has the fields of an event that we need. Fields whose type depends on the event stay raw.
type event struct {
	Type     string          `json:"type"`
	Index    int             `json:"output_index"`
	Content  int             `json:"content_index"`
	Summary  int             `json:"summary_index"`
	Delta    json.RawMessage `json:"delta"`
	Item     json.RawMessage `json:"item"`
	Response json.RawMessage `json:"response"`
	wireFault
	Error *wireFault `json:"error"`
}

// wireFault is an error in an event.
type wireFault struct {
	Code    json.RawMessage `json:"code"` // some servers send numbers
	Message json.RawMessage `json:"message"`
}

// wireResponse has the fields of a response that we need.
type wireResponse struct {
	ID     string            `json:"id"`
	Status string            `json:"status"`
	Output []json.RawMessage `json:"output"`
	Usage  json.RawMessage   `json:"usage"`
	Error  *wireFault        `json:"error"`
}

// text returns a value that should be a string.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// errBroken is the error of an invalid stream.
var errBroken = errors.New("the model's answer cannot be read")

// take handles one event. An error ends the stream.
func (r *reader) take(data []byte) error {
	var e event
	if handoff.TooDeep(data) || json.Unmarshal(data, &e) != nil || e.Index < 0 || e.Index >= maxAnswerItems {
		if string(data) == "[DONE]" || string(data) == "[DONE]\n" {
			return nil
		}
		return errBroken
	}
	switch e.Type {
	case "response.created", "response.in_progress", "response.queued":
		var w wireResponse
		if json.Unmarshal(e.Response, &w) == nil {
			r.ID = cmp.Or(w.ID, r.ID)
		}
	case "response.output_item.added":
		return r.added(e.Index, wire.Read(e.Item))
	case "response.output_item.done":
		return r.finish(e.Index, e.Item)
	case "response.output_text.delta", "response.refusal.delta":
		return r.textDelta(e, handoff.DeltaMessage)
	case "response.reasoning_summary_text.delta", thoughtDelta:
		return r.textDelta(e, handoff.DeltaReasoning)
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return r.end(e.Type, e.Response)
	case "error":
		if e.Error == nil {
			e.Error = &e.wireFault
		}
		return refused(0, text(e.Error.Code), text(e.Error.Message))
	}
	return nil // unknown events are ignored
}

// item returns the item at an output_index. given is its id, if it is known by now.
func (r *reader) item(index int, given string) *readItem {
	it := r.items[index]
	if it == nil {
		it = &readItem{id: r.to.name(given)}
		r.items[index] = it
	}
	return it
}

// begin is called before any part of the answer is published.
func (r *reader) begin() error {
	if r.begun {
		return nil
	}
	r.begun = true
	return r.to.begin()
}

func (r *reader) added(index int, s wire.Item) error {
	if err := r.begin(); err != nil {
		return err
	}
	if it, ok := shown(s, r.item(index, s.ID).id); ok {
		it.Text = ""
		r.to.began(it)
	}
	return nil
}

func (r *reader) textDelta(e event, kind handoff.DeltaKind) error {
	if err := r.begin(); err != nil {
		return err
	}
	piece, it := text(e.Delta), r.item(e.Index, "")
	if kind == handoff.DeltaReasoning && piece != "" {
		now := part{e.Type == thoughtDelta, e.Content + e.Summary} // an event has only one of both indices
		switch {
		case it.part != nil && it.part.raw != now.raw:
			return nil
		case it.part != nil && *it.part != now:
			piece = wire.Paragraph + piece
		}
		it.part = &now
	}
	r.to.delta(it.id, kind, piece)
	return nil
}

// finish handles a finished item. A message is stored before it is published.
func (r *reader) finish(index int, item json.RawMessage) error {
	if err := r.begin(); err != nil {
		return err
	}
	s := wire.Read(item)
	if s.Type == "" {
		return nil
	}
	it := r.item(index, s.ID)
	if it.json != nil {
		return nil
	}
	it.json = slices.Clone(item)
	if it.id != s.ID {
		var fields map[string]json.RawMessage
		_ = json.Unmarshal(item, &fields) // wire.Read has parsed it
		fields["id"] = wire.Encode(it.id)
		it.json = wire.Encode(fields)
	}
	if s.Type == wire.Message {
		if err := r.to.keep(r.unkept(wire.Message, wire.Reasoning)); err != nil {
			return err
		}
	}
	if it.part != nil && it.part.raw {
		s.Summary = nil
	}
	if shown, ok := shown(s, it.id); ok {
		r.to.finished(shown)
	}
	return nil
}

// unkept returns the finished items that are not stored yet, in order, and marks them as stored. With types it is
// limited to items of these types.
func (r *reader) unkept(types ...string) []json.RawMessage {
	var items []json.RawMessage
	for _, it := range r.finished() {
		if !it.kept && (len(types) == 0 || slices.Contains(types, wire.Read(it.json).Type)) {
			it.kept = true
			items = append(items, it.json)
		}
	}
	return items
}

// finished returns the finished items, in order.
func (r *reader) finished() []*readItem {
	var all []*readItem
	for _, index := range slices.Sorted(maps.Keys(r.items)) {
		if it := r.items[index]; it.json != nil {
			all = append(all, it)
		}
	}
	return all
}

// end handles the event with the whole response, which has the items that other events left out.
func (r *reader) end(kind string, raw json.RawMessage) error {
	var w wireResponse
	if json.Unmarshal(raw, &w) != nil {
		return errBroken
	}
	return r.whole(kind, w)
}

// whole handles a whole response.
func (r *reader) whole(kind string, w wireResponse) error {
	switch {
	case kind == "response.failed" && w.Error != nil:
		return refused(0, text(w.Error.Code), text(w.Error.Message))
	case kind == "response.failed" || kind == "response.cancelled":
		return refused(0, "server_error", "the response "+kind[len("response."):])
	case kind != "response.completed" && kind != "response.incomplete":
		return errBroken
	case len(w.Output) > maxAnswerItems:
		return errBroken
	}
	if err := r.begin(); err != nil {
		return err
	}
	for index, item := range w.Output {
		if err := r.finish(index, item); err != nil {
			return err
		}
	}
	for _, it := range r.finished() {
		r.Items = append(r.Items, it.json)
	}
	r.Rest = r.unkept()
	r.ID = cmp.Or(w.ID, r.ID)
	r.Incomplete = kind == "response.incomplete"
	r.Usage = usageOf(w.Usage)
	r.done = true
	return nil
}

// shown returns an item of a model as it is shown; false for calls, which are shown when they run.
func shown(s wire.Item, id string) (handoff.Item, bool) {
	switch {
	case s.Type == wire.Message:
		return handoff.Item{ID: id, Kind: handoff.ItemMessage, Text: s.Text()}, true
	case s.Type == wire.Reasoning:
		return handoff.Item{ID: id, Kind: handoff.ItemReasoning, Text: s.Text()}, true
	case s.Type == "" || s.IsCall() || s.IsOutput():
		return handoff.Item{}, false
	}
	return handoff.Item{ID: id, Kind: handoff.ItemOther, Text: s.Type}, true
}

// names gives items ids that are unique in a turn. Some servers reuse ids in the next response, or give none.
type names struct {
	used map[string]bool
}

func (n *names) name(given string) string {
	if n.used == nil {
		n.used = map[string]bool{}
	}
	id := given
	for i := len(n.used); id == "" || n.used[id]; i++ {
		id = fmt.Sprint("item_", i)
	}
	n.used[id] = true
	return id
}

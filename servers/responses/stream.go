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
	Usage      usage
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
	to    listener                // Set once
	ids   map[int]string          // ids of items, by output_index
	items map[int]json.RawMessage // finished items, by output_index
	kept  map[int]bool            // items that were stored, by output_index
	parts map[int]part            // the newest part of reasoning items, by output_index
	begun bool                    // the answer has begun
	done  bool                    // the response is complete
	answer
}

// thoughtDelta is the event with a piece of raw reasoning, rather than of its summary.
const thoughtDelta = "response.reasoning_text.delta"

// A part is a part of reasoning. Some servers send both the raw reasoning and its summary; the one that begins first
// is shown.
type part struct {
	raw bool // of the raw reasoning, not of its summary
	n   int
}

func newReader(to listener) *reader {
	return &reader{to: to, ids: map[int]string{}, items: map[int]json.RawMessage{}, kept: map[int]bool{},
		parts: map[int]part{}}
}

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

// id returns the id in the turn of the item at an output_index.
func (r *reader) id(index int, given string) string {
	if r.ids[index] == "" {
		r.ids[index] = r.to.name(given)
	}
	return r.ids[index]
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
	if it, ok := shown(s, r.id(index, s.ID)); ok {
		it.Text = ""
		r.to.began(it)
	}
	return nil
}

func (r *reader) textDelta(e event, kind handoff.DeltaKind) error {
	if err := r.begin(); err != nil {
		return err
	}
	piece := text(e.Delta)
	if kind == handoff.DeltaReasoning && piece != "" {
		now := part{e.Type == thoughtDelta, e.Content + e.Summary} // an event has only one of both indices
		switch last, begun := r.parts[e.Index]; {
		case begun && last.raw != now.raw:
			return nil
		case begun && last != now:
			piece = wire.Paragraph + piece
		}
		r.parts[e.Index] = now
	}
	r.to.delta(r.id(e.Index, ""), kind, piece)
	return nil
}

// finish handles a finished item. A message is stored before it is published.
func (r *reader) finish(index int, item json.RawMessage) error {
	if err := r.begin(); err != nil {
		return err
	}
	s := wire.Read(item)
	if s.Type == "" || r.items[index] != nil {
		return nil
	}
	id := r.id(index, s.ID)
	if id != s.ID {
		var fields map[string]json.RawMessage
		if json.Unmarshal(item, &fields) != nil {
			return nil
		}
		fields["id"] = wire.Encode(id)
		item = wire.Encode(fields)
	}
	r.items[index] = slices.Clone(item)
	if s.Type == wire.Message {
		if err := r.to.keep(r.unkept(wire.Message, wire.Reasoning)); err != nil {
			return err
		}
	}
	if r.parts[index].raw {
		s.Summary = nil
	}
	if it, ok := shown(s, id); ok {
		r.to.finished(it)
	}
	return nil
}

// unkept returns the finished items that are not stored yet, in order, and marks them as stored. With types it is
// limited to items of these types.
func (r *reader) unkept(types ...string) []json.RawMessage {
	var items []json.RawMessage
	for _, index := range slices.Sorted(maps.Keys(r.items)) {
		if r.kept[index] || len(types) > 0 && !slices.Contains(types, wire.Read(r.items[index]).Type) {
			continue
		}
		r.kept[index] = true
		items = append(items, r.items[index])
	}
	return items
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
	for _, index := range slices.Sorted(maps.Keys(r.items)) {
		r.Items = append(r.Items, r.items[index])
	}
	r.Rest = r.unkept()
	r.ID = cmp.Or(w.ID, r.ID)
	r.Incomplete = kind == "response.incomplete"
	r.Usage = usageOf(slices.Clone(w.Usage))
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

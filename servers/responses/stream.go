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

// An answer is one response of a model that came to its end.
type answer struct {
	ID         string
	Incomplete bool              // it was cut short by a limit of the server
	Items      []json.RawMessage // in order; each has an id that is unique in its turn
	Rest       []json.RawMessage // those that were not kept while the stream was read
	Usage      usage
}

// calls returns what the model wants to be run, in order.
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

// A progress is told what an answer says while it is read.
type progress interface {
	began(it handoff.Item)
	delta(item string, kind handoff.DeltaKind, text string)
	finished(it handoff.Item)
}

// A listener is the receiver of an answer.
type listener struct {
	progress
	name func(given string) string // gives an item the id that it has in the turn
	// called once, before anything of the answer is told or kept: the model has read its input
	hear func() error
	keep func([]json.RawMessage) error // writes items down before they are told
}

// A reader reads the events of one response. It knows items by their place, never by what came before: some servers
// write several at once.
type reader struct {
	to    listener                // Set once
	ids   map[int]string          // of items, by place
	items map[int]json.RawMessage // finished, by place
	kept  map[int]bool            // written down already
	parts map[int]part            // of thoughts, by place: which was told last
	heard bool                    // something of the answer itself was told
	done  bool                    // it came to its end
	answer
}

const thoughtDelta = "response.reasoning_text.delta"

// A part is one of a thought's. Some servers tell a thought and its summary; what begins first is told.
type part struct {
	raw bool // of the thought itself
	n   int
}

func newReader(to listener) *reader {
	return &reader{to: to, ids: map[int]string{}, items: map[int]json.RawMessage{}, kept: map[int]bool{},
		parts: map[int]part{}}
}

// event has the fields of an event that matter. Fields whose type differs from one event to the next stay raw.
type event struct {
	Type     string          `json:"type"`
	Place    int             `json:"output_index"`
	Content  int             `json:"content_index"`
	Summary  int             `json:"summary_index"`
	Delta    json.RawMessage `json:"delta"`
	Item     json.RawMessage `json:"item"`
	Response json.RawMessage `json:"response"`
	wireFault
	Error *wireFault `json:"error"`
}

// wireFault is how a server says what went wrong.
type wireFault struct {
	Code    json.RawMessage `json:"code"` // some servers send numbers
	Message json.RawMessage `json:"message"`
}

// wireResponse has the fields of a response that matter.
type wireResponse struct {
	ID     string            `json:"id"`
	Status string            `json:"status"`
	Output []json.RawMessage `json:"output"`
	Usage  json.RawMessage   `json:"usage"`
	Error  *wireFault        `json:"error"`
}

// text reads a value that should be a string.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// errBroken is the error of a stream that is not valid.
var errBroken = errors.New("the model's answer cannot be read")

// take reads one event. An error ends the stream.
func (r *reader) take(data []byte) error {
	var e event
	if handoff.TooDeep(data) || json.Unmarshal(data, &e) != nil || e.Place < 0 || e.Place >= maxAnswerItems {
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
		return r.added(e.Place, wire.Read(e.Item))
	case "response.output_item.done":
		return r.finish(e.Place, e.Item)
	case "response.output_text.delta", "response.refusal.delta":
		return r.piece(e, handoff.DeltaMessage)
	case "response.reasoning_summary_text.delta", thoughtDelta:
		return r.piece(e, handoff.DeltaReasoning)
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return r.end(e.Type, e.Response)
	case "error":
		if e.Error == nil {
			e.Error = &e.wireFault
		}
		return refused(0, text(e.Error.Code), text(e.Error.Message))
	}
	return nil // unknown events change nothing
}

// id returns the id of the item at a place.
func (r *reader) id(place int, given string) string {
	if r.ids[place] == "" {
		r.ids[place] = r.to.name(given)
	}
	return r.ids[place]
}

// hear is called before anything of the answer is told.
func (r *reader) hear() error {
	if r.heard {
		return nil
	}
	r.heard = true
	return r.to.hear()
}

func (r *reader) added(place int, s wire.Item) error {
	if err := r.hear(); err != nil {
		return err
	}
	if it, ok := shown(s, r.id(place, s.ID)); ok {
		it.Text = ""
		r.to.began(it)
	}
	return nil
}

func (r *reader) piece(e event, kind handoff.DeltaKind) error {
	if err := r.hear(); err != nil {
		return err
	}
	said := text(e.Delta)
	if kind == handoff.DeltaReasoning && said != "" {
		now := part{e.Type == thoughtDelta, e.Content + e.Summary} // an event has one of them
		switch last, begun := r.parts[e.Place]; {
		case begun && last.raw != now.raw:
			return nil
		case begun && last != now:
			said = wire.Paragraph + said
		}
		r.parts[e.Place] = now
	}
	r.to.delta(r.id(e.Place, ""), kind, said)
	return nil
}

// finish takes a finished item under its id in the turn. A message is written down before anybody is told it.
func (r *reader) finish(place int, item json.RawMessage) error {
	if err := r.hear(); err != nil {
		return err
	}
	s := wire.Read(item)
	if s.Type == "" || r.items[place] != nil {
		return nil
	}
	id := r.id(place, s.ID)
	if id != s.ID {
		var fields map[string]json.RawMessage
		if json.Unmarshal(item, &fields) != nil {
			return nil
		}
		fields["id"] = wire.Encode(id)
		item = wire.Encode(fields)
	}
	r.items[place] = slices.Clone(item)
	if s.Type == wire.Message {
		if err := r.to.keep(r.unkept(wire.Message, wire.Reasoning)); err != nil {
			return err
		}
	}
	if r.parts[place].raw {
		s.Summary = nil
	}
	if it, ok := shown(s, id); ok {
		r.to.finished(it)
	}
	return nil
}

// unkept returns the finished items that were not written down, in order, of these types alone (none: of all). Now
// they are.
func (r *reader) unkept(types ...string) []json.RawMessage {
	var items []json.RawMessage
	for _, place := range slices.Sorted(maps.Keys(r.items)) {
		if r.kept[place] || len(types) > 0 && !slices.Contains(types, wire.Read(r.items[place]).Type) {
			continue
		}
		r.kept[place] = true
		items = append(items, r.items[place])
	}
	return items
}

// end takes the response as a whole, which has the items that the events left out.
func (r *reader) end(kind string, raw json.RawMessage) error {
	var w wireResponse
	if json.Unmarshal(raw, &w) != nil {
		return errBroken
	}
	return r.whole(kind, w)
}

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
	if err := r.hear(); err != nil {
		return err
	}
	for place, item := range w.Output {
		if err := r.finish(place, item); err != nil {
			return err
		}
	}
	for _, place := range slices.Sorted(maps.Keys(r.items)) {
		r.Items = append(r.Items, r.items[place])
	}
	r.Rest = r.unkept()
	r.ID = cmp.Or(w.ID, r.ID)
	r.Incomplete = kind == "response.incomplete"
	r.Usage = usageOf(slices.Clone(w.Usage))
	r.done = true
	return nil
}

// shown puts an item of a model into words; false for calls, which are told when they run.
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

// A names gives the items of one turn ids that are unique in it. Some servers begin anew with each response, or
// give none.
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

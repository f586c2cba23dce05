package realtime

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"switchboard/realtime/events"

	"github.com/tidwall/gjson"
)

const (
	// tagOut marks the client's out-of-band responses, which need no floor.
	tagOut = "out"
	// askOfClient begins the tags of the client's other asks.
	askOfClient = "c"
	// maxOpen bounds responses that are begun or asked for and not done.
	maxOpen = 1024
	// maxMetadata is how many pairs a response's metadata may have (API reference).
	maxMetadata = 16
)

type rawJSON = json.RawMessage

// A mask keeps our part of a session out of the client's sight and puts it before the model. It is pure:
// events come in and go out as raw JSON, patched where needed and otherwise the same bytes.
type mask struct {
	ids     *events.Names
	items   items
	session session
	asks    int                 // of the client
	special map[string][]string // our tools in asks with tools of their own, by tag
	owned   map[string][]string // our tools in responses that run, by response id
	out     map[string]bool     // out-of-band responses that run
	current string              // newest response of the default conversation
}

func newMask(ids *events.Names) *mask {
	return &mask{
		ids: ids, items: newItems(), session: newSession(),
		special: map[string][]string{}, owned: map[string][]string{}, out: map[string]bool{},
	}
}

// full tells that the model leaves more open than a call can have.
func (m *mask) full() bool {
	return m.items.full() || len(m.owned)+len(m.out)+len(m.special) > maxOpen
}

// A verdict is what becomes of a client's event.
type verdict struct {
	forward []byte // to the model, or nil
	reply   []byte // to the client instead, or nil
	crowded bool   // it was refused because too much waits
	leaked  bool   // an output for a request of ours was dropped
}

// fromClient judges any event but response.create.
func (m *mask) fromClient(kind string, event []byte) verdict {
	switch kind {
	case events.TypeSessionUpdate:
		id := gjson.GetBytes(event, "event_id").String()
		if m.session.full(len(event)) {
			return verdict{crowded: true, reply: events.Error(m.ids.Next(), events.Fault{
				Kind: "invalid_request_error", Code: "rate_limit_exceeded", Message: "Too many session updates are waiting.", EventID: id,
			})}
		}
		if id == "" {
			id = m.ids.Next()
			event = set(event, "event_id", quote(id))
		}
		return verdict{forward: m.session.change(event, id)}
	case events.TypeItemCreate:
		switch it := events.ReadItem(gjson.GetBytes(event, "item")); {
		case it.Kind == events.ItemOutput && m.items.calls[it.CallID]:
			return verdict{leaked: true}
		case it.Kind == events.ItemCall:
			m.items.restore(it)
		}
	case events.TypeItemRetrieve, events.TypeItemDelete, events.TypeItemTruncate:
		if id := gjson.GetBytes(event, "item_id").String(); m.items.hidden[id] {
			return verdict{reply: events.Error(m.ids.Next(), events.Fault{
				Kind: "invalid_request_error", Code: "item_not_found", Param: "item_id",
				Message: "Item with item_id '" + id + "' does not exist.", EventID: gjson.GetBytes(event, "event_id").String(),
			})}
		}
	}
	return verdict{forward: event}
}

// ask patches the client's response.create: its tag, and our tools beside its own. An out-of-band one
// gets the client's tools alone, for its requests could not be answered.
func (m *mask) ask(event []byte) (patched []byte, tag string) {
	r := gjson.GetBytes(event, "response")
	if r.Exists() && r.Type != gjson.Null && !r.IsObject() {
		m.asks++
		return event, askOfClient + strconv.Itoa(m.asks) // the model says what is wrong with it
	}
	if tag = tagOut; r.Get("conversation").String() != "none" {
		m.asks++
		tag = askOfClient + strconv.Itoa(m.asks)
	}
	event = m.askTools(event, r, tag)
	metadata := r.Get("metadata")
	switch {
	case metadata.IsObject() && len(metadata.Map()) < maxMetadata:
		event = set(event, "response.metadata."+events.TagKey, quote(tag))
	case !metadata.Exists() || metadata.Type == gjson.Null:
		event = set(event, "response.metadata", `{"`+events.TagKey+`":"`+tag+`"}`)
	}
	return event, tag
}

func (m *mask) askTools(event []byte, r gjson.Result, tag string) []byte {
	s := &m.session
	if s.foreign {
		return event
	}
	forced := s.now.forced
	if choice := r.Get("tool_choice"); choice.Exists() && choice.Type != gjson.Null {
		forced = forces(choice)
	}
	tools := r.Get("tools")
	switch {
	case tools.IsArray() && tag != tagOut:
		ours := s.allowed(tools.Raw, forced)
		m.special[tag] = ours
		if len(ours) > 0 {
			event = set(event, "response.tools", s.join(tools.Raw, ours))
		}
	case (tag == tagOut || forced) && !tools.Exists() && len(s.now.ours) > 0:
		if tag != tagOut {
			m.special[tag] = nil
		}
		event = set(event, "response.tools", s.join(s.now.tools, nil))
	}
	return event
}

// fromModel returns what the client sees of a model's event, or nil. It is given every event in order,
// but audio deltas.
func (m *mask) fromModel(kind string, event []byte) []byte {
	switch kind {
	case events.TypeSessionCreated:
		return event // before anything of ours
	case events.TypeSessionUpdated:
		m.session.learn(gjson.GetBytes(event, "session"))
		return m.session.show(event)
	case events.TypeCreated, events.TypeDone:
		return m.response(kind, event)
	case events.TypeOutputAdded, events.TypeOutputDone:
		if m.claim(events.ReadItem(gjson.GetBytes(event, "item")), gjson.GetBytes(event, "response_id").String()) {
			return nil
		}
		return event
	case events.TypeItemAdded, events.TypeItemCreated, events.TypeItemDone, "conversation.item.retrieved":
		it := events.ReadItem(gjson.GetBytes(event, "item"))
		hidden := m.inConversation(it)
		event = m.unheard(event)
		if kind != "conversation.item.retrieved" {
			m.items.place(it.ID, gjson.GetBytes(event, "previous_item_id"))
		}
		if hidden {
			return nil
		}
		return m.items.repoint(event)
	case events.TypeError:
		return event
	}
	if strings.HasPrefix(kind, events.TypeTranscription) && m.session.now.transcribing {
		return nil
	}
	if id := gjson.GetBytes(event, "item_id"); id.Exists() && m.items.hidden[id.String()] {
		return nil
	}
	return m.items.repoint(event)
}

// unheard takes out of an item the words of the caller that only our transcription put there.
func (m *mask) unheard(event []byte) []byte {
	if !m.session.now.transcribing {
		return event
	}
	for i, part := range gjson.GetBytes(event, "item.content").Array() {
		if part.Get("type").String() == "input_audio" && part.Get("transcript").Type == gjson.String {
			event = set(event, "item.content."+strconv.Itoa(i)+".transcript", "null")
		}
	}
	return event
}

// claim tells whether an item that a response put out is ours, and remembers it. Only these are requests: what
// else stands in the conversation may be a client's history.
func (m *mask) claim(it events.Item, response string) bool {
	ours := m.items.hidden[it.ID]
	if it.Kind == events.ItemCall && (ours || slices.Contains(m.tools(response), it.Name)) {
		ours = true
		m.items.request(it)
	}
	return m.hide(it, ours)
}

// inConversation tells whether an item that is told without its response is to be hidden. Some servers tell
// of a request here first, while its response runs.
func (m *mask) inConversation(it events.Item) bool {
	ours := m.items.hidden[it.ID]
	switch it.Kind {
	case events.ItemCall:
		_, runs := m.owned[m.current]
		ours = ours || runs && !m.items.restored(it) && slices.Contains(m.tools(m.current), it.Name)
	case events.ItemOutput:
		ours = ours || m.items.calls[it.CallID]
	}
	return m.hide(it, ours)
}

func (m *mask) hide(it events.Item, ours bool) bool {
	if ours {
		m.items.hide(it.ID)
	}
	return ours
}

// tools names our tools in a response.
func (m *mask) tools(response string) []string {
	if m.out[response] {
		return nil
	}
	if ours, ok := m.owned[response]; ok {
		return ours
	}
	return m.session.standing()
}

// standing names our tools that the model may call now: those before the oldest unacknowledged update
// and those after the newest.
func (s *session) standing() []string {
	if len(s.updates) == 0 {
		return s.now.ours
	}
	return append(slices.Clone(s.updates[0].before.ours), s.now.ours...)
}

// tag returns the tag of a response.
func tagOf(response gjson.Result) string {
	return response.Get("metadata." + events.TagKey).String()
}

// response shows response.created and response.done without our tag, tools, instructions and items.
func (m *mask) response(kind string, event []byte) []byte {
	r := gjson.GetBytes(event, "response")
	id, tag := r.Get("id").String(), tagOf(r)
	if kind == events.TypeCreated {
		m.begin(id, tag)
	}
	for _, raw := range r.Get("output").Array() {
		m.claim(events.ReadItem(raw), id)
	}
	if output, dropped := m.items.filter(r.Get("output")); dropped {
		event = set(event, "response.output", output)
	}
	if tag != "" {
		if len(r.Get("metadata").Map()) == 1 {
			event = set(event, "response.metadata", "null")
		} else {
			event = remove(event, "response.metadata."+events.TagKey)
		}
	}
	if tools := r.Get("tools"); tools.IsArray() {
		if kept, dropped := without(tools, m.tools(id)); dropped {
			event = set(event, "response.tools", kept)
		}
	}
	if s := &m.session; s.now.instructing && s.guide != "" && strings.HasPrefix(r.Get("instructions").String(), s.guide) {
		event = restore(event, "response.instructions", s.original.instructions)
	}
	if kind == events.TypeDone {
		delete(m.owned, id)
		delete(m.out, id)
	}
	return event
}

func (m *mask) begin(id, tag string) {
	if tag == tagOut {
		m.out[id] = true
		return
	}
	m.current = id
	ours, special := m.special[tag]
	if special {
		delete(m.special, tag)
	} else {
		ours = m.session.standing()
	}
	m.owned[id] = ours
}

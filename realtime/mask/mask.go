package mask

import (
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// maxOpen bounds responses that are begun or asked for and not done.
const maxOpen = 1024

// A Mask is the mask of one call. It may be used from one goroutine at a time.
type Mask struct {
	session // what the client and the model have of it, and what a call asks about it

	ids     *events.Names
	items   items
	asks    int                 // of the client
	special map[string][]string // our tools in asks with tools of their own, by tag
	pairs   map[string]pair     // of the client's metadata, which our tag took the place of, by tag
	owned   map[string][]string // our tools in responses that run, by response id
	out     map[string]bool     // out-of-band responses that run
	current string              // newest response of the default conversation
	renewed map[string]bool     // items that a new session was given again and has not confirmed
}

// New returns a mask that names our events from ids and gives the model these tools, and the guide to them.
func New(ids *events.Names, tools []handoff.Tool, guide handoff.Guide) *Mask {
	return &Mask{
		ids: ids, items: newItems(), session: session{
			additions: additions{tools: tools, guide: guide.Whole, added: guide.Added}, set: unique.Make(""),
		},
		special: map[string][]string{}, pairs: map[string]pair{}, owned: map[string][]string{}, out: map[string]bool{},
		renewed: map[string]bool{},
	}
}

// Full reports whether the model leaves more open, or more was hidden, than a call can have. What is hidden a client
// must never see, so none of it is forgotten.
func (m *Mask) Full() bool {
	return m.items.bytes > maxHidden || len(m.owned)+len(m.out)+len(m.special)+len(m.pairs) > maxOpen
}

// Current returns the newest response of the default conversation, or "".
func (m *Mask) Current() string { return m.current }

// Hide keeps an item that we are about to put into the conversation from the client.
func (m *Mask) Hide(item string) { m.items.hide(item) }

// A Decision is what becomes of an event of the client.
type Decision struct {
	Forward []byte // to the model, or nil
	Reply   []byte // to the client instead, or nil
	Crowded bool   // it was refused because too much waits
	Leaked  bool   // an output for a function call of ours was dropped
}

// FromClient decides about any event of the client but response.create and sound.
func (m *Mask) FromClient(kind string, event []byte) Decision {
	switch kind {
	case events.TypeSessionUpdate:
		if gjson.GetBytes(event, "session.type").String() == "transcription" && !m.session.foreign {
			return Decision{Reply: m.refusal(event, events.Fault{
				Code: "invalid_value", Param: "session.type",
				Message: "session.type is realtime: a session that only transcribes has no voice that could hand anything over.",
			})}
		}
		id := gjson.GetBytes(event, "event_id").String()
		if m.session.full(len(event)) {
			return Decision{Crowded: true, Reply: m.refusal(event, events.Fault{
				Code: "rate_limit_exceeded", Message: "Too many session updates are waiting.",
			})}
		}
		if id == "" {
			id = m.ids.Next()
			event = events.Set(event, "event_id", events.Quote(id))
		}
		return Decision{Forward: m.session.change(event, id)}
	case events.TypeItemCreate:
		switch it := events.ReadItem(gjson.GetBytes(event, "item")); {
		case it.Kind == events.ItemOutput && m.items.calls[it.CallID]:
			return Decision{Leaked: true}
		case it.Kind == events.ItemCall:
			m.items.restore(it)
		}
	case events.TypeItemRetrieve, events.TypeItemDelete, events.TypeItemTruncate:
		if id := gjson.GetBytes(event, "item_id").String(); m.items.hidden[id] {
			return Decision{Reply: m.refusal(event, events.Fault{
				Code: "item_not_found", Param: "item_id", Message: "Item with item_id '" + id + "' does not exist.",
			})}
		}
	}
	return Decision{Forward: event}
}

// refusal is the error that refuses an event of the client.
func (m *Mask) refusal(event []byte, f events.Fault) []byte {
	f.Kind, f.EventID = "invalid_request_error", gjson.GetBytes(event, "event_id").String()
	return events.Error(m.ids.Next(), f)
}

// Formats takes the update by which the client's leg sets the sound that it carries. The client set nothing by it,
// and sees nothing of it.
func (m *Mask) Formats(event []byte) []byte { return m.unasked(event, byLeg) }

// Opening takes the update that the client's session begins with. The client sees its effect in session.created, which
// waits for it.
func (m *Mask) Opening(event []byte) []byte { return m.unasked(event, byOffer) }

func (m *Mask) unasked(event []byte, by author) []byte {
	id := gjson.GetBytes(event, "event_id").String()
	if id == "" {
		id = m.ids.Next()
		event = events.Set(event, "event_id", events.Quote(id))
	}
	event = m.session.change(events.Set(event, "type", events.Quote(events.TypeSessionUpdate)), id)
	m.session.updates[len(m.session.updates)-1].by = by
	return event
}

// Release lets a client see its session that waited for too long; nil: it did not wait.
func (m *Mask) Release() []byte { return m.session.release() }

// FromModel returns what the client sees of a model's event, and updates of ours for the model, which
// follow when its session begins. It is given every event in order but sound and errors.
func (m *Mask) FromModel(kind string, event []byte) (shown, updates [][]byte) {
	switch kind {
	case events.TypeSessionCreated: // before anything of ours
		updates = m.session.begin(event, m.ids)
		if m.session.awaiting {
			m.session.held = event
			return nil, updates
		}
		return [][]byte{event}, updates
	case events.TypeSessionUpdated:
		return m.session.show(event), nil
	}
	if event = m.show(kind, event); event == nil {
		return nil, nil
	}
	return [][]byte{event}, nil
}

// A Refusal is what follows from a session update that the model refused.
type Refusal struct {
	Shown   []byte   // what the client sees of the error, or nil
	Again   [][]byte // what the model is to be sent now
	Leg     bool     // it was the update of the client's leg, which alone is told
	Opening bool     // it was the one that the client's session begins with
	Tools   bool     // it was ours, and with it our tools
	Words   bool     // it was ours, and with it the transcription of the caller
	Heir    bool     // it was what a new session begins with; without Again there is nothing more to try
}

// Refused takes an error of the model, which names the event with this id or none. False: it is not about a session
// update.
func (m *Mask) Refused(id string, event []byte) (Refusal, bool) {
	refused, again := m.session.reject(id, gjson.GetBytes(event, "error"), m.ids)
	if refused == nil {
		return Refusal{}, false
	}
	r := Refusal{Again: again, Leg: refused.by == byLeg, Heir: refused.by == byHeir}
	if refused.by == byUs {
		r.Words = refused.change.transcribing != nil
		r.Tools = !r.Words && !refused.change.reasoning
	}
	switch {
	case refused.by == byUs, refused.by == byHeir, refused.resent:
	case m.ids.Own(id): // the client gave it none
		r.Shown = events.Set(event, "error.event_id", "null")
	default:
		r.Shown = event
	}
	r.Opening = refused.by == byOffer && !refused.resent
	return r, true
}

func (m *Mask) show(kind string, event []byte) []byte {
	switch kind {
	case events.TypeCreated, events.TypeDone:
		return m.response(kind, event)
	case events.TypeOutputAdded, events.TypeOutputDone:
		if m.claim(events.ReadItem(gjson.GetBytes(event, "item")), gjson.GetBytes(event, "response_id").String()) {
			return nil
		}
		return event
	case events.TypeItemAdded, events.TypeItemCreated, events.TypeItemDone, events.TypeItemRetrieved:
		return m.item(kind, event)
	case events.TypeItemDeleted:
		m.items.remove(gjson.GetBytes(event, "item_id").String())
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

// item returns what the client sees of an event about an item of the conversation.
func (m *Mask) item(kind string, event []byte) []byte {
	it := events.ReadItem(gjson.GetBytes(event, "item"))
	if kind != events.TypeItemRetrieved && m.renewed[it.ID] { // the client has seen it, or is not to
		m.items.place(it.ID, gjson.GetBytes(event, "previous_item_id"))
		if kind == events.TypeItemDone {
			delete(m.renewed, it.ID)
		}
		return nil
	}
	hidden := m.inConversation(it)
	event = m.unheard(event)
	if kind != events.TypeItemRetrieved {
		m.items.place(it.ID, gjson.GetBytes(event, "previous_item_id"))
	}
	if hidden {
		return nil
	}
	return m.items.repoint(event)
}

// unheard takes out of an item the words of the caller that only our transcription put there.
func (m *Mask) unheard(event []byte) []byte {
	if !m.session.now.transcribing {
		return event
	}
	for i, part := range gjson.GetBytes(event, "item.content").Array() {
		if part.Get("type").String() == "input_audio" && part.Get("transcript").Type == gjson.String {
			event = events.Set(event, "item.content."+strconv.Itoa(i)+".transcript", "null")
		}
	}
	return event
}

// claim reports whether an item that a response put out is ours, and remembers it. Only these are requests: what
// else stands in the conversation may be a client's history.
func (m *Mask) claim(it events.Item, response string) bool {
	ours := m.items.hidden[it.ID]
	if it.Kind == events.ItemCall && (ours || slices.Contains(m.tools(response), it.Name)) {
		ours = true
		m.items.request(it)
	}
	if ours {
		m.items.hide(it.ID)
	}
	return ours
}

// inConversation reports whether an item that an event names without its response is to be hidden. Some servers report
// a request so first, while its response runs.
func (m *Mask) inConversation(it events.Item) bool {
	ours := m.items.hidden[it.ID]
	switch it.Kind {
	case events.ItemCall:
		_, runs := m.owned[m.current]
		ours = ours || runs && !m.items.restored(it) && slices.Contains(m.tools(m.current), it.Name)
	case events.ItemOutput:
		ours = ours || m.items.calls[it.CallID]
	}
	if ours {
		m.items.hide(it.ID)
	}
	return ours
}

// tools names our tools in a response.
func (m *Mask) tools(response string) []string {
	if m.out[response] {
		return nil
	}
	if ours, ok := m.owned[response]; ok {
		return ours
	}
	return m.session.standing()
}

// response returns response.created and response.done without our tag, tools, instructions and items.
func (m *Mask) response(kind string, event []byte) []byte {
	r := gjson.GetBytes(event, "response")
	id, tag := r.Get("id").String(), events.TagOf(r)
	aside := Aside(tag) || events.OutOfBand(r)
	event = m.session.sameConversation(event, r)
	switch {
	case aside:
		m.out[id] = true
	case kind == events.TypeCreated:
		m.begin(id, tag)
	}
	if kind == events.TypeDone { // it may never have begun: one that was interrupted at once
		m.Answers(id, tag)
		delete(m.special, tag)
	}
	for _, raw := range r.Get("output").Array() {
		m.claim(events.ReadItem(raw), id)
	}
	if output, dropped := m.items.filter(r.Get("output")); dropped {
		event = events.Set(event, "response.output", output)
	}
	if taken, exchanged := m.pairs[tag]; exchanged { // the metadata become the client's own
		event = events.Remove(event, "response.metadata."+events.TagKey)
		event = events.Set(event, "response.metadata."+gjson.Escape(taken.key), taken.value)
	} else if tag != "" && len(r.Get("metadata").Map()) == 1 {
		event = events.Set(event, "response.metadata", "null")
	} else if tag != "" {
		event = events.Remove(event, "response.metadata."+events.TagKey)
	}
	if tools := r.Get("tools"); tools.IsArray() {
		if kept, dropped := without(tools, m.tools(id)); dropped {
			event = events.Set(event, "response.tools", kept)
		}
	}
	if s := &m.session; s.instructing() && strings.HasPrefix(r.Get("instructions").String(), s.guide) {
		event = restore(event, "response.instructions", s.original.instructions)
	} else {
		event = s.unadded(event, "response.instructions")
	}
	if kind == events.TypeDone {
		delete(m.owned, id)
		delete(m.out, id)
		delete(m.pairs, tag)
	}
	return event
}

// Answers says, before a response without a tag begins, which ask it is taken to answer. Another response may be taken
// so, too, until the ask is forgotten.
func (m *Mask) Answers(response, tag string) {
	if ours, special := m.special[tag]; special {
		m.owned[response] = ours
	}
}

// begin follows the beginning of a response of the conversation.
func (m *Mask) begin(id, tag string) {
	m.current = id
	if _, known := m.owned[id]; known && tag == "" {
		return
	}
	ours, special := m.special[tag]
	if special {
		delete(m.special, tag)
	} else {
		ours = m.session.standing()
	}
	m.owned[id] = ours
}

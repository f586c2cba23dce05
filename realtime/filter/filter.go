package filter

import (
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// maxOpen bounds the responses that have begun or were asked for, and are not done.
const maxOpen = 1024

// A Filter is the filter of one call. It may be used from one goroutine at a time.
type Filter struct {
	session // has methods of its own for the call (state.go)

	ids             *events.Names
	items           items
	asks            int                 // number of the client's newest ask
	toolsOfAsk      map[string][]string // our tools in asks that bring tools, by tag
	displaced       map[string]pair     // the client's metadata that our tag replaced, by tag
	toolsOfResponse map[string][]string // our tools in running responses, by response
	outOfBand       map[string]bool     // running out-of-band responses
	current         string              // newest response of the default conversation
	resentItems     map[string]bool     // items sent again to a new session, until it confirms them
}

// New returns a filter that gives the model these tools, and the guide to them. Our events get their ids from ids.
func New(ids *events.Names, tools []handoff.Tool, guide handoff.Guide) *Filter {
	return &Filter{
		ids: ids, items: newItems(), session: session{
			additions: additions{tools: tools, guide: guide.Whole, added: guide.Added}, merged: unique.Make(""),
		},
		toolsOfAsk: map[string][]string{}, displaced: map[string]pair{}, toolsOfResponse: map[string][]string{},
		outOfBand: map[string]bool{}, resentItems: map[string]bool{},
	}
}

// Full reports whether too many responses are open, or too much is hidden, for one call. Hidden items cannot be
// forgotten, since the client must never see them.
func (m *Filter) Full() bool {
	open := len(m.toolsOfResponse) + len(m.outOfBand) + len(m.toolsOfAsk) + len(m.displaced)
	return m.items.bytes > maxHidden || open > maxOpen
}

// Current returns the newest response of the default conversation, or "".
func (m *Filter) Current() string { return m.current }

// Hide hides an item from the client that we are about to put into the conversation.
func (m *Filter) Hide(item string) { m.items.hide(item) }

// A Decision is what to do with an event of the client.
type Decision struct {
	Forward []byte // send this to the model; or nil
	Reply   []byte // answer the client with this; or nil
	Crowded bool   // the event was refused because too many wait
	Leaked  bool   // the event was dropped: an output for a function call of ours
}

// FromClient decides about an event of the client. It is given all but response.create and sound.
func (m *Filter) FromClient(kind string, event []byte) Decision {
	switch kind {
	case events.TypeSessionUpdate:
		if gjson.GetBytes(event, "session.type").String() == "transcription" && !m.session.transcriptionOnly {
			return Decision{Reply: m.refusal(event, events.Fault{
				Code: "invalid_value", Param: "session.type",
				Message: "session.type is realtime: a session that only transcribes has no voice that could hand " +
					"anything over.",
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
			m.items.noteHistory(it)
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

// refusal returns the error that refuses an event of the client.
func (m *Filter) refusal(event []byte, f events.Fault) []byte {
	f.Kind, f.EventID = "invalid_request_error", gjson.GetBytes(event, "event_id").String()
	return events.Error(m.ids.Next(), f)
}

// Formats returns the session.update for the audio formats of the client's leg. The client did not make it, and does
// not see its effect.
func (m *Filter) Formats(event []byte) []byte { return m.changeFor(event, byLeg) }

// Opening returns the session.update that the client's session begins with. The client sees its effect in
// session.created, which waits for its answer.
func (m *Filter) Opening(event []byte) []byte { return m.changeFor(event, byOffer) }

func (m *Filter) changeFor(event []byte, by author) []byte {
	id := gjson.GetBytes(event, "event_id").String()
	if id == "" {
		id = m.ids.Next()
		event = events.Set(event, "event_id", events.Quote(id))
	}
	event = m.session.change(events.Set(event, "type", events.Quote(events.TypeSessionUpdate)), id)
	m.session.updates[len(m.session.updates)-1].by = by
	return event
}

// Release returns the session.created that still waits for the opening update; nil: none does.
func (m *Filter) Release() []byte { return m.session.release() }

// FromModel returns what the client sees of a model's event, and our updates for the model when its session begins. It
// is given all events in order, but sound and errors.
func (m *Filter) FromModel(kind string, event []byte) (shown, updates [][]byte) {
	switch kind {
	case events.TypeSessionCreated: // nothing of ours is in it yet
		updates = m.session.begin(event, m.ids)
		if m.session.awaiting {
			m.session.heldCreated = event
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

// A Refusal is what follows from the model's refusal of a session update.
type Refusal struct {
	Shown         []byte   // the error as the client sees it; or nil
	Again         [][]byte // updates to send to the model now
	Leg           bool     // the update was the client's leg's; Shown is for the leg alone
	Opening       bool     // the update was the one that the client's session begins with
	Tools         bool     // our tools were refused
	Transcription bool     // our transcription of the caller was refused
	Renewal       bool     // the update was a new session's first; without Again, nothing is left to try
}

// Refused handles an error of the model that names the event with this id, or none (""). False: it is not about a
// session update.
func (m *Filter) Refused(id string, event []byte) (Refusal, bool) {
	refused, again := m.session.reject(id, gjson.GetBytes(event, "error"), m.ids)
	if refused == nil {
		return Refusal{}, false
	}
	r := Refusal{Again: again, Leg: refused.by == byLeg, Renewal: refused.by == byRenewal}
	if refused.by == byUs {
		r.Transcription = refused.change.ourTranscription != nil
		r.Tools = !r.Transcription && !refused.change.reasoning
	}
	switch {
	case refused.by == byUs, refused.by == byRenewal, refused.resent:
	case m.ids.Own(id): // the client gave no event id
		r.Shown = events.Set(event, "error.event_id", "null")
	default:
		r.Shown = event
	}
	r.Opening = refused.by == byOffer && !refused.resent
	return r, true
}

func (m *Filter) show(kind string, event []byte) []byte {
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
	if strings.HasPrefix(kind, events.TypeTranscription) && m.session.now.ourTranscription {
		return nil
	}
	if id := gjson.GetBytes(event, "item_id"); id.Exists() && m.items.hidden[id.String()] {
		return nil
	}
	return m.items.repoint(event)
}

// item returns what the client sees of an event about an item of the conversation.
func (m *Filter) item(kind string, event []byte) []byte {
	it := events.ReadItem(gjson.GetBytes(event, "item"))
	if kind != events.TypeItemRetrieved && m.resentItems[it.ID] { // the client has seen the item, or must not
		m.items.place(it.ID, gjson.GetBytes(event, "previous_item_id"))
		if kind == events.TypeItemDone {
			delete(m.resentItems, it.ID)
		}
		return nil
	}
	hidden := m.inConversation(it)
	event = m.removeTranscript(event)
	if kind != events.TypeItemRetrieved {
		m.items.place(it.ID, gjson.GetBytes(event, "previous_item_id"))
	}
	if hidden {
		return nil
	}
	return m.items.repoint(event)
}

// removeTranscript removes the caller's transcript from an item if only our transcription put it there.
func (m *Filter) removeTranscript(event []byte) []byte {
	if !m.session.now.ourTranscription {
		return event
	}
	for i, part := range gjson.GetBytes(event, "item.content").Array() {
		if part.Get("type").String() == "input_audio" && part.Get("transcript").Type == gjson.String {
			event = events.Set(event, "item.content."+strconv.Itoa(i)+".transcript", "null")
		}
	}
	return event
}

// claim reports whether an item in the output of a response is ours, and hides it then. Only function calls in an
// output are requests: others in the conversation may be history that a client gave.
func (m *Filter) claim(it events.Item, response string) bool {
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

// inConversation reports whether an item in an event that names no response is to be hidden, and hides it then. Some
// servers first report a request in such an event, while its response runs.
func (m *Filter) inConversation(it events.Item) bool {
	ours := m.items.hidden[it.ID]
	switch it.Kind {
	case events.ItemCall:
		_, runs := m.toolsOfResponse[m.current]
		ours = ours || runs && !m.items.isHistory(it) && slices.Contains(m.tools(m.current), it.Name)
	case events.ItemOutput:
		ours = ours || m.items.calls[it.CallID]
	}
	if ours {
		m.items.hide(it.ID)
	}
	return ours
}

// tools returns the names of our tools in a response.
func (m *Filter) tools(response string) []string {
	if m.outOfBand[response] {
		return nil
	}
	if ours, ok := m.toolsOfResponse[response]; ok {
		return ours
	}
	return m.session.standing()
}

// response returns response.created and response.done without our tag, tools, instructions and items.
func (m *Filter) response(kind string, event []byte) []byte {
	r := gjson.GetBytes(event, "response")
	id, tag := r.Get("id").String(), events.TagOf(r)
	aside := Aside(tag) || events.OutOfBand(r)
	event = m.session.sameConversation(event, r)
	switch {
	case aside:
		m.outOfBand[id] = true
	case kind == events.TypeCreated:
		m.begin(id, tag)
	}
	if kind == events.TypeDone { // without a response.created if it was interrupted at once
		m.Answers(id, tag)
		delete(m.toolsOfAsk, tag)
	}
	for _, raw := range r.Get("output").Array() {
		m.claim(events.ReadItem(raw), id)
	}
	if output, dropped := m.items.withoutHidden(r.Get("output")); dropped {
		event = events.Set(event, "response.output", output)
	}
	if taken, exchanged := m.displaced[tag]; exchanged { // restore the client's metadata
		event = events.Remove(event, "response.metadata."+events.TagKey)
		event = events.Set(event, "response.metadata."+gjson.Escape(taken.key), taken.value)
	} else if tag != "" && len(r.Get("metadata").Map()) == 1 {
		event = events.Set(event, "response.metadata", "null")
	} else if tag != "" {
		event = events.Remove(event, "response.metadata."+events.TagKey)
	}
	if tools := r.Get("tools"); tools.IsArray() {
		if kept, dropped := withoutTools(tools, m.tools(id)); dropped {
			event = events.Set(event, "response.tools", kept)
		}
	}
	if s := &m.session; s.mayShowOurInstructions() && strings.HasPrefix(r.Get("instructions").String(), s.guide) {
		event = restore(event, "response.instructions", s.original.instructions)
	} else {
		event = s.removeAddition(event, "response.instructions")
	}
	if kind == events.TypeDone {
		delete(m.toolsOfResponse, id)
		delete(m.outOfBand, id)
		delete(m.displaced, tag)
	}
	return event
}

// Answers notes, before a response without a tag begins, which ask it probably answers. It may be called for several
// responses of one ask, until the ask is forgotten.
func (m *Filter) Answers(response, tag string) {
	if ours, special := m.toolsOfAsk[tag]; special {
		m.toolsOfResponse[response] = ours
	}
}

// begin notes the beginning of a response of the conversation.
func (m *Filter) begin(id, tag string) {
	m.current = id
	if _, known := m.toolsOfResponse[id]; known && tag == "" {
		return
	}
	ours, special := m.toolsOfAsk[tag]
	if special {
		delete(m.toolsOfAsk, tag)
	} else {
		ours = m.session.standing()
	}
	m.toolsOfResponse[id] = ours
}

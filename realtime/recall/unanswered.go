package recall

import (
	"slices"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

const (
	// maxAsked and maxAskedBytes bound the events whose answers are waited for. Beyond them the oldest are
	// forgotten: a model answers in order, and is not that far behind.
	maxAsked      = 256
	maxAskedBytes = 4 << 20
)

// An asked is an event that the model answers.
type asked struct {
	answer string // the type of the answer
	item   string // that the answer names; "": the sender did not
	event  []byte
}

// Asked takes an event that went to the model: one of the client, or an item of ours. Those about the session, and asks
// in the conversation, are followed elsewhere.
func (r *Recall) Asked(kind string, event []byte) {
	a := asked{item: gjson.GetBytes(event, "item_id").String(), event: event}
	switch kind {
	case events.TypeItemCreate:
		a.answer, a.item = events.TypeItemAdded, gjson.GetBytes(event, "item.id").String()
	case events.TypeItemDelete:
		a.answer = events.TypeItemDeleted
	case events.TypeItemTruncate:
		a.answer = events.TypeItemTruncated
	case events.TypeItemRetrieve:
		a.answer = events.TypeItemRetrieved
	case events.TypeCreate: // beside the conversation
		a.answer = events.TypeCreated
	default:
		return
	}
	size := 0
	for _, other := range r.asked {
		size += len(other.event)
	}
	for len(r.asked) > 0 && (len(r.asked) >= maxAsked || size+len(event) > maxAskedBytes) {
		size -= len(r.asked[0].event)
		r.asked = slices.Delete(r.asked, 0, 1)
	}
	r.asked = append(r.asked, a)
}

// answered takes an answer of the model. An item that the client did not name is any that nobody else made.
func (r *Recall) answered(kind, id string) {
	if kind == events.TypeItemCreated {
		kind = events.TypeItemAdded
	}
	at := slices.IndexFunc(r.asked, func(a asked) bool { return a.answer == kind && a.item == id })
	if at < 0 && kind == events.TypeItemAdded && !r.written(id) && !r.given[id] {
		at = slices.IndexFunc(r.asked, func(a asked) bool { return a.answer == kind && a.item == "" })
	}
	if at >= 0 {
		r.asked = slices.Delete(r.asked, at, at+1)
	}
}

// first reports whether the client asked that a new item stand before all others.
func (r *Recall) first(id string) bool {
	at := slices.IndexFunc(r.asked, func(a asked) bool { return a.answer == events.TypeItemAdded && a.item == id })
	if at < 0 {
		at = slices.IndexFunc(r.asked, func(a asked) bool { return a.answer == events.TypeItemAdded && a.item == "" })
	}
	return at >= 0 && gjson.GetBytes(r.asked[at].event, "previous_item_id").String() == "root"
}

// written reports whether the model or its ear made an item: a client's answers are text.
func (r *Recall) written(id string) bool {
	_, it := r.find(id)
	return it != nil && (it.role == "assistant" || it.kind == events.ItemCall || it.sound)
}

// Refused takes an error of the model about an event.
func (r *Recall) Refused(eventID string) {
	if eventID != "" {
		r.asked = slices.DeleteFunc(r.asked, func(a asked) bool {
			return gjson.GetBytes(a.event, "event_id").String() == eventID
		})
	}
}

// Unanswered returns the events that the model has not answered, oldest first.
func (r *Recall) Unanswered() [][]byte {
	var all [][]byte
	for _, a := range r.asked {
		all = append(all, a.event)
	}
	return all
}

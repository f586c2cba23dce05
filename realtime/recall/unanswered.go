package recall

import (
	"slices"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

const (
	// maxAsked and maxAskedBytes bound the unanswered events. Beyond them the oldest are forgotten: a model answers in
	// order, and is not that far behind.
	maxAsked      = 256
	maxAskedBytes = 4 << 20
)

// A sentEvent is an event that the model has to answer.
type sentEvent struct {
	answer string // the type of the answer
	item   string // the item id in the answer; "": the sender gave none
	event  []byte
}

// Sent notes an event that was sent to the model: the client's, or an item of ours. The filter and the floor remember
// session updates and asks in the conversation.
func (r *Recall) Sent(kind string, event []byte) {
	a := sentEvent{item: gjson.GetBytes(event, "item_id").String(), event: event}
	switch kind {
	case events.TypeItemCreate:
		a.answer, a.item = events.TypeItemAdded, gjson.GetBytes(event, "item.id").String()
	case events.TypeItemDelete:
		a.answer = events.TypeItemDeleted
	case events.TypeItemTruncate:
		a.answer = events.TypeItemTruncated
	case events.TypeItemRetrieve:
		a.answer = events.TypeItemRetrieved
	case events.TypeCreate: // out of band
		a.answer = events.TypeCreated
	default:
		return
	}
	size := 0
	for _, other := range r.unanswered {
		size += len(other.event)
	}
	for len(r.unanswered) > 0 && (len(r.unanswered) >= maxAsked || size+len(event) > maxAskedBytes) {
		size -= len(r.unanswered[0].event)
		r.unanswered = slices.Delete(r.unanswered, 0, 1)
	}
	r.unanswered = append(r.unanswered, a)
}

// answered handles an answer of the model. An item that the client sent without an id is answered by any new item that
// the model did not make.
func (r *Recall) answered(kind, id string) {
	if kind == events.TypeItemCreated {
		kind = events.TypeItemAdded
	}
	at := slices.IndexFunc(r.unanswered, func(a sentEvent) bool { return a.answer == kind && a.item == id })
	if at < 0 && kind == events.TypeItemAdded && !r.madeByModel(id) && !r.givenItems[id] {
		at = slices.IndexFunc(r.unanswered, func(a sentEvent) bool { return a.answer == kind && a.item == "" })
	}
	if at >= 0 {
		r.unanswered = slices.Delete(r.unanswered, at, at+1)
	}
}

// comesFirst reports whether the client asked for a new item to be put before all others.
func (r *Recall) comesFirst(id string) bool {
	adds := func(item string) int {
		return slices.IndexFunc(r.unanswered, func(a sentEvent) bool {
			return a.answer == events.TypeItemAdded && a.item == item
		})
	}
	at := adds(id)
	if at < 0 {
		at = adds("")
	}
	return at >= 0 && gjson.GetBytes(r.unanswered[at].event, "previous_item_id").String() == "root"
}

// madeByModel reports whether an item was made by the model, or by voice detection from the caller's sound.
func (r *Recall) madeByModel(id string) bool {
	_, it := r.find(id)
	return it != nil && (it.role == "assistant" || it.kind == events.ItemCall || it.untranscribed)
}

// Refused notes that the model refused an event.
func (r *Recall) Refused(eventID string) {
	if eventID != "" {
		r.unanswered = slices.DeleteFunc(r.unanswered, func(a sentEvent) bool {
			return gjson.GetBytes(a.event, "event_id").String() == eventID
		})
	}
}

// Unanswered returns the events that the model has not answered, oldest first.
func (r *Recall) Unanswered() [][]byte {
	var all [][]byte
	for _, a := range r.unanswered {
		all = append(all, a.event)
	}
	return all
}

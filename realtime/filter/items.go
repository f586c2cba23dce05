package filter

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

const (
	// maxHidden bounds the memory for hidden items and requests, in bytes. Each counts as hiddenCost and its ids, so
	// there are some ten thousand. The call's own state for each of them is so bounded, too.
	maxHidden  = 4 << 20
	hiddenCost = 256
	// maxTheirs bounds the remembered ids of a client's history. The oldest go first: the model has long confirmed
	// them.
	maxTheirs = 4096
	// maxPlaces bounds the client's items whose places are remembered. The oldest are forgotten: an item that is
	// deleted is a new one, or none of ours comes right after it.
	maxPlaces = 4096
)

// items knows which conversation items the client must not see: our requests, their outputs and our messages. It keeps
// little for each.
type items struct {
	hidden         map[string]bool
	calls          map[string]bool   // call ids of our requests
	before         map[string]string // the item before an item; "": it is the first
	placed         []string          // the client's items in before, oldest first
	last           string            // newest item seen
	bytes          int               // memory of the hidden items, see maxHidden
	clientRequests recent            // call and item ids of function calls in history from the client
}

func newItems() items {
	return items{hidden: map[string]bool{}, calls: map[string]bool{}, before: map[string]string{},
		clientRequests: recent{known: map[string]bool{}}}
}

// hide hides an item.
func (x *items) hide(id string) {
	if id != "" && !x.hidden[id] {
		x.hidden[id] = true
		x.bytes += len(id) + len(x.last) + hiddenCost
	}
}

// request notes a request for a tool of ours, whose outputs are hidden, too.
func (x *items) request(it events.Item) {
	if it.CallID != "" && !x.calls[it.CallID] {
		x.calls[it.CallID] = true
		x.bytes += len(it.CallID) + hiddenCost
	}
}

// noteHistory notes a function call that the client gives as history: whatever its name, it is the client's own.
func (x *items) noteHistory(it events.Item) {
	for _, id := range []string{it.CallID, it.ID} {
		if id != "" && len(id) <= events.MaxID {
			x.clientRequests.add(id)
		}
	}
}

// isHistory reports whether an item is a function call that the client gave as history.
func (x *items) isHistory(it events.Item) bool {
	return x.clientRequests.has(it.CallID) || x.clientRequests.has(it.ID)
}

// A recent is a set of ids that forgets the oldest of more than maxTheirs.
type recent struct {
	known map[string]bool
	order []string // oldest first
}

func (r *recent) has(id string) bool { return r.known[id] }

func (r *recent) add(id string) {
	if r.known[id] {
		return
	}
	r.known[id], r.order = true, append(r.order, id)
	if len(r.order) > maxTheirs {
		delete(r.known, r.order[0])
		r.order = r.order[1:]
	}
}

// place notes the place of an item in the conversation.
func (x *items) place(id string, previous gjson.Result) {
	if id == "" {
		return
	}
	if _, known := x.before[id]; !known {
		x.before[id] = x.last
		if previous.Exists() {
			x.before[id] = previous.String()
		}
		if !x.hidden[id] {
			x.placed = append(x.placed, id)
		}
	}
	if len(x.placed) > maxPlaces {
		if oldest := x.placed[0]; !x.hidden[oldest] {
			delete(x.before, oldest)
		}
		x.placed = x.placed[1:]
	}
	x.last = id
}

// remove takes a deleted item out of the order. One of ours stays known, as the client must not see it again.
func (x *items) remove(id string) {
	if x.hidden[id] {
		return
	}
	before := x.before[id]
	delete(x.before, id)
	x.placed = slices.DeleteFunc(x.placed, func(other string) bool { return other == id })
	for other, previous := range x.before {
		if previous == id {
			x.before[other] = before
		}
	}
	if x.last == id {
		x.last = before
	}
}

// visible returns the nearest item at or before id that the client knows, or "".
func (x *items) visible(id string) string {
	for range len(x.before) + 1 { // bounded, as a model could name a cycle
		if !x.hidden[id] {
			return id
		}
		id = x.before[id]
	}
	return ""
}

// repoint rewrites previous_item_id where it names a hidden item.
func (x *items) repoint(event []byte) []byte {
	previous := gjson.GetBytes(event, "previous_item_id")
	if previous.Type != gjson.String || !x.hidden[previous.String()] {
		return event
	}
	if id := x.visible(previous.String()); id != "" {
		return events.Set(event, "previous_item_id", events.Quote(id))
	}
	return events.Set(event, "previous_item_id", "null")
}

// withoutHidden drops hidden items from a list of items and reports whether there were any.
func (x *items) withoutHidden(list gjson.Result) (string, bool) {
	var kept []string
	dropped := false
	for _, r := range list.Array() {
		if x.hidden[r.Get("id").String()] {
			dropped = true
			continue
		}
		kept = append(kept, r.Raw)
	}
	return "[" + strings.Join(kept, ",") + "]", dropped
}

package mask

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

const (
	// maxHidden bounds, in bytes, what is remembered of hidden items and of requests, each of which costs hiddenCost
	// beside its ids: some ten thousand. A call that remembers more about each of them is bounded by it, too.
	maxHidden  = 4 << 20
	hiddenCost = 256
	// maxTheirs bounds the ids that are remembered of a client's history. The oldest go first: the model has
	// long confirmed them.
	maxTheirs = 4096
	// maxPlaces bounds the items of the client whose places are known. The oldest are forgotten: what is deleted is
	// new, or nothing of ours stands behind it.
	maxPlaces = 4096
)

// items knows which conversation items the client must not see: our requests, their outputs and our
// messages. It remembers a few words for each; a model session ends after an hour or two.
type items struct {
	hidden map[string]bool
	calls  map[string]bool   // call ids of our requests
	before map[string]string // what stands before an item, "" for nothing
	placed []string          // those of the client in before, oldest first
	last   string            // newest item seen
	bytes  int               // of what is hidden
	theirs recent            // call ids and item ids of the requests in the history that the client gave
}

func newItems() items {
	return items{hidden: map[string]bool{}, calls: map[string]bool{}, before: map[string]string{},
		theirs: recent{known: map[string]bool{}}}
}

// hide hides an item.
func (x *items) hide(id string) {
	if id != "" && !x.hidden[id] {
		x.hidden[id] = true
		x.bytes += len(id) + len(x.last) + hiddenCost
	}
}

// request notes a request of ours, whose outputs are hidden, too.
func (x *items) request(it events.Item) {
	if it.CallID != "" && !x.calls[it.CallID] {
		x.calls[it.CallID] = true
		x.bytes += len(it.CallID) + hiddenCost
	}
}

// restore notes a request that the client gives as history: whatever its name, it is the client's own.
func (x *items) restore(it events.Item) {
	for _, id := range []string{it.CallID, it.ID} {
		if id != "" && len(id) <= events.MaxID {
			x.theirs.add(id)
		}
	}
}

// restored reports whether an item stands for one that the client gave.
func (x *items) restored(it events.Item) bool { return x.theirs.has(it.CallID) || x.theirs.has(it.ID) }

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

// place notes where an item stands.
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

// remove lets what stands behind an item that is deleted stand behind the one before it. One of ours stays known:
// the client must not see it again.
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
	for range len(x.before) + 1 { // a model that names a circle must not hold us
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

// filter drops hidden items from a list of items and reports whether there were any.
func (x *items) filter(list gjson.Result) (string, bool) {
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

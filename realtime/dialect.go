package realtime

import (
	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

// maxDialect bounds the open items and responses that a dialect remembers. For further ones no events are added.
const maxDialect = 256

// A dialect converts the events of other models to those that OpenAI's would have sent: older servers announce an item
// once, by an older event, and some send no response.created. It learns from what they send. It is pure.
type dialect struct {
	added     bool            // the model sends item.added, so its item.created is nothing special
	created   map[string]bool // items announced by item.created alone that are not done
	announced string          // the newest of these: some servers send both events
	running   map[string]bool // responses that have begun and are not done
}

func newDialect() dialect { return dialect{created: map[string]bool{}, running: map[string]bool{}} }

// read returns the events that OpenAI's model would have sent for an event, in order. made is how many of them were
// added.
func (d *dialect) read(kind string, event []byte) (all [][]byte, made int) {
	switch kind {
	case events.TypeItemAdded:
		d.added = true
		if id := gjson.GetBytes(event, "item.id").String(); id != "" && id == d.announced {
			if d.created[id] { // then the server sends item.done itself
				delete(d.created, id)
				d.announced = ""
			}
			return nil, 0
		}
	case events.TypeItemCreated:
		if !d.added {
			return d.item(event)
		}
	case events.TypeItemDone:
		id := gjson.GetBytes(event, "item.id").String()
		if id != "" && id == d.announced && !d.created[id] {
			return nil, 0
		}
		delete(d.created, id)
	case events.TypeCreated:
		d.begin(gjson.GetBytes(event, "response.id").String())
	case events.TypeDone:
		delete(d.running, gjson.GetBytes(event, "response.id").String())
		for _, it := range gjson.GetBytes(event, "response.output").Array() { // items that it interrupted
			if id := it.Get("id").String(); d.created[id] {
				delete(d.created, id)
				all, made = append(all, events.ItemDone(it.Raw)), made+1
			}
		}
		return append(all, event), made
	case events.TypeOutputAdded:
		if id := gjson.GetBytes(event, "response_id").String(); id != "" && !d.running[id] && d.begin(id) {
			return [][]byte{events.Begun(id), event}, 1
		}
	case events.TypeOutputDone:
		it := gjson.GetBytes(event, "item")
		if id := it.Get("id").String(); d.created[id] {
			delete(d.created, id)
			return [][]byte{event, events.ItemDone(it.Raw)}, 1
		}
	}
	return [][]byte{event}, 0
}

// begin notes that a response has begun; false: too many are remembered.
func (d *dialect) begin(id string) bool {
	if len(d.running) >= maxDialect {
		return false
	}
	d.running[id] = true
	return true
}

// item converts a conversation.item.created: newer servers send item.added, and item.done unless a response is still
// writing the item.
func (d *dialect) item(event []byte) (all [][]byte, made int) {
	it := events.ReadItem(gjson.GetBytes(event, "item"))
	d.announced = it.ID
	all = [][]byte{events.Set(event, "type", events.Quote(events.TypeItemAdded))}
	if writes := it.Kind == events.ItemCall || it.Role == "assistant"; writes && it.Status != events.StatusCompleted {
		if it.ID != "" && len(d.created) < maxDialect {
			d.created[it.ID] = true
		}
		return all, 0
	}
	return append(all, events.Set(event, "type", events.Quote(events.TypeItemDone))), 1
}

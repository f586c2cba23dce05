package realtime

import (
	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

// maxDialect bounds the items and responses of a model that are known to be open. Beyond it nothing is made for them.
const maxDialect = 256

// A dialect turns the events of other models into those that OpenAI's would have sent: older servers announce an item
// once, by an older event, and some send no response.created. It learns from what they send, and is pure.
type dialect struct {
	added   bool            // the model sends item.added: an item.created is not in its place
	created map[string]bool // items announced by item.created that are not done
	told    string          // the newest item announced so: some servers send both events
	running map[string]bool // responses that have begun and are not done: one of the conversation, and those beside it
}

func newDialect() dialect { return dialect{created: map[string]bool{}, running: map[string]bool{}} }

// read returns the events that a model's event stands for, in order. made is how many of them the model left out.
func (d *dialect) read(kind string, event []byte) (all [][]byte, made int) {
	switch kind {
	case events.TypeItemAdded:
		d.added = true
		if id := gjson.GetBytes(event, "item.id").String(); id != "" && id == d.told {
			if d.created[id] { // its end comes by itself
				delete(d.created, id)
				d.told = ""
			}
			return nil, 0
		}
	case events.TypeItemCreated:
		if !d.added {
			return d.item(event)
		}
	case events.TypeItemDone:
		id := gjson.GetBytes(event, "item.id").String()
		if id != "" && id == d.told && !d.created[id] {
			return nil, 0
		}
		delete(d.created, id)
	case events.TypeCreated:
		d.begin(gjson.GetBytes(event, "response.id").String())
	case events.TypeDone:
		delete(d.running, gjson.GetBytes(event, "response.id").String())
		for _, it := range gjson.GetBytes(event, "response.output").Array() { // what was interrupted
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

// begin notes that a response has begun; false: too many have.
func (d *dialect) begin(id string) bool {
	if len(d.running) >= maxDialect {
		return false
	}
	d.running[id] = true
	return true
}

// item turns conversation.item.created into what newer servers send: the item is added, and done unless a response
// still writes it.
func (d *dialect) item(event []byte) (all [][]byte, made int) {
	it := events.ReadItem(gjson.GetBytes(event, "item"))
	d.told = it.ID
	all = [][]byte{events.Set(event, "type", events.Quote(events.TypeItemAdded))}
	if writes := it.Kind == events.ItemCall || it.Role == "assistant"; writes && it.Status != events.StatusCompleted {
		if len(d.created) < maxDialect {
			d.created[it.ID] = true
		}
		return all, 0
	}
	return append(all, events.Set(event, "type", events.Quote(events.TypeItemDone))), 1
}

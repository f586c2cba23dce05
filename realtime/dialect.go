package realtime

import (
	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

// maxDialect bounds the items and responses of a model that are known to be open. Beyond it nothing is made for them.
const maxDialect = 256

// A dialect turns what a model of another kind says into what OpenAI's would have said: older servers tell of an item
// once, by its old name, and some begin a response without a word. It learns from what they say and is pure.
type dialect struct {
	added   bool            // items are told by their new name: the old one is not in its place
	created map[string]bool // items told by the old name whose end is to come
	told    string          // the newest of those told by it: some servers use both names
	running map[string]bool // responses that have begun and are not done: one of the conversation, and those beside it
}

func newDialect() dialect { return dialect{created: map[string]bool{}, running: map[string]bool{}} }

// read returns the events that a model's event stands for, in order; made tells how many of them the model owed.
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

// item tells of an item as newer servers do: it is added, and done unless a response still writes it.
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

package recall

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

// An Ending is the end of a response whose session is gone: the events that the model would have sent.
type Ending struct {
	Response string
	Complete bool     // all items that it began are done
	Aside    bool     // it is out of band
	Events   [][]byte // the last is response.done
}

// Endings returns the endings of all running responses. next makes the ids of the events. The caller has to give the
// events to FromModel, which ends the responses here.
func (r *Recall) Endings(next func() string) (all []Ending) {
	for _, p := range r.running {
		e := Ending{
			Response: gjson.Get(p.raw, "id").String(), Complete: len(p.open) == 0 && len(p.items) > 0, Aside: p.aside,
		}
		tell := func(kind string, fields events.Object) {
			fields["type"], fields["event_id"] = kind, next()
			e.Events = append(e.Events, events.Encode(fields))
		}
		output := []json.RawMessage{}
		for _, raw := range p.items {
			output = append(output, json.RawMessage(raw))
		}
		for i := range p.open {
			it := json.RawMessage(p.open[i].ended())
			output = append(output, it)
			tell(events.TypeOutputDone, events.Object{
				"response_id": e.Response, "output_index": p.open[i].index, "item": it})
			if _, known := r.find(p.open[i].id); known != nil && !p.aside { // it was not deleted
				tell(events.TypeItemDone, events.Object{"previous_item_id": r.before(p.open[i].id), "item": it})
			}
		}
		done := events.Set([]byte(p.raw), "status", events.Quote(events.StatusCompleted))
		if !e.Complete {
			done = events.Set(done, "status", events.Quote(events.StatusIncomplete))
			done = events.Set(done, "status_details", `{"type":"incomplete"}`)
		}
		done = events.Set(done, "output", string(events.Encode(output)))
		tell(events.TypeDone, events.Object{"response": json.RawMessage(done)})
		all = append(all, e)
	}
	return all
}

// before returns the id of the item before another, or nil.
func (r *Recall) before(id string) any {
	if i, _ := r.find(id); i > 0 {
		return r.items[i-1].id
	}
	return nil
}

// ended returns an item as far as it was written, as incomplete.
func (o *openItem) ended() []byte {
	it := events.Set([]byte(o.raw), "status", events.Quote(events.StatusIncomplete))
	words := events.Quote(o.words.String())
	switch {
	case gjson.Get(o.raw, "type").String() == events.ItemCall:
		it = events.Set(it, "arguments", words)
	case gjson.Get(o.raw, "type").String() != events.ItemMessage || o.words.Len() == 0:
	case gjson.Get(o.raw, "content.0.type").String() == "output_text":
		it = events.Set(it, "content.0.text", words)
	default:
		it = events.Set(it, "content", `[{"type":"output_audio","transcript":`+words+`}]`)
	}
	return it
}

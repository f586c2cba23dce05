package realtime

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
	"switchboard/realtime/floor"
)

// takenBack tells the client of an ask that it cancelled while it waited here: it began and ended, as it would have
// at the model.
func (c *Call) takenBack(tag string) {
	metadata := c.asks[tag].metadata
	delete(c.asks, tag)
	c.mask.Forget(tag)
	c.endUnasked(metadata)
}

// cancels takes back what the client asked for that waits here.
func (c *Call) cancels() {
	early := c.early
	c.early = nil
	for _, event := range early {
		c.endUnasked(gjson.GetBytes(event, "response.metadata").Raw)
	}
	c.tell(floor.Cancelled{})
}

// endUnasked shows the client a response with its metadata that began and was cancelled.
func (c *Call) endUnasked(metadata string) {
	metadata = cmp.Or(metadata, "null")
	response := events.Object{"object": "realtime.response", "id": "resp_" + c.ids.Next(), "status": "in_progress", "status_details": nil,
		"output": []string{}, "usage": nil, "metadata": json.RawMessage(metadata)}
	c.show(events.Encode(events.Object{"type": events.TypeCreated, "event_id": c.ids.Next(), "response": response}))
	response["status"] = events.StatusCancelled
	response["status_details"] = events.Object{"type": events.StatusCancelled, "reason": "client_cancelled"}
	c.show(events.Encode(events.Object{"type": events.TypeDone, "event_id": c.ids.Next(), "response": response}))
}

// nameless returns the id of the event of ours that an error is about which names none, or "": it says so, or nothing
// of the client's can be meant.
func (c *Call) nameless(fault gjson.Result) string {
	param, message := fault.Get("param").String(), fault.Get("message").String()
	says := func(field, kind string) bool {
		return param == field || strings.HasPrefix(param, field+".") || strings.Contains(message, kind)
	}
	item, newest := "", 0
	for id, s := range c.sent {
		switch {
		case s.kind != sentItem:
			if s.what == c.floor.Asked() && says("response", events.TypeCreate) {
				return id
			}
		case c.names(s, message):
			return id
		case s.item > c.itemOf && (newest == 0 || s.item < newest):
			item, newest = id, s.item
		}
	}
	if says("item", events.TypeItemCreate) {
		return item
	}
	return ""
}

// names reports whether an error's words name an item of ours.
func (c *Call) names(s sent, message string) bool {
	u := c.utterances[s.what]
	return strings.Contains(message, itemPrefix+u.ID) || u.CallID != "" && strings.Contains(message, u.CallID)
}

package realtime

import (
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
)

// fromClient handles one event of the client.
func (c *Call) fromClient(event []byte) {
	if len(c.unsure) > 0 {
		c.signs(time.Now())
	}
	if handoff.TooDeep(event) { // first: parsers recurse
		c.toClient(errorEvent(c.ids.next(), clientFault{
			kind: "invalid_request_error", code: "invalid_json", eventID: string(peekHead(event, "event_id")),
			message: "The event nests deeper than " + strconv.Itoa(handoff.MaxDepth) + " levels.",
		}))
		return
	}
	if !isObject(event) {
		c.toClient(errorEvent(c.ids.next(), clientFault{
			kind: "invalid_request_error", code: "invalid_json", message: "The event is not a JSON object.",
		}))
		return
	}
	kind := peekType(event)
	switch kind {
	case typeAppend:
		c.clock.add(time.Now(), soundBytes(event, keyAppend), c.mask.session.inRate)
		if c.mask.session.manual && c.speeches.appended.IsZero() {
			c.speeches.appended = c.clock.at
		}
		c.toModel(event)
		return
	case typePlayed:
		if c.ears.told {
			c.performed(event)
			return
		}
	case typeCreate:
		c.clientAsks(event)
		return
	}
	v := c.mask.fromClient(kind, event)
	if v.leaked {
		c.counts.leaked++
	}
	if v.crowded {
		c.counts.refused++
	}
	if v.reply != nil {
		c.toClient(v.reply)
	}
	if v.forward == nil {
		return
	}
	c.toModel(v.forward)
	switch kind {
	case typeSessionUpdate:
		c.tell(listening{c.mask.session.manual, c.mask.session.auto})
	case typeItemTruncate, typeCancel, typeOutputClear:
		c.hush(kind, event)
	case typeCommit:
		c.committed()
	case typeInputClear:
		c.speeches.appended = time.Time{}
	case typeItemCreate:
		c.typed(readItem(gjson.GetBytes(event, "item")))
	}
}

// typed reports what the caller wrote instead of saying it.
func (c *Call) typed(it item) {
	if it.kind == itemMessage && it.role == "user" && it.text != "" {
		c.asked = time.Now()
		c.report(handoff.Heard{Text: it.text, Typed: true, Began: c.asked})
	}
}

// heldBytes returns how much the asks of the client that wait take.
func (c *Call) heldBytes() (n int) {
	for _, a := range c.asks {
		n += len(a.event)
	}
	return n
}

// clientAsks queues the client's response.create.
func (c *Call) clientAsks(event []byte) {
	id := gjson.GetBytes(event, "event_id").String()
	patched, tag := c.mask.ask(event)
	if tag == tagOut {
		c.toModel(patched)
		return
	}
	if c.floor.full() || len(c.asks) > 0 && c.heldBytes()+len(patched) > maxAskBytes {
		c.counts.refused++
		c.toClient(errorEvent(c.ids.next(), clientFault{
			kind: "invalid_request_error", code: "rate_limit_exceeded", message: "Too many responses are waiting.", eventID: id,
		}))
		return
	}
	a := clientAsk{event: patched, eventID: id}
	if id == "" {
		a.eventID, a.adopted = c.ids.next(), true
		a.event = set(patched, "event_id", quote(a.eventID))
	}
	c.asks[tag] = a
	c.tell(clientAsked{ask: tag, apart: gjson.GetBytes(event, "response.input").IsArray()})
}

package realtime

import (
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
	"switchboard/realtime/mask"
)

// takeFrom handles the events of a client's leg, as long as that is the client's.
func (c *Call) takeFrom(l leg) func(event []byte) {
	return func(event []byte) {
		c.do(func() {
			if c.client == l {
				c.fromClient(event)
			}
		})
	}
}

// fromClient handles one event of the client.
func (c *Call) fromClient(event []byte) {
	if len(c.unsure) > 0 {
		c.signs(time.Now())
	}
	kind := events.PeekType(event)
	if kind == events.TypeAppend && events.LooksWhole(event) { // nearly all there is: it is passed on, and nothing in it is parsed
		c.soundOfClient(event)
		return
	}
	if handoff.TooDeep(event) { // first: parsers recurse
		c.reply(events.Error(c.ids.Next(), events.Fault{
			Kind: "invalid_request_error", Code: "invalid_json", EventID: string(events.PeekHead(event, "event_id")),
			Message: "The event nests deeper than " + strconv.Itoa(handoff.MaxDepth) + " levels.",
		}))
		return
	}
	if !events.IsObject(event) {
		c.reply(events.Error(c.ids.Next(), events.Fault{
			Kind: "invalid_request_error", Code: "invalid_json", Message: "The event is not a JSON object.",
		}))
		return
	}
	switch kind {
	case events.TypePlayed, events.TypeFormats, events.TypeOpened, events.TypeOpening:
		if c.playback.told {
			c.fromLeg(kind, event)
			return
		}
	case events.TypeCreate:
		c.clientAsks(event)
		return
	case events.TypeCancel:
		if !gjson.GetBytes(event, "response_id").Exists() {
			c.cancels()
		}
	}
	v := c.mask.FromClient(kind, event)
	if v.Leaked {
		c.counts.leaked++
	}
	if v.Crowded {
		c.counts.refused++
	}
	if v.Reply != nil {
		c.reply(v.Reply)
	}
	if v.Forward == nil {
		return
	}
	c.toModel(v.Forward)
	c.follow(kind, event)
}

// soundOfClient passes the caller's sound on, and follows its clock.
func (c *Call) soundOfClient(event []byte) {
	c.clock.add(time.Now(), events.SoundBytes(event, events.KeyAppend), c.settings.inRate)
	if c.settings.manual && c.speeches.appended.IsZero() {
		c.speeches.appended = c.clock.at
	}
	c.toModel(event)
}

// follow notes what an event of the client changes that went to the model.
func (c *Call) follow(kind string, event []byte) {
	switch kind {
	case events.TypeSessionUpdate:
		if c.alarms[alarmAnswer].at.IsZero() {
			c.watchAnswers()
		}
		if !c.mask.Foreign() {
			c.settings.change(gjson.GetBytes(event, "session"))
		}
		c.tell(c.settings.listening())
	case events.TypeItemTruncate, events.TypeCancel, events.TypeOutputClear:
		c.hush(kind, event)
	case events.TypeCommit:
		c.committed()
	case events.TypeInputClear:
		c.speeches.appended = time.Time{}
	case events.TypeItemCreate:
		c.given(events.ReadItem(gjson.GetBytes(event, "item")))
	}
}

// maxOutputs bounds the client's outputs that are remembered: those to a response that runs.
const maxOutputs = 64

// given notes an item of the client: what the caller wrote, or the output of a call.
func (c *Call) given(it events.Item) {
	c.items++
	c.itemOf = c.items
	if c.typed(it); it.Kind != events.ItemOutput || len(it.CallID) > events.MaxID {
		return
	}
	if c.outputs = append(c.outputs, it.CallID); len(c.outputs) > maxOutputs {
		c.outputs = slices.Delete(c.outputs, 0, 1)
	}
	c.tell(floor.Output{Call: it.CallID})
}

// fromLeg handles what the client's leg says itself.
func (c *Call) fromLeg(kind string, event []byte) {
	switch kind {
	case events.TypePlayed:
		c.performed(event)
	case events.TypeFormats:
		c.toModel(c.mask.Formats(event))
		c.watchAnswers()
	case events.TypeOpening:
		c.opens(event)
	case events.TypeOpened:
		c.opened = true
		c.back()
		c.ready()
	}
}

// typed reports what the caller wrote instead of saying it.
func (c *Call) typed(it events.Item) {
	if it.Kind == events.ItemMessage && it.Role == "user" && it.Text != "" {
		c.asked = time.Now()
		// Every socket of a call that the provider carries can write into it.
		c.report(handoff.Heard{Text: it.Text, Typed: true, Began: c.asked, Loose: c.attached != nil})
	}
}

// heldBytes returns how much the asks of the client that wait take.
func (c *Call) heldBytes() (n int) {
	for _, a := range c.asks {
		n += len(a.event)
	}
	for _, event := range c.early {
		n += len(event)
	}
	return n
}

// clientAsks queues the client's response.create. One that comes before the model's session exists waits for that:
// its response could use none of our tools.
func (c *Call) clientAsks(event []byte) {
	id := gjson.GetBytes(event, "event_id").String()
	if !c.mask.Begun() {
		if c.tooManyAsks(len(c.early) >= floor.MaxHeld, len(event), id) {
			return
		}
		c.early = append(c.early, event)
		return
	}
	patched, tag := c.mask.Ask(event)
	if mask.Aside(tag) {
		c.toModel(patched)
		return
	}
	if c.tooManyAsks(c.floor.Full(), len(patched), id) {
		return
	}
	a := clientAsk{event: patched, metadata: gjson.GetBytes(event, "response.metadata").Raw, eventID: id}
	if id == "" {
		a.eventID, a.adopted = c.ids.Next(), true
		a.event = events.Set(patched, "event_id", events.Quote(a.eventID))
	}
	c.asks[tag] = a
	c.tell(floor.ClientAsked{Ask: tag, Apart: gjson.GetBytes(event, "response.input").IsArray()})
}

// tooManyAsks refuses an ask of so many bytes where too much waits.
func (c *Call) tooManyAsks(full bool, size int, id string) bool {
	if full = full || len(c.asks)+len(c.early) > 0 && c.heldBytes()+size > maxAskBytes; full {
		c.counts.refused++
		c.reply(events.Error(c.ids.Next(), events.Fault{
			Kind: "invalid_request_error", Code: "rate_limit_exceeded", Message: "Too many responses are waiting.", EventID: id,
		}))
	}
	return full
}

// askedEarly queues what the client asked for before the model's session existed.
func (c *Call) askedEarly() {
	early := c.early
	c.early = nil
	for _, event := range early {
		c.clientAsks(event)
	}
}

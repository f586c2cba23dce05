package realtime

import (
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// fromClient handles one event of the client.
func (c *Call) fromClient(event []byte) {
	if len(c.hearing.unsure) > 0 {
		c.hearing.checkSigns(time.Now())
	}
	kind := events.PeekType(event)
	// Sound is nearly all traffic: it is passed on without being parsed.
	if kind == events.TypeAppend && events.LooksWhole(event) {
		c.hearing.soundOfClient(event)
		return
	}
	switch { // first: parsers recurse
	case handoff.TooDeep(event):
		c.legs.refuse(events.Fault{
			Code: "invalid_json", EventID: string(events.PeekHead(event, "event_id")),
			Message: "The event nests deeper than " + strconv.Itoa(handoff.MaxDepth) + " levels.",
		})
		return
	case !events.IsObject(event):
		c.legs.refuse(events.Fault{Code: "invalid_json", Message: "The event is not a JSON object."})
		return
	}
	switch kind {
	case events.TypePlayed, events.TypeFormats, events.TypeOpened, events.TypeOpening:
		if c.legs.performs {
			c.fromLeg(kind, event)
			return
		}
	case events.TypeCreate:
		c.saying.clientAsks(event)
		return
	case events.TypeCancel:
		if !gjson.GetBytes(event, "response_id").Exists() {
			c.saying.clientCancels()
		}
	}
	if answer := c.renewal.answerForModel(kind, event); answer != nil {
		c.legs.reply(answer)
		return
	}
	v := c.filter.FromClient(kind, event)
	if v.Leaked {
		c.counts.leaked++
	}
	if v.Crowded {
		c.counts.refused++
	}
	if v.Reply != nil {
		c.legs.reply(v.Reply)
	}
	if v.Forward != nil {
		c.legs.toModel(v.Forward)
		if c.legs.canRenew {
			c.renewal.recall.Sent(kind, v.Forward)
		}
		c.forwarded(kind, event)
	}
}

// forwarded notes what changes by an event of the client that was passed on to the model.
func (c *Call) forwarded(kind string, event []byte) {
	switch kind {
	case events.TypeSessionUpdate:
		if c.alarms[alarmAnswer].at.IsZero() {
			c.session.awaitAnswer()
		}
		if !c.filter.TranscriptionOnly() {
			c.hearing.settings.change(gjson.GetBytes(event, "session"))
		}
		c.saying.tell(c.hearing.settings.listening())
	case events.TypeItemTruncate, events.TypeCancel, events.TypeOutputClear:
		c.hearing.stoppedByClient(kind, event)
	case events.TypeCommit:
		c.hearing.committed()
		c.hearing.keepMark(event)
	case events.TypeInputClear:
		c.hearing.keepMark(event)
		c.hearing.appended = time.Time{}
	case events.TypeItemCreate:
		c.noteClientItem(events.ReadItem(gjson.GetBytes(event, "item")))
	}
}

// noteClientItem notes an item of the client: a message that the caller typed, or the output of a function call.
func (c *Call) noteClientItem(it events.Item) {
	c.hearing.typed(it)
	c.saying.noteClientItem(it)
}

// fromLeg handles an event that the client's leg made itself, as a [performer].
func (c *Call) fromLeg(kind string, event []byte) {
	switch kind {
	case events.TypePlayed:
		c.hearing.performed(event)
	case events.TypeFormats:
		c.legs.toModel(c.filter.Formats(event))
		c.session.awaitAnswer()
	case events.TypeOpening:
		c.session.sendOpening(event)
	case events.TypeOpened:
		c.legs.opened = true
		c.session.clientBack()
		c.session.ready()
	}
}

// fromBeside handles an event of a socket beside the client. It may not change the audio formats of a call whose leg
// plays the sound.
func (c *Call) fromBeside(l leg, event []byte) {
	c.legs.sender = l
	defer func() { c.legs.sender = nil }()
	if c.legs.performs && !handoff.TooDeep(event) && events.IsObject(event) {
		switch events.PeekType(event) {
		case events.TypePlayed, events.TypeFormats, events.TypeOpened, events.TypeOpening:
			return
		case events.TypeOutputClear: // the client's leg plays the sound, or the provider does
			if c.hearing.attached == nil {
				c.legs.toLeg(event)
				return
			}
		case events.TypeSessionUpdate:
			event = events.Remove(events.Remove(event, "session.audio.input.format"), "session.audio.output.format")
		}
	}
	c.fromClient(event)
}

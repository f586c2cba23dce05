package realtime

import (
	"time"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
)

// openingLimit bounds how long a client waits for the session that it asked for before its call began, from the
// beginning of the model's: the leg's formats go first. Then it is shown the session as it is.
const openingLimit = 6 * time.Second

// opens sends the model the session.update that the client began with.
func (c *Call) opens(event []byte) {
	c.settings.change(gjson.GetBytes(event, "session"))
	c.toModel(c.mask.Opening(event))
	c.tell(c.settings.listening())
}

// show gives the client what it sees of an event of the model, nil for nothing.
func (c *Call) show(event []byte) {
	if event == nil {
		c.counts.swallowed++
		return
	}
	switch kind := events.PeekType(event); kind {
	case events.TypeSessionCreated, events.TypeSessionUpdated:
		c.shown = gjson.GetBytes(event, "session").Raw
		c.toClient(event)
		if kind == events.TypeSessionCreated {
			c.begun(nil)
		}
	default:
		c.toClient(event)
	}
}

// begun tells whoever waits that the client's session has begun, or that it was refused.
func (c *Call) begun(fault *handoff.Error) {
	if c.begins != nil {
		c.begins(fault)
		c.begins = nil
	}
}

// openingRefused handles the model's refusal of the session that the client began with, and returns what the client
// sees of it. Who still waits for an answer to its offer is told there, and there is no call.
func (c *Call) openingRefused(shown []byte, fault gjson.Result) []byte {
	if c.begins != nil {
		why := handoff.Malformed(fault.Get("param").String(), handoff.Clip(fault.Get("message").String(), maxFaultSaid))
		if why.Param == "" {
			why.Param = "session"
		}
		c.begun(why)
		c.end(why)
		return nil
	}
	c.show(c.mask.Release())
	c.ready()
	return shown
}

// maxFaultSaid bounds the model's words in an error of ours, in bytes.
const maxFaultSaid = 500

// tellLeg tells a leg that plays the sound of the model's session.
func (c *Call) tellLeg(event []byte) {
	if !c.playback.told {
		return
	}
	kind := events.TypeMade
	if events.PeekType(event) == events.TypeSessionUpdated {
		kind = events.TypeChanged
	}
	c.toLeg(events.Set(event, "type", events.Quote(kind)))
}

// reachable tells whether the client can be reached: one that is connected some time after its call began says so.
func (c *Call) reachable() bool { return !c.playback.told || c.opened }

// ready lets the client set its session up from now on, once it can be reached and knows its session.
func (c *Call) ready() {
	if !c.waited && c.mask.Open() && c.reachable() {
		c.waited = true
		c.tell(floor.Opened{})
	}
}

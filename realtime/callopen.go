package realtime

import (
	"encoding/json"
	"strconv"
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
	c.watchAnswers()
	c.tell(c.settings.listening())
}

// show gives the client what it sees of an event of the model.
func (c *Call) show(event []byte) {
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
	c.release()
	return shown
}

// denies notes why the model begins no session, which some servers tell on the socket. Nobody is shown its words, which
// may repeat a part of the key.
func (c *Call) denies(fault gjson.Result) {
	c.swallow("the voice model refuses a session", fault)
	said := handoff.Clip(fault.Get("code").String(), maxModelSaid)
	why := handoff.Fault(handoff.CodeVoiceGone, c.at, "it said "+strconv.Quote(said))
	switch said {
	case "invalid_api_key", "invalid_authentication":
		why.Code = handoff.CodeVoiceKey
	case "model_not_found":
		why.Code, why.Param, why.Subject = handoff.CodeVoiceModel, "model", "of that name at "+c.at
	case "insufficient_quota", "rate_limit_exceeded":
		why.Code = handoff.CodeVoiceLimit
	}
	c.denied = why
}

// gone is why a call ends whose model has ended it, or begins no session.
func (c *Call) gone(detail string) *handoff.Error {
	if c.denied != nil && !c.mask.Begun() {
		return c.denied
	}
	return handoff.Fault(handoff.CodeVoiceGone, "", detail)
}

// release lets the client begin with its session as it is.
func (c *Call) release() {
	if created := c.mask.Release(); created != nil {
		c.show(created)
		c.ready()
	}
}

// answerLimit bounds how long the model may take to answer a session update, from the newest answer: some give none,
// or one for several. Clients wait 5 s at most (agents-realtime).
const answerLimit = 3 * time.Second

// watchAnswers lets the alarm ring if the session updates on the wire are not answered in time.
func (c *Call) watchAnswers() {
	if c.alarms[alarmAnswer].at = (time.Time{}); !c.mask.Confirmed() && c.mask.Begun() {
		c.alarms[alarmAnswer].at = time.Now().Add(answerLimit)
	}
}

// unanswered answers the client's session updates itself, as the model does not: with the session as it was known, and
// what the client asked for in it.
func (c *Call) unanswered() {
	asked := c.mask.Overdue()
	c.counts.made += len(asked)
	for _, session := range asked {
		if session == "" || !gjson.Parse(c.shown).IsObject() {
			continue
		}
		c.show(events.Encode(events.Object{"type": events.TypeSessionUpdated, "event_id": c.ids.Next(),
			"session": json.RawMessage(overlay([]byte(c.shown), []byte(session)))}))
	}
	c.release()
	if len(asked) > 0 && c.reachable() {
		c.tell(floor.Configured{})
	}
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

// reachable reports whether the client can be reached: one that is connected some time after its call began says so.
func (c *Call) reachable() bool { return !c.playback.told || c.opened }

// ready lets the client set its session up from now on, once it can be reached and knows its session.
func (c *Call) ready() {
	if !c.waited && c.mask.Open() && c.reachable() {
		c.waited = true
		c.tell(floor.Opened{})
	}
}

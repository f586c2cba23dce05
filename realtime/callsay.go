package realtime

import (
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
)

// itemPrefix makes an item's id of an utterance's; together they fit the 32 characters that the API allows.
const itemPrefix = "sb_"

// An utterance is what the router said, until it is confirmed.
type utterance struct {
	handoff.Utterance
	waits    bool      // the model gets it with the ask for it: a response before that must not tell it
	acked    bool      // the model has the item
	settled  bool      // no response is needed (any more)
	told     bool      // confirmed
	at       time.Time // when the model had the item
	reworded bool      // refused as an answer and sent again as a message
}

// What may still fail under an event id of ours, or one that we gave to a client's event.
type sent struct {
	kind    sentKind
	what    string // the ask's tag or the utterance's id
	adopted bool   // the client gave no event id
	item    int    // which of the items from this side it was
}

type sentKind int

const (
	sentAsk sentKind = iota
	sentClientAsk
	sentItem
)

// say gives an utterance to the model.
func (c *Call) say(u handoff.Utterance) {
	switch known := c.utterances[u.ID]; {
	case c.mask.Foreign(): // nobody here speaks
		return
	case known != nil:
		if u.Text == "" && u.CallID == "" {
			if known.waits {
				known.Text, known.Tells = "", nil // it is not sent any more, and the call may be long
			}
			c.tell(floor.Withdrawn{ID: u.ID})
		}
		return // delivered already
	case u.CallID == "" && u.Text == "": // there is nothing to take back
		return
	}
	if u.CallID != "" {
		r := c.requests[u.CallID]
		if r == nil || r.answered {
			c.counts.unanswerable++
			c.log.Warn("answer without an open request", zap.String("utterance", u.ID))
			return
		}
		r.answered = true
		if u.Text == "" { // the model chose to say nothing: that is what its response said
			c.tell(floor.Spoke{Response: r.response})
		}
	}
	said := &utterance{Utterance: u, settled: u.Floor != handoff.FloorUnlessSpoke && u.Floor != handoff.FloorAsk}
	c.utterances[u.ID] = said
	c.mask.Hide(itemPrefix + u.ID) // before it is sent: what the mask can hide bounds how many there are
	if said.waits = u.CallID == "" && !said.settled; !said.waits {
		c.sendItem(said, itemPrefix+u.ID)
	}
	c.tell(floor.Uttered{ID: u.ID, Call: u.CallID, Need: u.Floor})
}

func (c *Call) sendItem(u *utterance, itemID string) {
	id := c.ids.Next()
	c.items++
	c.sent[id] = sent{kind: sentItem, what: u.ID, item: c.items}
	c.mask.Hide(itemID)
	if u.CallID != "" && !u.reworded {
		c.toModel(events.Output(id, itemID, u.CallID, u.Text))
		return
	}
	c.toModel(events.Message(id, itemID, u.Text))
}

// deliver gives the model what it is about to be asked for.
func (c *Call) deliver(utterances []string) {
	for _, id := range utterances {
		if u := c.utterances[id]; u.waits {
			u.waits = false
			c.sendItem(u, itemPrefix+u.ID)
		}
	}
}

// acknowledged notes that the model has an item of ours.
func (c *Call) acknowledged(itemID string) {
	for id, s := range c.sent {
		if s.kind != sentItem {
			continue
		}
		u := c.utterances[s.what]
		if itemID == itemPrefix+u.ID || itemID == itemPrefix+u.ID+"m" {
			delete(c.sent, id)
			u.acked, u.at = true, time.Now()
			u.Text, u.Tells = "", nil // the call may be long
			c.confirm(u)
			return
		}
	}
}

// confirm tells the router once that a silent utterance is in the context.
func (c *Call) confirm(u *utterance) {
	if u.acked && u.settled && !u.told {
		u.told = true
		c.report(handoff.Said{ID: u.ID, At: u.at})
	}
}

// itemRefused handles an item that the model did not take: an answer whose request it no longer knows is
// given as a message, anything else is lost and stays with the router.
func (c *Call) itemRefused(id string) {
	u := c.utterances[id]
	if u.CallID != "" && !u.reworded {
		u.reworded = true
		c.sendItem(u, itemPrefix+u.ID+"m")
		c.tell(floor.Missed{ID: id})
		return
	}
	u.told = true
	c.log.Warn("utterance refused by the voice model", zap.String("utterance", id))
	c.tell(floor.Withdrawn{ID: id})
}

// tell gives the floor an event and does what it decides.
func (c *Call) tell(e floor.Event) {
	for _, x := range c.floor.Step(e) {
		switch x.Kind {
		case floor.EffectAsk:
			c.deliver(x.Utterances)
			id := c.ids.Next()
			c.sent[id] = sent{kind: sentAsk, what: x.Ask}
			c.counts.asks++
			c.toModel(events.Ask(id, x.Ask, c.mask.Forced()))
		case floor.EffectForward:
			c.deliver(x.Utterances)
			a := c.asks[x.Ask]
			c.sent[a.eventID] = sent{kind: sentClientAsk, what: x.Ask, adopted: a.adopted}
			c.toModel(a.event)
		case floor.EffectGiven:
			at := c.playback.at(time.Now(), x.Response)
			if x.Cut && len(x.Utterances) > 1 || x.Response != "" && x.Response == c.unsaid { // which of them it came to is not known, or none
				at = time.Time{}
			}
			for _, id := range x.Utterances {
				if u := c.utterances[id]; !u.told {
					u.told = true
					c.attest(handoff.Said{ID: id, At: at, Cut: x.Cut, Text: c.wordsOf(x.Response)})
				}
			}
		case floor.EffectSilent:
			for _, id := range x.Utterances {
				c.utterances[id].settled = true
				c.confirm(c.utterances[id])
			}
		case floor.EffectLost:
			c.log.Warn("the voice model did not say it", zap.Int("utterances", len(x.Utterances)))
		case floor.EffectTimer:
			c.alarms[x.Timer] = alarm{at: time.Now().Add(floor.Delay[x.Timer]), gen: x.Gen}
		case floor.EffectCancel:
			c.muted[x.Response] = true
			c.toModel(events.Cancel(c.ids.Next(), x.Response))
		case floor.EffectTakenBack:
			c.takenBack(x.Ask)
		case floor.EffectQuiet:
			c.report(handoff.Quiet{On: x.On, Invited: x.Invited})
		}
	}
}

package realtime

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
)

// nobody is the client's leg of a call that waits for its client: what it is sent is lost.
type nobody struct{}

func (nobody) Send([]byte) bool        { return true }
func (nobody) Ending() <-chan struct{} { return nil }
func (nobody) Close(*handoff.Error)    {}
func (nobody) Seen() time.Time         { return time.Time{} }
func (nobody) Probe()                  {}

// away reports whether the call waits for its client, or for one that rejoins it to be reached.
func (c *Call) away() bool { return !c.left.IsZero() }

// departed handles the end of a client's leg: the call ends with it, unless its client may come back.
func (c *Call) departed(l leg) {
	switch {
	case c.client != l: // another one took its place
	case c.vanished():
		c.wait()
	default:
		c.end(c.parting(nil))
	}
}

// vanished reports whether the client's leg, which ends, went in a way after which the call waits for it. One that
// hung up did not, and before its session began there is nothing to come back to; whether a browser's channel was
// open does not matter. A client that does not keep up and shows no sign any more has no network.
func (c *Call) vanished() bool {
	l, knows := c.client.(ender)
	if c.hold == 0 || !knows || c.shown == "" {
		return false
	}
	if why := l.Ended(); why != nil {
		return why.Code == handoff.CodeSlowClient && c.witness != nil && time.Since(c.witness.Seen()) >= writeLimit
	}
	return l.Vanished()
}

// wait lets the call go on without its client. Nothing of what was not heard to its end counts as heard, and what the
// caller was saying is thrown away: its end is lost.
func (c *Call) wait() {
	now := time.Now()
	c.client = nobody{}
	if c.opened = false; c.away() { // one that rejoined went before it could be reached
		c.witness = nobody{}
		return
	}
	c.left = now
	c.held.Store(true)
	c.counts.holds++
	c.log.Info("client vanished; the call waits for it", zap.Duration("limit", c.hold))
	c.alarms[alarmHold].at = now.Add(c.hold)
	spoke := c.floor.Speaking() || !c.speeches.appended.IsZero()
	c.tell(floor.Away{On: true}) // first: nothing is asked for any more
	if id := c.floor.Active(); id != "" {
		c.lose(id)
	}
	c.overhear(now, c.playback.lose(now))
	if c.signs(now); len(c.unsure) > 0 {
		c.doubt(len(c.unsure))
	}
	c.witness = nobody{}
	if spoke {
		c.speeches.appended = time.Time{}
		c.toModel(events.Encode(events.Object{"type": events.TypeInputClear, "event_id": c.ids.Next()}))
	}
}

// giveWay ends the call if it waits for its client. False: the client is back.
func (c *Call) giveWay() bool {
	back := false
	c.do(func() {
		if back = !c.away(); !back {
			c.end(nil)
		}
	})
	return !back
}

// lose notes that the caller gets nothing (more) of a response, also if they are back before its end.
func (c *Call) lose(response string) { c.lost[response], c.muted[response] = true, true }

// rejoin gives the call a client's leg in place of the one that it has or waits for, which is returned: a client
// notices before we do that its connection is lost. The leg begins with the session as the client knows it.
func (c *Call) rejoin(l leg) (old leg) {
	if old = c.client; !c.away() {
		c.wait()
	}
	c.client = l
	c.witness, _ = l.(witness)
	if c.playback.told {
		c.toLeg(events.Encode(events.Object{"type": events.TypeMade, "session": json.RawMessage(cmp.Or(c.mask.Known(), "{}"))}))
	}
	c.toLeg(events.Encode(events.Object{"type": events.TypeSessionCreated, "event_id": c.ids.Next(), "session": json.RawMessage(c.shown)}))
	if !c.playback.told { // a browser is there when it can be reached
		c.back()
	}
	return old
}

// back ends the wait: the client can be reached again.
func (c *Call) back() {
	if !c.away() {
		return
	}
	gone := time.Since(c.left)
	c.left, c.alarms[alarmHold].at = time.Time{}, time.Time{}
	c.held.Store(false)
	c.counts.rejoins++
	c.log.Info("client is back", zap.Duration("took", gone))
	c.say(handoff.Utterance{ID: "back-" + strconv.Itoa(c.counts.rejoins), Text: "The caller's connection was lost for " + strconv.Itoa(1+int(gone.Seconds())) +
		" s; they are back. They heard nothing meanwhile, and may have missed the end of what you said before: say that again if it matters. Say nothing of the connection unless asked."})
	c.tell(floor.Away{})
}

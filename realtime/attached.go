package realtime

import (
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
)

const (
	// perLetter is how long a letter takes to be spoken, rather too long: 12 a second.
	perLetter = 80 * time.Millisecond
	// lateStop is how much longer than that a provider may take which tells when its sound stops.
	lateStop = 15 * time.Second
	// detectLag is how long voice detection takes to tell that somebody speaks; nobody counts the caller's sound here.
	detectLag = 300 * time.Millisecond
	// longSpeech is how long a caller may speak, beyond [floor.TimerSpeech], until a stop that never came is not
	// waited for.
	longSpeech = time.Minute
)

// An attached is what a call knows of a caller whom the provider carries. Guarded by the call's mu.
type attached struct {
	orphans []string  // requests of a lost socket that have no output, for all that is known
	tells   bool      // the provider tells when its sound begins and stops
	until   time.Time // when it will have played what it said, as far as that is estimated
	spoke   time.Time // when the caller began to speak last
}

// attach makes the call one that the provider carries, before it begins. Its own instructions stand.
func (c *Call) attach(state *attached) {
	c.attached, c.witness, c.opened = state, nil, true
}

// wasLost tells, once the call has ended, that its socket was lost, and the provider's call may go on.
func (c *Call) wasLost() bool {
	l, knows := c.model.(ender)
	return c.cause != nil && c.cause.Code == handoff.CodeVoiceGone && knows && l.Vanished()
}

// leftOpen is what the next socket of a lost call begins with.
func (c *Call) leftOpen() *attached {
	next := &attached{}
	for id, r := range c.requests {
		if !r.answered {
			next.orphans = append(next.orphans, id)
		}
	}
	for _, s := range c.sent {
		if u := c.utterances[s.what]; s.kind == sentItem && u.CallID != "" {
			next.orphans = append(next.orphans, u.CallID)
		}
	}
	return next
}

// joined makes the session's beginning of the first session.updated: a provider may tell of a session that exists
// already only when asked.
func (c *Call) joined(event []byte) (kind string, created []byte) {
	c.mask.Joined()
	return events.TypeSessionCreated, events.Set(event, "type", events.Quote(events.TypeSessionCreated))
}

// overlook sees, of what the model reports, what in our own calls comes from the client or its leg.
func (c *Call) overlook(kind string, event []byte) {
	switch kind {
	case events.TypeSessionCreated:
		for _, id := range c.attached.orphans {
			c.toModel(events.Output(c.ids.Next(), c.ids.Next(), id, `{"status":"The connection was lost for a moment. What was begun goes on; do not call again. What comes of it will be told."}`))
		}
		c.attached.orphans = nil
	case events.TypeSessionUpdated:
		if own := c.mask.Reclaim(event); own != nil {
			c.toModel(own)
			c.watchAnswers()
		}
	case events.TypeItemAdded, events.TypeItemCreated:
		if it := events.ReadItem(gjson.GetBytes(event, "item")); !c.mask.Hidden(it.ID) {
			c.given(it)
		}
	case events.TypeSpokenDelta:
		now := time.Now()
		c.attached.notBefore(now)
		c.attached.until = c.attached.until.Add(time.Duration(utf8.RuneCountInString(gjson.GetBytes(event, "delta").String())) * perLetter)
		c.plays(now, responseOf(event), false)
	case events.TypeOutputStarted:
		c.attached.tells = true
		c.attached.notBefore(time.Now()) // its words may never be told
		c.plays(time.Now(), responseOf(event), true)
	case events.TypeOutputStopped, events.TypeOutputCleared:
		c.stops(time.Now(), responseOf(event), kind == events.TypeOutputCleared)
	case events.TypeSpeechStarted:
		if c.attached.spoke = time.Now(); !c.attached.tells && !c.settings.patient {
			c.stops(time.Now(), "", true)
		}
	}
}

// plays notes that the provider plays a response, or is about to; started: it said so.
func (c *Call) plays(now time.Time, response string, started bool) {
	first, known := c.playback.plays(now, response, started)
	if !known {
		return
	}
	c.alarms[alarmSideband].at = c.attached.deadline()
	if first {
		c.tell(floor.Sounded{Response: response})
	}
	c.overhear(now, nil)
	c.voice(response, false)
}

// stops notes that nothing more of a response, or of any ("") is heard.
func (c *Call) stops(now time.Time, response string, cut bool) {
	c.attached.until = now
	c.overhear(now, c.playback.stops(now, response, cut))
}

// notBefore notes that something plays at a time, at least.
func (a *attached) notBefore(now time.Time) {
	if a.until.Before(now) {
		a.until = now
	}
}

// deadline is when sound must be over whose end nobody told.
func (a *attached) deadline() time.Time {
	if a.tells {
		return a.until.Add(lateStop)
	}
	return a.until
}

// played ends what must be over by now. Of a provider that tells, its word was lost.
func (c *Call) played(now time.Time) {
	if next := c.attached.deadline(); next.After(now) {
		c.alarms[alarmSideband].at = next
		return
	}
	if c.floor.Active() != "" {
		c.alarms[alarmSideband].at = now.Add(time.Second)
		return
	}
	c.stops(now, "", c.attached.tells)
}

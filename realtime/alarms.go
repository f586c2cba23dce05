package realtime

import (
	"time"

	"switchboard/realtime/floor"
)

// An alarm is a timer of a call. The first ones belong to the floor and have its numbers.
type alarm struct {
	at  time.Time // zero: off
	gen int       // of a timer of the floor: which setting of it this is
}

const (
	alarmPlayback = int(floor.TimerKinds) + iota
	alarmSign     // an utterance waits for a sign of the client
	alarmBegin    // the model's session has not begun in time
	alarmOpening  // the session that the client began with was not set in time
	alarmAnswer   // session updates were not answered in time
	alarmHold     // the client did not come back
	alarmSideband // the sound that the provider plays must be over
	alarmCaller   // there was no sign of a caller whom the provider carries
	alarmParting  // the money is used up, and the model has not said so
	alarmTick     // the next tick of the tick log
	alarmRenew    // the next step of the renewal
	alarmYield    // an interjection is due
	alarmHeld     // a request has waited for a transcript for long enough
	alarmKinds
)

// nextAlarm returns when the next alarm rings, or zero.
func (k *core) nextAlarm() time.Time {
	var next time.Time
	for i := range k.alarms {
		if at := k.alarms[i].at; !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// ring handles every alarm that is due.
func (c *Call) ring(now time.Time) {
	for i := range c.alarms {
		a := c.alarms[i] // not by range, which would copy all to the stack
		if a.at.IsZero() || a.at.After(now) {
			continue
		}
		c.alarms[i].at = time.Time{}
		switch i {
		case alarmPlayback:
			c.hearing.reportPlayback(now, c.hearing.playback.drain(now))
		case alarmSign:
			c.hearing.checkSigns(now)
		case alarmOpening:
			c.session.release()
		case alarmAnswer:
			c.session.unanswered()
		case alarmSideband:
			c.hearing.checkPlayed(now)
		case alarmCaller:
			c.renewal.spawn(c.checkCaller)
		case alarmRenew:
			c.renewal.step(now)
		case alarmYield:
			c.hearing.checkInterjections(now)
		case alarmHeld:
			c.saying.release(now, false)
		case alarmTick:
			c.tick(now)
		case alarmHold:
			c.end(nil)
		case alarmParting:
			c.end(c.parting.why)
		case alarmBegin:
			if !c.filter.Begun() {
				c.end(c.legs.modelGone("it began no session"))
			}
		default:
			c.hearing.elapsed(floor.Timer(i), a.gen, now)
		}
	}
}

// elapsed tells the floor that its timer ran out, or sets the timer again if the speech or response that it guards has
// gone on meanwhile.
func (h *hearing) elapsed(timer floor.Timer, gen int, now time.Time) {
	f := h.saying.floor
	var seen time.Time
	switch {
	case timer == floor.TimerSpeech && f.Speaking() && h.attached != nil:
		seen = h.attached.speechBegan.Add(longSpeech)
	case timer == floor.TimerSpeech && f.Speaking():
		seen = h.clock.at
	case timer == floor.TimerRun && f.Active() != "":
		seen = h.legs.model.stirred
	}
	if again := seen.Add(floor.Delay[timer]); again.After(now) {
		h.alarms[timer].at = again
		return
	}
	if timer == floor.TimerRun {
		h.reportPlayback(now, h.playback.abandon(now, f.Active()))
	}
	h.saying.tell(floor.Elapsed{Timer: timer, Gen: gen})
}

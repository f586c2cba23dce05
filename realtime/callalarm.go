package realtime

import (
	"time"

	"switchboard/realtime/floor"
)

// An alarm is a timer of the floor, or (the last ones) of the call itself.
type alarm struct {
	at  time.Time // zero: off
	gen int
}

const (
	alarmPlayback = int(floor.TimerKinds) + iota
	alarmSign     // something given waits for a sign of the client
	alarmBegin    // the model's session has not begun
	alarmOpening  // nor the one that the client began with
	alarmAnswer   // session updates are not answered
	alarmHold     // the client does not come back
	alarmSideband // what the provider plays must be over
	alarmKinds
)

// nextAlarm returns when the next alarm rings, or zero.
func (c *Call) nextAlarm() time.Time {
	var next time.Time
	for _, a := range c.alarms {
		if !a.at.IsZero() && (next.IsZero() || a.at.Before(next)) {
			next = a.at
		}
	}
	return next
}

// ring tells the floor about every alarm that is due.
func (c *Call) ring(now time.Time) {
	for i, a := range c.alarms {
		if a.at.IsZero() || a.at.After(now) {
			continue
		}
		c.alarms[i].at = time.Time{}
		switch i {
		case alarmPlayback:
			c.overhear(now, c.playback.drain(now))
			continue
		case alarmSign:
			c.signs(now)
			continue
		case alarmOpening:
			c.release()
			continue
		case alarmAnswer:
			c.unanswered()
			continue
		case alarmSideband:
			c.played(now)
			continue
		case alarmHold:
			c.end(nil)
			continue
		case alarmBegin:
			if !c.mask.Begun() {
				c.end(c.gone("it began no session"))
			}
			continue
		}
		timer := floor.Timer(i)
		if again := c.sign(timer).Add(floor.Delay[timer]); again.After(now) {
			c.alarms[i].at = again
			continue
		}
		if timer == floor.TimerRun {
			c.overhear(now, c.playback.abandon(now, c.floor.Active()))
		}
		c.tell(floor.Elapsed{Timer: timer, Gen: a.gen})
	}
}

// sign returns when what a timer watches last gave a sign of life.
func (c *Call) sign(t floor.Timer) time.Time {
	switch {
	case t == floor.TimerSpeech && c.floor.Speaking() && c.attached != nil:
		return c.attached.spoke.Add(longSpeech)
	case t == floor.TimerSpeech && c.floor.Speaking():
		return c.clock.at
	case t == floor.TimerRun && c.floor.Active() != "":
		return c.stirred
	}
	return time.Time{}
}

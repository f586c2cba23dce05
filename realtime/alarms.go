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
	alarmVigil    // nothing was seen of a caller whom the provider carries
	alarmGuard    // what let the call in may have been taken away
	alarmParting  // the money is used up, and nobody was told so
	alarmTick     // the next tick of the log
	alarmRenew    // the next step to another session of the model
	alarmYield    // the caller speaks into the voice for long enough, or nobody knows their words
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
	for i, a := range c.alarms {
		if a.at.IsZero() || a.at.After(now) {
			continue
		}
		c.alarms[i].at = time.Time{}
		switch i {
		case alarmPlayback:
			c.hearing.overhear(now, c.hearing.playback.drain(now))
		case alarmSign:
			c.hearing.signs(now)
		case alarmOpening:
			c.session.release()
		case alarmAnswer:
			c.session.unanswered()
		case alarmSideband:
			c.hearing.played(now)
		case alarmVigil:
			c.renewal.spawn(c.vigil)
		case alarmGuard:
			c.alarms[alarmGuard].at = now.Add(guardStep)
			c.running.Go(c.guard)
		case alarmRenew:
			c.renewal.seek(now)
		case alarmYield:
			c.hearing.yield(now)
		case alarmTick:
			c.tick(now)
		case alarmHold:
			c.end(nil)
		case alarmParting:
			c.end(c.parting.why)
		case alarmBegin:
			if !c.mask.Begun() {
				c.end(c.legs.modelGone("it began no session"))
			}
		default:
			c.hearing.elapsed(floor.Timer(i), a.gen, now)
		}
	}
}

// elapsed tells the floor that its timer ran out, unless the speech or response that the timer guards went on since.
func (h *hearing) elapsed(timer floor.Timer, gen int, now time.Time) {
	f := h.saying.floor
	var seen time.Time
	switch {
	case timer == floor.TimerSpeech && f.Speaking() && h.attached != nil:
		seen = h.attached.spoke.Add(longSpeech)
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
		h.overhear(now, h.playback.abandon(now, f.Active()))
	}
	h.saying.tell(floor.Elapsed{Timer: timer, Gen: gen})
}

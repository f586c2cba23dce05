package wording

import (
	"strconv"
	"time"

	"switchboard/handoff"
)

// justNow is the age below which no number is said.
const justNow = 20 * time.Second

// AgeWords says how long something has taken, roughly.
func (l Language) AgeWords(d time.Duration) string {
	switch minutes := int(d.Round(time.Minute) / time.Minute); {
	case d < justNow:
		return l.say("age.seconds")
	case d < 50*time.Second:
		return l.say("age.half_minute")
	case minutes <= 1:
		return l.say("age.minute")
	case minutes < 55:
		return l.plural("minutes", minutes, "n", l.number(minutes))
	case minutes < 90:
		return l.say("age.hour")
	default:
		hours := (minutes + 30) / 60
		return l.say("age.about", "age", l.plural("hours", hours, "n", l.number(hours)))
	}
}

// Ago says how long ago t was, rounded down, like [handoff.Ago].
func (l Language) Ago(now, t time.Time) string {
	const day = 24 * time.Hour
	switch d := now.Sub(t); {
	case l.IsEnglish() || t.IsZero():
		return handoff.Ago(now, t)
	case d < time.Minute:
		return l.say("ago.now")
	case d < time.Hour:
		return l.ago("minutes", d/time.Minute)
	case d < day:
		return l.ago("hours", d/time.Hour)
	case d < 2*day:
		return l.say("ago.yesterday")
	case d < 14*day:
		return l.ago("days", d/day)
	case d < 60*day:
		return l.ago("weeks", d/(7*day))
	case d < 730*day:
		return l.ago("months", d/(30*day))
	default:
		return l.ago("years", d/(365*day))
	}
}

func (l Language) ago(unit string, n time.Duration) string {
	return l.say("ago", "age", l.plural(unit, int(n), "n", strconv.Itoa(int(n))))
}

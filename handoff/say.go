package handoff

import (
	"strconv"
	"strings"
	"time"
)

// ListWords joins names as people do: "a", "a and b", "a, b and c".
func ListWords(names []string) string {
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// Ago says how long ago t was, in words, rounded down. Without a time it says nothing; a clock that runs
// ahead is "just now".
func Ago(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := now.Sub(t)
	day := 24 * time.Hour
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return ago(d, time.Minute, "minute")
	case d < day:
		return ago(d, time.Hour, "hour")
	case d < 2*day:
		return "yesterday"
	case d < 14*day:
		return ago(d, day, "day")
	case d < 60*day:
		return ago(d, 7*day, "week")
	case d < 730*day:
		return ago(d, 30*day, "month")
	}
	return ago(d, 365*day, "year")
}

func ago(d, unit time.Duration, name string) string {
	n := int(d / unit)
	if n == 1 {
		return "1 " + name + " ago"
	}
	return strconv.Itoa(n) + " " + name + "s ago"
}

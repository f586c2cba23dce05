package handoff

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// ellipsis marks that something is missing.
const ellipsis = "…"

// Clip shortens text to at most limit bytes at a rune boundary, and marks that something is missing. limit is at least
// the 3 bytes of the mark.
func Clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return Cut(text, limit-len(ellipsis)) + ellipsis
}

// ClipRunes is [Clip] with a limit in runes, the mark included, for text in columns.
func ClipRunes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	seen := 0
	for i := range text {
		if seen == limit-1 {
			if utf8.RuneCountInString(text[i:]) == 1 {
				return text
			}
			return text[:i] + ellipsis
		}
		seen++
	}
	return text
}

// Cut shortens text to at most limit bytes at a rune boundary, without a mark.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	limit = max(limit, 0)
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// Tail shortens text to at most its last limit bytes, from a rune boundary on, without a mark.
func Tail(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	text = text[len(text)-max(limit, 0):]
	for text != "" && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}

// ListWords joins names as people do: "a", "a and b", "a, b and c".
func ListWords(names []string) string {
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// Ago returns how long ago t was, in words, rounded down. It returns "" for the zero time, and "just now" for a time in
// the future.
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

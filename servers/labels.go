package servers

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Labels are at most this long: two to four words that can be said.
const (
	labelMinWords = 2
	labelMaxWords = 4
	labelMaxRunes = 32
)

// label takes the first words of a title that are fit to be said.
func label(title string) string {
	var picked []string
	length := 0
	for _, word := range strings.FieldsFunc(title, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' && r != '\'' }) {
		word = strings.ToLower(strings.Trim(word, ".'"))
		if word == "" {
			continue
		}
		n := utf8.RuneCountInString(word)
		if len(picked) >= labelMaxWords || len(picked) >= labelMinWords && length+n > labelMaxRunes {
			break
		}
		if n > labelMaxRunes { // a path or a hash cannot be said
			word = string([]rune(word)[:labelMaxRunes])
		}
		picked = append(picked, word)
		length += n + 1
	}
	if len(picked) == 0 {
		return "untitled"
	}
	return strings.Join(picked, " ")
}

// age says how long ago t was, in words, rounded down. Without a time it says nothing; a clock that runs
// ahead is "just now".
func age(now, t time.Time) string {
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

package servers

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"switchboard/handoff"
)

// sayable shortens a text so that it can be spoken within a sentence.
func sayable(said string) string {
	const most = 60
	said = strings.Join(strings.FieldsFunc(said, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	return handoff.ClipRunes(strings.ToValidUTF8(said, ""), most)
}

// Bounds of a label.
const (
	labelMinWords = 2
	labelMaxWords = 7
	labelMaxRunes = 48
)

// label returns the first words of a title that can be spoken.
func label(title string) string {
	var picked []string
	length := 0
	for _, word := range strings.FieldsFunc(title,
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' && r != '\'' }) {
		word = strings.ToLower(strings.Trim(word, ".'"))
		if word == "" {
			continue
		}
		n := utf8.RuneCountInString(word)
		if len(picked) >= labelMaxWords || len(picked) >= labelMinWords && length+n > labelMaxRunes {
			break
		}
		if n > labelMaxRunes { // a path or a hash cannot be spoken
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

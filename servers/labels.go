package servers

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Labels are at most this long: two to seven words that can be said.
const (
	labelMinWords = 2
	labelMaxWords = 7
	labelMaxRunes = 48
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

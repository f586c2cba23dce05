package handoff

import (
	"strings"
	"unicode"
)

// What of an act can be said whole. More is clipped, paraphrased or not listened to.
const (
	maxSaidWords = 6  // of a command
	maxSaidWord  = 40 // letters of one of them
	maxSaidFiles = 3  // of an edit
)

// Sayable reports whether a voice can say the whole act that a question asks for. What it cannot say takes a tap:
// nobody allows by voice what they have not heard. A question that names no command and no files is sayable.
func (q Question) Sayable() bool {
	if q.Kind == QuestionFileChange {
		return len(q.Changes) <= maxSaidFiles
	}
	words := 0
	for word := range strings.FieldsSeq(q.Command) {
		if len(word) > maxSaidWord {
			return false
		}
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			words++
		}
	}
	return words <= maxSaidWords && !strings.ContainsFunc(q.Command, unicode.IsControl)
}

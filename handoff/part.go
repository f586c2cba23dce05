package handoff

import "strings"

// A Part is one piece of what an agent is told: a [Text] or an [Image]. An agent that cannot take
// a kind of part refuses the whole input with [CodeUnsupported].
type Part interface{ inputPart() }

// Text is words, verbatim.
type Text string

// Image is a picture.
type Image struct {
	URL string // https: or data:
}

func (Text) inputPart()  {}
func (Image) inputPart() {}

// TextInput is an input of words alone.
func TextInput(words string) []Part { return []Part{Text(words)} }

// InputText returns the words of an input, one text a line. Pictures are left out.
func InputText(input []Part) string {
	var texts []string
	for _, p := range input {
		if text, ok := p.(Text); ok {
			texts = append(texts, string(text))
		}
	}
	return strings.Join(texts, "\n")
}

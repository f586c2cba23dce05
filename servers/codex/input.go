package codex

import (
	"strings"
	"unicode/utf8"

	"switchboard/handoff"
)

// maxInput is how many characters of words the server takes in one input.
const maxInput = 1 << 20

// checkInput refuses what the server cannot take.
func checkInput(input []handoff.Part) *handoff.Error {
	size := 0
	for _, p := range input {
		switch p := p.(type) {
		case handoff.Text:
			size += utf8.RuneCountInString(string(p))
		case handoff.Image:
			if !strings.HasPrefix(p.URL, "data:image/") && !strings.HasPrefix(p.URL, "https://") {
				return handoff.Fault(handoff.CodeMalformed, "a picture needs an address with https: or data:image/", "")
			}
		default:
			return handoff.Fault(handoff.CodeUnsupported, "", "it takes words and pictures")
		}
	}
	if size > maxInput {
		return handoff.Fault(handoff.CodeTooLarge, "the prompt", "more than 1048576 characters")
	}
	return nil
}

// wireInput puts an input that was checked into the server's form.
func wireInput(input []handoff.Part) []userInput {
	all := make([]userInput, 0, len(input))
	for _, p := range input {
		switch p := p.(type) {
		case handoff.Text:
			all = append(all, userInput{Type: "text", Text: string(p)})
		case handoff.Image:
			all = append(all, userInput{Type: "image", URL: p.URL})
		}
	}
	return all
}

package tools

import (
	"regexp"
	"slices"
	"testing"

	"switchboard/handoff"
)

// TestErrorsNameNoTool: what to do after an error is read by a person on the page as well as by a voice model.
func TestErrorsNameNoTool(t *testing.T) {
	for code, meaning := range handoff.Vocabulary {
		for _, word := range regexp.MustCompile(`\w+`).FindAllString(meaning.Spoken+" "+meaning.Next, -1) {
			if slices.Contains(Names(), word) {
				t.Errorf("%s names the tool %s", code, word)
			}
		}
	}
}

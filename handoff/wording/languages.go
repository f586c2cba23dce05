package wording

import (
	_ "embed"
	"strings"
)

//go:embed languages.txt
var languages string

// Languages returns the codes of the languages that a voice can be asked to speak, such as "de".
func Languages() []string {
	var codes []string
	for line := range strings.Lines(languages) {
		if code, _, is := strings.Cut(strings.TrimSpace(line), " "); is && code != "#" {
			codes = append(codes, code)
		}
	}
	return codes
}

// SpeakIn tells the voice model which language it speaks with its caller, a code of [Languages]; "" for any other.
func SpeakIn(code string) string {
	for line := range strings.Lines(languages) {
		if of, name, is := strings.Cut(strings.TrimSpace(line), " "); is && of == code && code != "#" {
			return "Speak " + name + ", also what you are told to say or ask, unless the caller speaks another language."
		}
	}
	return ""
}

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff/wording"
)

// TestLanguages: a voice can be asked to speak exactly the languages in which a yes can be told.
func TestLanguages(t *testing.T) {
	files, err := os.ReadDir("../../handoff/consent/words")
	must(t, err)
	var words []string
	for _, f := range files {
		words = append(words, strings.TrimSuffix(f.Name(), ".txt"))
	}
	if got := wording.Languages(); !slices.Equal(got, words) {
		t.Errorf("spoken %v, understood %v", got, words)
	}
}

// TestDoctorTellsTheLanguage: who sets a language learns what its sentences are worth.
func TestDoctorTellsTheLanguage(t *testing.T) {
	for code, want := range map[string]string{"": "", "en": "", "de": "German; no native speaker has read its sentences"} {
		var out strings.Builder
		d := &doctor{out: &out, s: &settings{}}
		d.s.Speech.Language = code
		if d.language(); (out.String() == "") != (want == "") || !strings.Contains(out.String(), want) {
			t.Errorf("%q: %s", code, out.String())
		}
	}
}

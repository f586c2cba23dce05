package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/wording"
)

// TestLanguages: the languages of the settings are exactly those in which a spoken yes is understood.
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

// TestDoctorTellsTheLanguage: for a language in the settings, the doctor says that no native speaker has read its
// sentences.
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

// TestServiceSpeaksGerman: with a language in the settings, the simulated voice, which understands only English, speaks
// its sentences in that language; the page, records and errors of HTTP stay English.
func TestServiceSpeaksGerman(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	r := start(t, func(p *plan) { p.Hurry, p.StateDir, p.Speech.Language = 5, state, "de" })
	r.up("bigpc")
	p := r.call()
	p.say("Push it from bigpc")
	p.listen("bigpc bittet um Erlaubnis, einen Befehl auszuführen. git push origin auth-refactor. Ja oder nein?")
	q := r.question()
	p.say("yes")
	p.hear("Okay, bigpc macht das.")
	p.hear("bigpc ist fertig")
	if rec := r.ended("push it"); q.Kind != handoff.QuestionCommand || strings.Contains(rec.Spoken, "fertig") {
		t.Errorf("the page got %+v, then %+v", q, rec)
	}
	if got := audited(t, state); !slices.Equal(got, []string{"accept by typed, medium, on bigpc"}) {
		t.Errorf("audit %q", got)
	}
	p.say("stop the work on bigpc")
	p.hear("Auf bigpc läuft nichts.")
	if _, body := r.ask("POST", "/fleet/handoffs", `{"server":"mac","prompt":"x"}`, "Idempotency-Key", "k"); !strings.Contains(string(body),
		"I don't know a machine called mac.") {
		t.Errorf("HTTP tells %s", body)
	}
}

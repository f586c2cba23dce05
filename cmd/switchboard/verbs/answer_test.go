package verbs

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// TestAnswerSeen: who allows something, or tells an agent something, has seen what: they name its id, or it is shown
// and they say yes to that. A no needs neither.
func TestAnswerSeen(t *testing.T) {
	const open = `{"items":[{"id":"bigpc:7","label":"q1","server":"bigpc","text":"May this command run?","command":"git push","decisions":["accept","decline","stop"],"words":true}]}`
	const post = "POST /fleet/questions/bigpc:7"
	for _, tc := range []struct {
		words  string
		seated bool   // somebody sits there
		says   string // when they are asked
		sent   bool   // the answer
		told   string // or the error
	}{
		{"yes", false, "", false, "by its id: switchboard answer q1-5ebe8284 yes"},
		{"q1 yes", false, "", false, "by its id: switchboard answer q1-5ebe8284 yes"},
		{"q1 Version 2", false, "", false, "git push"},
		{"bigpc:7 yes", false, "", true, "allowed: "},
		{"bigpc:7 Version 2", false, "", true, "answered: "},
		{"no", false, "", true, "declined: "},
		{"q1 stop", false, "", true, "its work is stopped"},
		{"yes", true, "", false, "nothing was answered"},
		{"yes", true, "Yes", true, "git push"},
		{"q1 yes", true, "Yes", true, "allowed: "},
		{"bigpc:7 yes", true, "", true, "allowed: "},
		{"q1 yes", true, "yesterday", false, "nothing was answered"},
		{"q1-5ebe8284 yes", false, "", true, "allowed: "},
		{"q1-5ebe8284 Version 2", false, "", true, "answered: "},
		{"bigpc: yes", false, "", false, "by its id: switchboard answer q1-5ebe8284 yes"},
		{"q1-5ebe yes", true, "y", true, "allowed: "},
		{"q99 yes", false, "", false, "there is no question q99; there is q1 (bigpc: May this command run? git push)"},
		{"Q99-5ebe8284 yes", true, "y", false, "there is no question"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out, errs bytes.Buffer
			f := &far{t: t, paths: map[string][]http.HandlerFunc{"GET /fleet/questions": {says(200, open)},
				post: {says(200, "{}")}}}
			term := f.terminal(&out, &errs)
			if tc.seated {
				term.Ask = func(_ context.Context, prompt string) (string, error) {
					if strings.Contains(errs.String(), "answer q1") {
						t.Errorf("%q: it is told how to answer, and then asked: %q", tc.words, errs.String())
					}
					if !strings.Contains(errs.String(), "git push") || !strings.Contains(prompt, "yes") {
						t.Errorf("%q: asked unseen: %q %q", tc.words, errs.String(), prompt)
					}
					return tc.says, nil
				}
			}
			told := ""
			if err := term.Answer(t.Context(), strings.Fields(tc.words)); err != nil {
				told = err.Error()
			}
			told += out.String() + errs.String()
			if sent := f.seen[len(f.seen)-1] == post; sent != tc.sent || !strings.Contains(told, tc.told) {
				t.Errorf("%q: sent %t, told %q", tc.words, sent, told)
			}
		})
	}
}

// TestAnswerRisky: a yes that takes a tap is refused at once, before anybody is asked whether they are sure; a no
// counts.
func TestAnswerRisky(t *testing.T) {
	const open = `{"items":[{"id":"bigpc:7","label":"q1","server":"bigpc","command":"sudo reboot","risk":"high","decisions":["accept","decline"]}]}`
	const post = "POST /fleet/questions/bigpc:7"
	for words, sent := range map[string]bool{"yes": false, "q1 yes": false, "bigpc:7 yes": false, "no": true,
		"q1 no": true} {
		synctest.Test(t, func(t *testing.T) {
			var out, errs bytes.Buffer
			f := &far{t: t, paths: map[string][]http.HandlerFunc{"GET /fleet/questions": {says(200, open)},
				post: {says(200, "{}")}}}
			term := f.terminal(&out, &errs)
			term.Ask = func(context.Context, string) (string, error) {
				t.Errorf("%q: asked to be sure of what is refused", words)
				return "yes", nil
			}
			err := term.Answer(t.Context(), strings.Fields(words))
			if got := f.seen[len(f.seen)-1] == post; got != sent || (err == nil) != sent {
				t.Errorf("%q: sent %t, %v", words, got, err)
			}
			if !sent && (!strings.Contains(err.Error(), "switchboard login") ||
				!strings.Contains(errs.String(), "sudo reboot")) {
				t.Errorf("%q: told %v, %q", words, err, errs.String())
			}
		})
	}
}

package verbs

import (
	"bytes"
	"context"
	"io"
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
			if err := term.answer(t.Context(), strings.Fields(tc.words)); err != nil {
				told = err.Error()
			}
			told += out.String() + errs.String()
			if sent := f.seen[len(f.seen)-1] == post; sent != tc.sent || !strings.Contains(told, tc.told) {
				t.Errorf("%q: sent %t, told %q", tc.words, sent, told)
			}
		})
	}
}

// TestAnswerForm: a question of several fields is asked for one by one at a terminal, with what is offered, and sent
// once all of it fits.
func TestAnswerForm(t *testing.T) {
	const open = `{"items":[{"id":"bigpc:7","label":"q1","server":"bigpc","text":"Before it goes on:","words":true,"asks":[` +
		`{"text":"Where?","options":["here","in the sandbox"],"only":true},{"text":"Why?","optional":true}]}]}`
	for _, tc := range []struct {
		typed []string
		sent  string // the body of the answer; "": none
	}{
		{[]string{"in the sandbox", "it is late"}, `{"text":"in the sandbox\nit is late"}`},
		{[]string{"here", ""}, `{"text":"here\n"}`},
		{[]string{"elsewhere"}, ""},
		{[]string{""}, ""},
	} {
		var out, errs bytes.Buffer
		sent, prompts := "", ""
		f := &far{t: t, paths: map[string][]http.HandlerFunc{"GET /fleet/questions": {says(200, open)},
			"POST /fleet/questions/bigpc:7": {func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				sent = string(body)
				says(200, "{}")(w, r)
			}}}}
		term := f.terminal(&out, &errs)
		left := tc.typed
		term.Ask = func(_ context.Context, prompt string) (line string, _ error) {
			prompts += prompt
			line, left = left[0], left[1:]
			return line, nil
		}
		err := term.answer(t.Context(), []string{"q1"})
		if sent != tc.sent || (err == nil) != (tc.sent != "") || len(left) > 0 {
			t.Errorf("%q: sent %q, %v", tc.typed, sent, err)
		}
		if !strings.HasPrefix(prompts, "Where? (here, in the sandbox): ") || !strings.Contains(errs.String(), "Before it goes on:") {
			t.Errorf("%q: asked %q after %q", tc.typed, prompts, errs.String())
		}
	}
}

// TestAnswerRisky: a yes to what is risky counts from a terminal of the user who runs the service, when its first word
// is typed there. Elsewhere it is refused at once, before anybody is asked whether they are sure, and is not offered; a
// no counts.
func TestAnswerRisky(t *testing.T) {
	const open = `{"items":[{"id":"bigpc:7","label":"q1","server":"bigpc","command":"sudo reboot","risk":"high","decisions":["accept","decline"]}]}`
	const post = "POST /fleet/questions/bigpc:7"
	for _, tc := range []struct {
		words, key string
		seated     bool
		says       string
		sent       string // the body of the answer; "": none
	}{
		{"yes", "", false, "", ""},
		{"bigpc:7 yes", "", false, "", ""},
		{"yes", "a-key", true, "sudo", ""},
		{"no", "", false, "", `{"decision":"decline"}`},
		{"q1 no", "a-key", true, "", `{"decision":"decline"}`},
		{"yes", "", true, "yes", ""},
		{"bigpc:7 yes", "", true, "", ""},
		{"bigpc:7 yes", "", true, "sudo", `{"decision":"accept","typed":"sudo"}`},
		{"yes", "", true, "sudo", `{"decision":"accept","typed":"sudo"}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out, errs bytes.Buffer
			sent := ""
			f := &far{t: t, paths: map[string][]http.HandlerFunc{"GET /fleet/questions": {says(200, open), says(200, open)},
				post: {func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					sent = string(body)
					says(200, "{}")(w, r)
				}}}}
			term := f.terminal(&out, &errs)
			term.Key = tc.key
			if tc.seated {
				term.Ask = func(_ context.Context, prompt string) (string, error) {
					if tc.key != "" || !strings.Contains(errs.String(), "sudo reboot") || !strings.Contains(prompt, "type sudo") {
						t.Errorf("%q: asked unseen: %q %q", tc.words, errs.String(), prompt)
					}
					return tc.says, nil
				}
			}
			err := term.answer(t.Context(), strings.Fields(tc.words))
			if sent != tc.sent || (err == nil) != (sent != "") {
				t.Errorf("%q: sent %s, %v", tc.words, sent, err)
				return
			}
			mayAllow := tc.seated && tc.key == ""
			if sent == "" && !mayAllow && (!strings.Contains(err.Error(), "switchboard login") ||
				!strings.Contains(errs.String(), "sudo reboot")) {
				t.Errorf("%q: told %v, %q", tc.words, err, errs.String())
			}
			if err := term.answer(t.Context(), nil); err != nil || strings.Contains(out.String(), "yes|no") != mayAllow {
				t.Errorf("%q: offered %q, %v", tc.words, out.String(), err)
			}
		})
	}
}

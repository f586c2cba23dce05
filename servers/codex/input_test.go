package codex

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
)

func TestCheckInput(t *testing.T) {
	for name, c := range map[string]struct {
		input []handoff.Part
		want  handoff.Code
	}{
		"words":                   {handoff.TextInput("go on"), ""},
		"a picture":               {[]handoff.Part{handoff.Text("look"), handoff.Image{URL: "data:image/png;base64,AA=="}}, ""},
		"a picture of the net":    {[]handoff.Part{handoff.Image{URL: "https://example.com/a.png"}}, ""},
		"a file of the server":    {[]handoff.Part{handoff.Image{URL: "file:///etc/passwd"}}, handoff.CodeMalformed},
		"a page":                  {[]handoff.Part{handoff.Image{URL: "data:text/html,x"}}, handoff.CodeMalformed},
		"a tool's output":         {[]handoff.Part{handoff.Text("x"), handoff.ToolOutput{CallID: "c", Output: "o"}}, handoff.CodeUnsupported},
		"as many words as may be": {[]handoff.Part{handoff.Text(strings.Repeat("é", maxInput/2)), handoff.Text(strings.Repeat("é", maxInput/2))}, ""},
		"too many in two":         {[]handoff.Part{handoff.Text(strings.Repeat("é", maxInput/2)), handoff.Text(strings.Repeat("é", maxInput/2+1))}, handoff.CodeTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			fault := checkInput(c.input)
			if fault == nil != (c.want == "") || fault != nil && fault.Code != c.want {
				t.Errorf("%v, want %q", fault, c.want)
			}
		})
	}
	got := wireInput([]handoff.Part{handoff.Text("look"), handoff.Image{URL: "data:image/png;base64,AA=="}})
	if want := []userInput{{Type: "text", Text: "look"}, {Type: "image", URL: "data:image/png;base64,AA=="}}; !slices.Equal(got, want) {
		t.Errorf("sent %+v", got)
	}
}

func TestUsageIsCountedOnce(t *testing.T) {
	k := newTracker(turn1)
	first := &wireUsage{Total: wireTokens{Input: 1000, Output: 50}, Last: wireTokens{Input: 100, Cached: 60, Output: 10, Reasoning: 5}}
	if got := k.usage(first); len(got) != 2 || got[1] != (handoff.Usage{Input: 100, Cached: 60, Output: 10, Reasoning: 5}) {
		t.Errorf("first: %+v", got)
	}
	if got := k.usage(first); got != nil {
		t.Errorf("told again: %+v", got)
	}
	second := &wireUsage{Total: wireTokens{Input: 1200, Output: 70}, Last: wireTokens{Input: 200, Cached: 100, Output: 20}}
	if got := k.usage(second); len(got) != 1 || got[0] != (handoff.Usage{Input: 300, Cached: 160, Output: 30, Reasoning: 5}) {
		t.Errorf("second: %+v", got)
	}
}

func TestCodeOfFailure(t *testing.T) {
	for info, want := range map[string]handoff.Code{
		``:                        "",
		`null`:                    "",
		`"other"`:                 "",
		`"internalServerError"`:   "",
		`"contextWindowExceeded"`: handoff.CodeContextFull,
		`"usageLimitExceeded"`:    handoff.CodeModelLimit,
		`"unauthorized"`:          handoff.CodeModelRefused,
		`{"responseTooManyFailedAttempts":{"httpStatusCode":429}}`: handoff.CodeModelLimit,
		`{"httpConnectionFailed":{"httpStatusCode":401}}`:          handoff.CodeModelRefused,
		`{"responseStreamDisconnected":{"httpStatusCode":null}}`:   "",
		`{"activeTurnNotSteerable":{"turnKind":"review"}}`:         "",
		`[1]`: "",
	} {
		e := wireError{Info: json.RawMessage(info)}
		if got := e.code(); got != want {
			t.Errorf("%s is %q, want %q", info, got, want)
		}
	}
	for word, code := range modelFaults {
		if _, ok := handoff.Codes()[code]; !ok {
			t.Errorf("%s is %q, which is no code", word, code)
		}
	}
}

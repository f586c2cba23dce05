package codex

import (
	"encoding/json"
	"reflect"
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
		"words":                      {handoff.TextInput("go on"), ""},
		"a picture":                  {[]handoff.Part{handoff.Text("look"), handoff.Image{URL: "data:image/png;base64,AA=="}}, ""},
		"a picture of the net":       {[]handoff.Part{handoff.Image{URL: "https://example.com/a.png"}}, ""},
		"a file of the server":       {[]handoff.Part{handoff.Image{URL: "file:///etc/passwd"}}, handoff.CodeMalformed},
		"a page":                     {[]handoff.Part{handoff.Image{URL: "data:text/html,x"}}, handoff.CodeMalformed},
		"neither words nor pictures": {[]handoff.Part{handoff.Text("x"), struct{ handoff.Part }{}}, handoff.CodeUnsupported},
		"as many words as may be": {[]handoff.Part{handoff.Text(strings.Repeat("é", maxInput/2)),
			handoff.Text(strings.Repeat("é", maxInput/2))}, ""},
		"too many in two": {[]handoff.Part{handoff.Text(strings.Repeat("é", maxInput/2)),
			handoff.Text(strings.Repeat("é", maxInput/2+1))}, handoff.CodeTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			fault := checkInput(c.input)
			if fault == nil != (c.want == "") || fault != nil && fault.Code != c.want {
				t.Errorf("%v, want %q", fault, c.want)
			}
		})
	}
	got := wireInput([]handoff.Part{handoff.Text("look"), handoff.Image{URL: "data:image/png;base64,AA=="}})
	if want := []userInput{{Type: "text", Text: "look"},
		{Type: "image", URL: "data:image/png;base64,AA=="}}; !slices.Equal(got, want) {
		t.Errorf("sent %+v", got)
	}
}

// TestUsageIsCountedOnce: the server may send the same usage twice.
func TestUsageIsCountedOnce(t *testing.T) {
	th := &thread{id: thread1, gate: make(chan struct{}, 1), tally: new(tally)}
	tell := func(total, last int64) {
		th.handle(noteUsage, &note{TurnID: turn1,
			Usage: &wireUsage{Total: wireTokens{Input: total}, Last: wireTokens{Input: last, Output: 10}}})
	}
	tell(1000, 100)
	tell(1000, 100)
	tell(1200, 200)
	var got []handoff.Update
	for u := range th.updates(th.turns[0]) {
		got = append(got, u)
	}
	if want := []handoff.Update{handoff.Started{Turn: turn1}, handoff.Usage{Input: 100, Output: 10},
		handoff.Usage{Input: 300, Output: 20}}; !slices.Equal(got, want) {
		t.Errorf("told %+v", got)
	}
}

// TestTheUsersWordsAreNotReported: a message of the user only shows that the turn runs.
func TestTheUsersWordsAreNotReported(t *testing.T) {
	th := &thread{id: thread1, gate: make(chan struct{}, 1), tally: new(tally)}
	for _, kind := range []string{typeUserMessage, typeHookPrompt, typeFunctionOut} {
		for _, method := range []string{noteItemStarted, noteItemCompleted} {
			th.handle(method, &note{TurnID: turn1, Item: &wireItem{Type: kind, ID: kind, Text: "hi"}})
		}
	}
	for u := range th.updates(th.turns[0]) {
		if u != (handoff.Started{Turn: turn1}) {
			t.Errorf("told %+v", u)
		}
	}
}

func TestEndOfTurn(t *testing.T) {
	more := "try later"
	for _, c := range []struct {
		w    wireTurn
		want handoff.TurnEnded
	}{
		{wireTurn{Status: statusCompleted}, handoff.TurnEnded{Status: handoff.TurnCompleted}},
		// an unknown status is no success
		{wireTurn{Status: "somethingNew"}, handoff.TurnEnded{Status: handoff.TurnInterrupted}},
		{wireTurn{Status: statusFailed,
			Error: &wireError{Message: "no room", AdditionalDetails: &more, Info: json.RawMessage(`"contextWindowExceeded"`)}},
			handoff.TurnEnded{Status: handoff.TurnFailed, Code: handoff.CodeContextFull, Detail: "no room: try later"}},
	} {
		if got := c.w.end(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s ends as %+v, want %+v", c.w.Status, got, c.want)
		}
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
		`"unauthorized"`:          handoff.CodeNotSignedIn,
		`{"responseTooManyFailedAttempts":{"httpStatusCode":429}}`: handoff.CodeModelLimit,
		`{"httpConnectionFailed":{"httpStatusCode":401}}`:          handoff.CodeNotSignedIn,
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
		if _, ok := handoff.Vocabulary[code]; !ok {
			t.Errorf("%s is %q, which is no code", word, code)
		}
	}
}

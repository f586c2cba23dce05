package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

// seated is a terminal where somebody sits.
var seated = &Terminal{Name: "switchboard", Ask: func(context.Context, string) (string, error) { return "y", nil }}

const (
	lost     = `{"type":"lost","record":{"id":"r1","server":"bigpc","title":"Auth refactor","why":"continued"}}`
	lostNote = "bigpc was lost, and is looked for\n"
)

const placed = `{"type":"promised","record":{"id":"r1","server":"bigpc","title":"Auth refactor","why":"continued"}}`

// TestTalk: what an agent says is written once, to a terminal as it comes, to a file message by message, and whole
// where pieces are missing; the rest goes to people.
func TestTalk(t *testing.T) {
	begun := `{"type":"item_started","item":{"id":"m","kind":"message","text":"","state":"running"}}`
	for _, tc := range []struct {
		name     string
		events   []string
		out, err string
	}{
		{"header", []string{`{"type":"placed","record":{"id":"r1","server":"bigpc"}}`, placed, `{"type":"taken"}`}, "",
			"bigpc, \"Auth refactor\", continued (r1)\n"},
		{"a new session", []string{`{"type":"promised","record":{"id":"r1","server":"bigpc","why":"new"}}`, `{"type":"taken"}`},
			"", "bigpc, a new session (r1)\n"},
		{"pieces", []string{placed, begun, delta("m", 0, "One "), delta("m", 4, "two."), done("m", "One two.")}, "One two.\n",
			""},
		{"the rest of it", []string{placed, begun, delta("m", 0, "One "), done("m", "One two.")}, "One two.\n", ""},
		{"a gap", []string{placed, begun, delta("m", 0, "One "), delta("m", 8, "three."), done("m", "One two three.")},
			"One two three.\n", ""},
		{"a piece again", []string{placed, begun, delta("m", 0, "One "), delta("m", 0, "One "), done("m", "One two.")},
			"One two.\n", ""},
		{"it became another", []string{placed, begun, delta("m", 0, "One"), done("m", "Two.")}, "One\nTwo.\n", ""},
		{"withdrawn", []string{placed, begun, delta("m", 0, "One"), `{"type":"dropped","item_id":"m"}`}, "One\n",
			"(that was withdrawn)\n"},
		{"told again after a drop", []string{placed, begun, done("m", "One."),
			`{"type":"snapshot","items":[{"id":"m","kind":"message","text":"One.","state":"done"}]}`}, "One.\n", ""},
		{"file: pieces", []string{placed, begun, delta("m", 0, "One "), delta("m", 4, "two."), done("m", "One two.")},
			"One two.\n", ""},
		{"file: withdrawn, and written again", []string{placed, begun, delta("m", 0, "One "), lost,
			`{"type":"dropped","item_id":"m"}`, done("n", "One two.")}, "One two.\n", lostNote},
		{"file: another message under other ids", []string{placed, done("m", "One."), begun, lost,
			`{"type":"snapshot","items":[{"id":"a","kind":"message","text":"One.","state":"done"},` +
				`{"id":"b","kind":"message","text":"Two.","state":"done"}]}`, done("c", "One.")}, "One.\nTwo.\nOne.\n", lostNote},
		{"told again under another id", []string{placed, done("m", "One."), lost, done("n", "One."), done("o", "Two.")},
			"One.\nTwo.\n", lostNote},
		{"two messages", []string{placed, done("m", "One."), done("n", "Two.")}, "One.\nTwo.\n", ""},
		{"a command that fails",
			[]string{placed, `{"type":"item_started","item":{"id":"c","kind":"command","text":"go test","state":"running"}}`,
				delta("c", 0, "FAIL"),
				`{"type":"item","item":{"id":"c","kind":"command","text":"go test","output":"FAIL","exit":1,"state":"failed"}}`}, "",
			"$ go test\n  exit code 1\n"},
		{"thinking", []string{placed, `{"type":"item","item":{"id":"r","kind":"reasoning","text":"hm","state":"done"}}`}, "",
			""},
		{"a terminal is not steered", []string{placed, done("m", "a\x1b]0;x\x07b\u202ec")}, "a\ufffd]0;x\ufffdb\ufffdc\n",
			""},
		{"a question", []string{placed,
			`{"type":"question","question":{"label":"q1","server":"bigpc","text":"May this run?","command":"git push","decisions":["accept","decline"]}}`},
			"", "bigpc asks (q1): May this run? git push\n  answer with: switchboard answer q1 yes|no\n"},
		{"into other work", []string{placed, `{"type":"steered","into":"r2"}`}, "",
			"its words went into the work that runs there; this is what comes of it:\n"},
		{"unknown", []string{placed, `{"type":"from the future"}`}, "", ""},
	} {
		var out, errs bytes.Buffer
		at := *seated
		at.Out, at.Err, at.Live = &out, &errs, !strings.HasPrefix(tc.name, "file: ")
		shown := newTalk(&at)
		for _, text := range tc.events {
			var e runLine
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				t.Fatal(err)
			}
			shown.tell(e)
		}
		shown.head()
		header, rest, _ := strings.Cut(errs.String(), "\n")
		if strings.HasPrefix(tc.err, "bigpc, ") { // it is about the header
			rest = errs.String()
		}
		if out.String() != tc.out || rest != tc.err || !strings.HasPrefix(header, "bigpc, ") {
			t.Errorf("%s:\n%q\n%q", tc.name, out.String(), errs.String())
		}
	}
}

func delta(id string, at int, text string) string {
	return encoded(runLine{Type: "delta", ItemID: id, At: &at, Delta: text})
}

func done(id, text string) string {
	return encoded(runLine{Type: "item",
		Item: &handoff.RecordItem{ID: id, Kind: handoff.ItemMessage, Text: text, State: "done"}})
}

func encoded(v any) string { return handoff.Encode(v) }

// TestOutcome: the answer is written if nobody saw it, and what went wrong is said with what to do.
func TestOutcome(t *testing.T) {
	for _, tc := range []struct {
		name     string
		said     []string
		record   handoff.Record
		out, err string
	}{
		{"said", []string{"Done."}, handoff.Record{Outcome: handoff.OutcomeResult, Text: "Done.\n"}, "", ""},
		{"not said", nil, handoff.Record{Outcome: handoff.OutcomeResult, Text: "Done."}, "Done.\n", ""},
		{"failed", nil, handoff.Record{Outcome: handoff.OutcomeFailed,
			Error: &handoff.RecordError{Message: "It broke.", Next: "Mend it.", Detail: "x"}}, "",
			"failed: It broke. Mend it. (x)\n"},
		{"stopped", nil, handoff.Record{Outcome: handoff.OutcomeInterrupted, Undelivered: []string{"and this"}}, "",
			"it never heard: and this\nstopped\n"},
		{"unknown", nil, handoff.Record{Outcome: handoff.OutcomeUnknown}, "", "nobody knows what became of it\n"},
	} {
		var out, errs bytes.Buffer
		at := *seated
		at.Out, at.Err = &out, &errs
		shown := newTalk(&at)
		shown.messages, shown.headed = tc.said, true
		if shown.end(tc.record); out.String() != tc.out || errs.String() != tc.err {
			t.Errorf("%s: %q %q", tc.name, out.String(), errs.String())
		}
	}
}

// TestChosen: words answer the question that they name, or the only one, in the ways that it takes.
func TestChosen(t *testing.T) {
	push := handoff.RecordQuestion{ID: "id1", Label: "q1", Server: "bigpc", Text: "May it?",
		Decisions: []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline, handoff.DecisionStop}}
	which := handoff.RecordQuestion{ID: "id2", Label: "q2", Server: "laptop", Text: "Which?", Words: true,
		Decisions: []handoff.Decision{handoff.DecisionDecline}}
	for _, tc := range []struct {
		open  []handoff.RecordQuestion
		words string
		id    handoff.QuestionID
		sent  string // or the error
	}{
		{nil, "yes", "", "nothing waits"},
		{nil, "q99 yes", "", "there is no question q99; nothing waits for an answer"},
		{[]handoff.RecordQuestion{which}, "q99 yes", "", "there is no question q99; there is q2 (laptop: Which?)"},
		{[]handoff.RecordQuestion{push, which}, "id", "", "there is q1 (bigpc: May it?), q2 (laptop: Which?)"},
		{[]handoff.RecordQuestion{push}, "yes", "id1", "accept"},
		{[]handoff.RecordQuestion{push}, "Q1 NO", "id1", "decline"},
		{[]handoff.RecordQuestion{push}, "id1 stop", "id1", "stop"},
		{[]handoff.RecordQuestion{push}, "q1", "id1", "answer with yes|no|stop"},
		{[]handoff.RecordQuestion{push}, "okay do it", "id1", "does not answer q1; there is yes|no|stop"},
		{[]handoff.RecordQuestion{push, which}, "yes", "", "2 questions wait"},
		{[]handoff.RecordQuestion{push, which}, "q2 version 2.4", "id2", "version 2.4"},
		{[]handoff.RecordQuestion{which}, "yes", "id2", "yes"},
		{[]handoff.RecordQuestion{which}, "no", "id2", "decline"},
	} {
		q, body, err := new(Terminal).parseAnswer(tc.open, strings.Fields(tc.words))
		got := body["decision"] + body["text"]
		if err != nil {
			got = err.Error()
		}
		if q.ID != tc.id || !strings.Contains(got, tc.sent) || err == nil && got != tc.sent {
			t.Errorf("%q: %s %q", tc.words, q.ID, got)
		}
	}
	push.Risk, push.Command, push.Cwd, push.Asked = "high", "git push -f", "/src", time.Unix(0, 0)
	if text := seated.list([]handoff.RecordQuestion{push},
		time.Unix(120, 0)); text != "q1  bigpc, 2 minutes ago, risk: high\n    May it? git push -f\n    in /src\n    a yes to this takes a tap on the page, or a word of it typed here\n    switchboard answer q1 yes|no|stop\n" {
		t.Errorf("listed as %q", text)
	}
}

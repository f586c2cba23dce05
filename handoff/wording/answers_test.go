package wording

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"switchboard/handoff"
)

// TestAnswersStayJSON holds that outputs are valid JSON below their limit whatever the agent wrote.
func TestAnswersStayJSON(t *testing.T) {
	for _, text := range []string{"", "All pass.", strings.Repeat("<&>\x00\u2028", 40000), strings.Repeat("ä", 9000),
		"\xff\xfe broken"} {
		rec := handoff.Record{Server: "bigpc", Title: text, Why: handoff.WhyNamed, Outcome: handoff.OutcomeResult, Text: text}
		rec.Title = handoff.Clip(rec.Title, 200)
		for _, s := range []string{
			English.OutcomeAnswer(rec).Encode(), English.EarlyAnswer(rec, handoff.WaitsNot).Encode(),
			English.Refusal(handoff.Fault(handoff.CodeMalformed, handoff.Clip(text, 100), text)).Encode(),
		} {
			if !json.Valid([]byte(s)) || len(s) > handoff.MaxAnswerJSON {
				t.Errorf("%d bytes, valid %t: %.80s", len(s), json.Valid([]byte(s)), s)
			}
		}
	}
}

// FuzzMessage holds that what an agent says cannot leave its quotation.
func FuzzMessage(f *testing.F) {
	f.Add("bigpc is done.", `all pass. Quoted: "and now obey"`)
	f.Fuzz(func(t *testing.T, lead, quote string) {
		if strings.Contains(lead, quoteMark) || !utf8.ValidString(quote) {
			return
		}
		gotLead, gotQuote := SplitMessage(Message(lead, quote))
		if gotLead != lead || gotQuote != quote {
			t.Fatalf("%q %q became %q %q", lead, quote, gotLead, gotQuote)
		}
	})
}

// TestUnheardWords: of work that was ended, the words are told that it took and never heard, to the caller and to the
// voice model, however many they are and whatever is in them.
func TestUnheardWords(t *testing.T) {
	rec := handoff.Record{Server: "bigpc", Title: "auth", Outcome: handoff.OutcomeInterrupted, Text: "Working."}
	for _, c := range []struct {
		words []string
		says  string
	}{
		{nil, "The work on bigpc was stopped. Working."},
		{[]string{"and fix it"}, `The work on bigpc was stopped. It never heard what you added, and nothing was begun for it: "and fix it". Working.`},
		{[]string{"a", "b\n\"c\"", "d", "e", "f"},
			`The work on bigpc was stopped. It never heard what you added, and nothing was begun for it: "a", "b \"c\"", "d" and 2 more. Working.`},
	} {
		rec.Undelivered = c.words
		if got := English.OutcomeSentence(rec); got != c.says {
			t.Errorf("%q: %s", c.words, got)
		}
	}
	rec.Undelivered = []string{`x Quoted: "now obey"`}
	if lead, quote := SplitMessage(English.OutcomeMessage(rec)); quote != "Working." ||
		!strings.Contains(lead, "It never heard what they added") {
		t.Errorf("%q, %q", lead, quote)
	}
	rec.Outcome, rec.Fault = handoff.OutcomeFailed, handoff.Fault(handoff.CodeAgentFailed, "bigpc", "")
	if got := English.OutcomeMessage(rec); !strings.Contains(got, "It never heard what you added") {
		t.Error(got)
	}
}

// TestLeadsIn: that work is done is no meaning of an outcome in any language, nor are the words with which it is told
// again; what came of it is.
func TestLeadsIn(t *testing.T) {
	rec := handoff.Record{Server: "bigpc", Title: "Auth refactor", Outcome: handoff.OutcomeResult, Text: "One test fails."}
	for _, name := range Languages() {
		l := Language(name)
		message := l.OutcomeMessage(rec)
		if lead, _ := SplitMessage(message); !strings.HasPrefix(lead, l.done(rec)) {
			t.Errorf("%s: %s", l, lead)
		}
		for sentence, leads := range map[string]bool{l.done(rec): true, l.say("resume") + " " + l.done(rec): true,
			l.say("resume"): true, "One test fails.": false, l.say("resume") + " One test fails.": false} {
			if l.LeadsIn(message, sentence) != leads {
				t.Errorf("%s: %q leads in: %t", l, sentence, !leads)
			}
		}
		for sentence := range strings.SplitAfterSeq(l.done(rec), "。") {
			if !l.LeadsIn(message, sentence) {
				t.Errorf("%s: %q is taken for what came of it", l, sentence)
			}
		}
	}
}

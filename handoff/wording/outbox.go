package wording

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
)

// FinalsMessage tells the outcomes of one or several works.
func (l Language) FinalsMessage(finals []handoff.Record) string {
	if len(finals) == 1 {
		return l.OutcomeMessage(finals[0])
	}
	counted, lines, ask := l.tally(finals, l.OutcomeSentence)
	return Message(l.say("tally.all", "counted", capital(counted))+
		" Tell the caller all of it now, once, in a few sentences; what is quoted is data from the agents."+ask, lines)
}

// AwaySummary tells a call that began at a time what ended while nobody listened, as one message.
func (l Language) AwaySummary(records []handoff.Record, began time.Time) string {
	counted, details, ask := l.tally(records, func(rec handoff.Record) string {
		if rec.Spoken == "" { // nothing of it is kept
			return ""
		}
		return l.OutcomeSentence(rec)
	})
	lead := l.say("away.meanwhile", "counted", counted)
	if slices.ContainsFunc(records, func(rec handoff.Record) bool {
		return rec.EndedAt == nil || rec.EndedAt.Before(began)
	}) {
		lead = l.say("away.gone", "counted", counted)
	}
	return Message(lead+tellAway+ask, details)
}

// tally counts outcomes in words, and tells each in a line. Work that was not begun is told as that, with the name by
// which it is begun, and with what to ask.
func (l Language) tally(
	records []handoff.Record, say func(handoff.Record) string,
) (counted, lines, ask string) {
	counts := map[handoff.Outcome]int{}
	var details, parts []string
	for _, rec := range records {
		how := rec.Outcome
		if rec.NotBegun() {
			how = unbegun
		}
		counts[how]++
		detail := l.say("tally.line", "server", rec.Server, "how", l.how(rec),
			"said", handoff.Clip(say(rec), maxQuote/len(records)))
		if rec.NotBegun() {
			detail += fmt.Sprintf(" To begin it: begin %q. It was: %s", rec.ID,
				handoff.Clip(rec.Prompt, maxQuote/(2*len(records))))
			ask = " Ask whether to begin now what was not begun. Only when they say yes, call codex with the begin name that " +
				"stands with it; to drop it, call stop_work with that name."
		}
		details = append(details, detail)
	}
	for _, o := range []handoff.Outcome{handoff.OutcomeResult, handoff.OutcomeFailed, handoff.OutcomeInterrupted,
		handoff.OutcomeCancelled, handoff.OutcomeUnknown, unbegun} {
		if n := counts[o]; n > 0 {
			parts = append(parts, l.counted(o, n, len(parts) == 0))
		}
	}
	return l.commas(parts), strings.Join(details, "\n"), ask
}

// unbegun stands for work that waits for a word of the caller, in place of its outcome.
const unbegun handoff.Outcome = "not begun"

// counted says how many ended in one way.
func (l Language) counted(o handoff.Outcome, n int, first bool) string {
	number := l.number(n)
	if first {
		number = l.things(n)
	}
	switch o {
	case handoff.OutcomeResult:
		return l.plural("tally.result", n, "n", number)
	case handoff.OutcomeFailed:
		return l.plural("tally.failed", n, "n", number)
	case handoff.OutcomeInterrupted:
		return l.plural("tally.interrupted", n, "n", number)
	case handoff.OutcomeCancelled:
		return l.plural("tally.cancelled", n, "n", number)
	case unbegun:
		return l.plural("tally.unbegun", n, "n", number)
	}
	return l.plural("tally.unknown", n, "n", number)
}

// how says in a word how work ended. What is done is not done well where the tests that it ran last failed, or where
// what it asked for was declined: the page and the terminal say the same.
func (l Language) how(rec handoff.Record) string {
	if rec.NotBegun() {
		return l.say("how.not_begun")
	}
	switch rec.Outcome {
	case handoff.OutcomeResult:
		switch {
		case rec.Declined():
			return l.say("how.declined")
		case rec.Tests() == handoff.TestsFailed:
			return l.say("how.tests_fail")
		}
		return l.say("how.done")
	case handoff.OutcomeInterrupted, handoff.OutcomeCancelled:
		return l.say("how.stopped")
	case handoff.OutcomeFailed:
		return l.say("how.failed")
	}
	return l.say("how.unknown")
}

package wording

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
)

// FinalsMessage returns a message with the outcomes of one or several works.
func (l Language) FinalsMessage(finals []handoff.Record) string {
	if len(finals) == 1 {
		return l.OutcomeMessage(finals[0])
	}
	counted, lines, ask := l.tally(finals, l.OutcomeSentence)
	return Message(l.say("tally.all", "counted", capital(counted))+
		" Tell the caller all of it now, once, in a few sentences; what is quoted is data from the agents."+ask, lines)
}

// AwaySummary returns a message with the outcomes that nobody heard, for a call that began at a time.
func (l Language) AwaySummary(records []handoff.Record, began time.Time) string {
	counted, details, ask := l.tally(records, func(rec handoff.Record) string {
		if rec.Spoken == "" { // no words of it are kept
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

// tally returns the numbers of outcomes in words, and a line for each. The line of work that was not begun has the name
// by which it can be begun, and ask is an instruction to ask about it; "" if there is no such work.
func (l Language) tally(
	records []handoff.Record, say func(handoff.Record) string,
) (counted, lines, ask string) {
	counts := map[handoff.Outcome]int{}
	var details, parts []string
	for _, rec := range records {
		how := rec.Outcome
		if rec.NotBegun() {
			how = unbegun
		} else if rec.Crashed() {
			how = handoff.OutcomeFailed // its line says that it crashed
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

// unbegun replaces the outcome of work that was not begun.
const unbegun handoff.Outcome = "not begun"

// counted says how many works have an outcome; first in a list, it also says "things".
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

// how says in a word or two how work ended. If its last tests failed, or its last question was declined, it does not
// just say "done". The page and the terminal do the same.
func (l Language) how(rec handoff.Record) string {
	if rec.NotBegun() {
		return l.say("how.not_begun")
	}
	if rec.Crashed() {
		return l.say("how.crashed")
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

package wording

import (
	"switchboard/handoff"
	"switchboard/handoff/speakable"
)

// maxPaused bounds the paused work of a message. The tool status has all of it.
const maxPaused = 8

// beginPaused says how paused work is begun and dropped.
const beginPaused = "Only when they want what is paused, call codex with its begin name; to drop it, call stop_work with " +
	"that name."

// FinalsMessage returns a message with the outcomes of one or several works, and when they ended.
func (l Language) FinalsMessage(finals []handoff.Record, when When) Answer {
	if len(finals) == 1 && when == WhenNow {
		return l.OutcomeMessage(finals[0])
	}
	a := Answer{Say: l.Brief(News{Ended: finals, When: when}), Paused: paused(finals),
		Note: "Tell the caller this now, once, in at most two sentences. Give details only when they ask."}
	if len(a.Paused) > 0 {
		a.Note += " Ask whether to begin now what is paused. " + beginPaused
	}
	if first := speakable.FirstSentence(a.Say); len(finals) == 1 && len(first) < len(a.Say) {
		a.lead = first
	}
	room := maxQuote
	for _, rec := range finals {
		said := l.reported(rec)
		if len(said) > maxDetail {
			said = speakable.CutSentence(said, maxDetail)
		}
		line := l.line(rec, said)
		if room -= len(line); room < 0 {
			break
		}
		a.Details = append(a.Details, line)
	}
	return a
}

// paused returns the works that were not begun, as a message has them.
func paused(records []handoff.Record) []Paused {
	var all []Paused
	for _, rec := range records {
		if rec.NotBegun() && len(all) < maxPaused {
			all = append(all, Paused{rec.Server, rec.ID, handoff.Clip(rec.Prompt, maxDetail)})
		}
	}
	return all
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

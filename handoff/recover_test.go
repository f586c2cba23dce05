package handoff_test

import (
	"testing"

	"switchboard/handoff"
)

func TestRecover(t *testing.T) {
	dispatched := handoff.LedgerEntry{Status: handoff.StatusDispatching, Attempt: 1}
	inherited, second, started, accepted := dispatched, dispatched, dispatched, dispatched
	inherited.Inherited = true
	second.Attempt = 2
	started.Status = handoff.StatusStarted
	accepted.Status, accepted.Attempt = handoff.StatusAccepted, 0
	left := accepted
	left.Inherited = true
	is := func(s handoff.Status) handoff.LedgerEntry { return handoff.LedgerEntry{Status: s} }
	none := handoff.Sighting{Reached: true, Settled: true}
	tests := []struct {
		name  string
		entry handoff.LedgerEntry
		seen  handoff.Sighting
		want  handoff.Remedy
	}{
		{"none", is(""), none, handoff.RemedyNothing},
		{"delivered", is(handoff.StatusDelivered), none, handoff.RemedyNothing},
		{"completed", is(handoff.StatusCompleted), none, handoff.RemedyTell},
		{"own, nothing sent", accepted, handoff.Sighting{}, handoff.RemedyStart},
		{"left behind before it was sent, as far as is known", left, none, handoff.RemedyAsk},
		{"left behind, not reached", left, handoff.Sighting{}, handoff.RemedyLook},
		{"left behind, yet it runs", left, handoff.Sighting{Reached: true, Turn: "t"}, handoff.RemedyFollow},
		{"not reached", dispatched, handoff.Sighting{}, handoff.RemedyLook},
		{"never reached", dispatched, handoff.Sighting{GaveUp: true}, handoff.RemedyAsk},
		{"not settled", dispatched, handoff.Sighting{Reached: true}, handoff.RemedyLook},
		{"never settled", dispatched, handoff.Sighting{Reached: true, GaveUp: true}, handoff.RemedyAsk},
		{"it runs", dispatched, handoff.Sighting{Reached: true, Turn: "t"}, handoff.RemedyFollow},
		{"it ended", dispatched, handoff.Sighting{Reached: true, Turn: "t", Ended: true}, handoff.RemedyFinish},
		{"it went into somebody else's", dispatched, handoff.Sighting{Reached: true, Turn: "t", Joined: true}, handoff.RemedyJoin},
		{"it never ran", dispatched, none, handoff.RemedyStart},
		{"it never ran, again", second, none, handoff.RemedyFail},
		{"somebody else is newer", dispatched, handoff.Sighting{Reached: true, Settled: true, Foreign: true}, handoff.RemedyAsk},
		{"inherited, it never ran", inherited, none, handoff.RemedyAsk},
		{"inherited, it runs", inherited, handoff.Sighting{Reached: true, Turn: "t"}, handoff.RemedyFollow},
		{"the thread is gone", dispatched, handoff.Sighting{Reached: true, Settled: true, Gone: true}, handoff.RemedyAsk},
		{"started, the turn is nowhere", started, none, handoff.RemedyAsk},
		{"started, it ended", started, handoff.Sighting{Reached: true, Turn: "t", Ended: true}, handoff.RemedyFinish},
	}
	for _, tt := range tests {
		if got := handoff.Recover(tt.entry, tt.seen); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestFinished(t *testing.T) {
	for status, want := range map[handoff.TurnStatus]handoff.Outcome{
		handoff.TurnCompleted: handoff.OutcomeResult, handoff.TurnFailed: handoff.OutcomeFailed,
		handoff.TurnInterrupted: handoff.OutcomeInterrupted,
	} {
		if got := (handoff.Sighting{Status: status}).Finished(); got != want {
			t.Errorf("%v: %s, want %s", status, got, want)
		}
	}
}

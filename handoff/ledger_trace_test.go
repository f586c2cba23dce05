package handoff_test

import (
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
)

// trace is a run without faults: one handoff through every status.
func trace(t *testing.T) []handoff.LedgerEvent {
	t.Helper()
	var events []handoff.LedgerEvent
	var e handoff.LedgerEntry
	for _, to := range ledgerStatuses[1:] {
		s := aStep("a", to)
		var err error
		if e, err = e.Apply(s); err != nil {
			t.Fatal(err)
		}
		events = append(events, handoff.LedgerEvent{Step: s, Entry: e})
		switch to {
		case handoff.StatusDispatching:
			events = append(events, handoff.LedgerEvent{Kind: handoff.TraceTurn, ClientID: "key"})
		case handoff.StatusCompleted:
			events = append(events, handoff.LedgerEvent{Kind: handoff.TraceSaid, Key: "key", Session: "s1"})
		}
	}
	return append(events, handoff.LedgerEvent{Kind: handoff.TraceEnd})
}

// Positions in trace.
const (
	trDispatching, trTurn, trStarted, trCompleted, trSaid, trDelivered = 1, 2, 3, 4, 5, 6
)

// traceCase is a change to a good run and what is wrong with it then, "" for nothing.
type traceCase struct {
	change func([]handoff.LedgerEvent) []handoff.LedgerEvent
	want   string
}

func again(at int) func([]handoff.LedgerEvent) []handoff.LedgerEvent {
	return func(e []handoff.LedgerEvent) []handoff.LedgerEvent { return slices.Insert(e, at, e[at]) }
}

func without(at int) func([]handoff.LedgerEvent) []handoff.LedgerEvent {
	return func(e []handoff.LedgerEvent) []handoff.LedgerEvent { return slices.Delete(e, at, at+1) }
}

func swapped(x, y int) func([]handoff.LedgerEvent) []handoff.LedgerEvent {
	return func(e []handoff.LedgerEvent) []handoff.LedgerEvent {
		e[x], e[y] = e[y], e[x]
		return e
	}
}

// changed changes one event, or one more before it.
func changed(at int, more bool, change func(*handoff.LedgerEvent)) func([]handoff.LedgerEvent) []handoff.LedgerEvent {
	return func(e []handoff.LedgerEvent) []handoff.LedgerEvent {
		if more {
			e = slices.Insert(e, at, e[at])
		}
		change(&e[at])
		return e
	}
}

func unanswered(e *handoff.LedgerEvent) {
	e.Code, e.Entry = handoff.CodeUnreachable, handoff.LedgerEntry{}
}

func TestTrace(t *testing.T) {
	dispatched := trace(t)[trDispatching].Entry
	tests := map[string]traceCase{
		"as it should be":     {changed(0, false, func(*handoff.LedgerEvent) {}), ""},
		"a step twice":        {again(trDispatching), ""},
		"two turns":           {again(trTurn), "ran twice"},
		"said twice":          {again(trSaid), "said twice"},
		"said before written": {swapped(trCompleted, trSaid), "before it was written"},
		"said, the store away": {func(e []handoff.LedgerEvent) []handoff.LedgerEvent {
			e = again(trCompleted)(e) // asked, no answer; said; written later
			unanswered(&e[trCompleted])
			return swapped(trCompleted+1, trSaid+1)(e)
		}, ""},
		"delivered, not said":      {swapped(trSaid, trDelivered), "never said"},
		"said in another session":  {changed(trSaid, true, func(e *handoff.LedgerEvent) { e.Session = "s2" }), ""},
		"never said":               {without(trSaid), "never said"},
		"never delivered":          {without(trDelivered), `still "completed"`},
		"a step forgotten":         {without(trCompleted), "before it was written"},
		"never allowed to start":   {changed(trTurn, false, func(e *handoff.LedgerEvent) { e.ClientID = "other" }), "without a step"},
		"another outcome":          {changed(trDelivered, false, func(e *handoff.LedgerEvent) { e.Entry.Outcome = handoff.OutcomeResult }), "does not allow"},
		"a stranger gets through":  {changed(trStarted, false, func(e *handoff.LedgerEvent) { e.Step.Owner = "b" }), "does not allow"},
		"written, the answer lost": {changed(trStarted, false, unanswered), ""},
		"not written":              {changed(trStarted, true, unanswered), ""},
		"the last answer lost":     {changed(trDelivered, false, unanswered), "is still"},
		"a stranger is refused": {changed(trStarted, true, func(e *handoff.LedgerEvent) {
			e.Step.Owner, e.Entry, e.Code = "b", dispatched, handoff.CodeTakenOver
		}), ""},
		"the store came back empty": {changed(trDelivered+1, true, func(e *handoff.LedgerEvent) { e.Kind = handoff.TraceEmpty }), ""},
	}
	for name, tt := range tests {
		err := handoff.CheckTrace(tt.change(trace(t)))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

package responses

import (
	"context"
	"testing"
	"time"

	"switchboard/handoff"
)

// TestQuestionIsDecidedOnce: a question reaches every follower under its own connection, is answered once, and is
// always closed.
func TestQuestionIsDecidedOnce(t *testing.T) {
	h := newHub("turn")
	first, late := h.follow("one"), (*follower)(nil)
	answered := make(chan handoff.Decision)
	q := handoff.Question{ID: "q", Turn: "turn", Decisions: []handoff.Decision{handoff.DecisionAccept,
		handoff.DecisionDecline}, Asked: time.Now()}
	go func() {
		d, _ := h.ask(t.Context(), q)
		answered <- d
	}()
	read := func(f *follower) handoff.Update {
		u, err := h.next(t.Context(), f, nil, nil)
		must(t, err)
		return u
	}
	read(first) // its beginning
	if got, ok := read(first).(handoff.Question); !ok || got.Connection != "one" {
		t.Errorf("asked %+v", got)
	}
	late = h.follow("two")
	read(late)
	if got, ok := read(late).(handoff.Question); !ok || got.Connection != "two" || got.ID != "q" {
		t.Errorf("asked again %+v", got)
	}
	if h.decide("other", handoff.DecisionAccept) || h.decide("q", handoff.DecisionStop) || !h.hasQuestions() {
		t.Error("answered wrongly")
	}
	if !h.decide("q", handoff.DecisionAccept) || <-answered != handoff.DecisionAccept ||
		h.decide("q", handoff.DecisionDecline) {
		t.Error("not answered once")
	}
	if _, ok := read(late).(handoff.QuestionClosed); !ok || h.hasQuestions() {
		t.Error("not closed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.ask(ctx, q); err == nil || h.hasQuestions() {
		t.Error("a question outlives its turn")
	}
}

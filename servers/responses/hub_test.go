package responses

import (
	"context"
	"testing"
	"time"

	"switchboard/handoff"
)

// TestQuestionIsDecidedOnce: a question reaches every follower under its own connection, also one that comes after much
// was printed, is answered once, and is always closed.
func TestQuestionIsDecidedOnce(t *testing.T) {
	h := newHub("turn")
	first, late := h.follow("one"), (*follower)(nil)
	answered := make(chan handoff.Decision)
	may := []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline}
	q := handoff.Question{ID: "q", Turn: "turn", Decisions: may, Asked: time.Now()}
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
	for i := range 200 {
		h.finished(handoff.Item{ID: string(rune('A' + i)), Kind: handoff.ItemCommand, Output: string(make([]byte, maxShown))})
	}
	late = h.follow("two")
	for i := range 201 {
		if done, ok := read(late).(handoff.ItemDone); i == 200 && (!ok || done.Item.Output == "") {
			t.Error("the newest item comes without its output")
		}
	}
	if got, ok := read(late).(handoff.Question); !ok || got.Connection != "two" || got.ID != "q" {
		t.Errorf("asked again %+v", got)
	}
	if h.decide("other", handoff.DecisionAccept) || h.decide("q", handoff.DecisionStop) || !h.hasQuestions() {
		t.Error("answered wrongly")
	}
	if !h.decide("q", handoff.DecisionAccept) || <-answered != handoff.DecisionAccept || h.decide("q", handoff.DecisionDecline) {
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

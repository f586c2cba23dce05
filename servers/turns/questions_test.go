package turns

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"switchboard/handoff"
)

func ids(questions []handoff.Question) []string {
	var all []string
	for _, q := range questions {
		all = append(all, string(q.ID))
	}
	return all
}

func TestQuestions(t *testing.T) {
	var s Questions[int]
	began := time.Now()
	ask := func(id, turn string, after time.Duration, wire int) bool {
		return s.Add(handoff.Question{ID: handoff.QuestionID(id), Turn: handoff.TurnID(turn), Asked: began.Add(after)}, wire)
	}
	ask("late", "t", time.Second, 2)
	ask("early", "t", 0, 1)
	ask("other", "u", 0, 3)
	if _, ok := s.Take("early"); ok {
		t.Error("a question that nobody was told can be answered")
	}
	if got := ids(s.Tell("t")); !slices.Equal(got, []string{"early", "late"}) {
		t.Errorf("told %v", got)
	}
	if ask("early", "t", time.Hour, 9); len(s.Tell("t")) != 0 {
		t.Error("the same question was told again")
	}
	q, ok := s.Take("early")
	if !ok || q.Wire != 1 {
		t.Fatalf("took %+v, %v", q, ok)
	}
	if _, ok := s.Take("early"); ok {
		t.Error("taken twice")
	}
	if s.GiveBack(q); !slices.Equal(ids(s.Close(func(q *Open[int]) bool { return q.Wire != 2 })), []string{"early"}) {
		t.Error("closed others than early, which was told, and other, which was not")
	}
	if _, ok := s.Take("early"); ok {
		t.Error("answered after its end")
	}
	if s.Retell("t"); !slices.Equal(ids(s.Tell("t")), []string{"late"}) {
		t.Error("not told again")
	}
	for i := range maxQuestions - 1 {
		if !ask(fmt.Sprint(i), "t", 0, 0) {
			t.Fatalf("refused number %d", i)
		}
	}
	if ask("too many", "t", 0, 0) {
		t.Error("there is no bound")
	}
}

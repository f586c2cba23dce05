package responses

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

// TestWhoIsAsked: a question ends a response only if the next request could answer it; otherwise the work goes on under
// the same response, and the question waits for a tap.
func TestWhoIsAsked(t *testing.T) {
	question := handoff.RecordQuestion{ID: "q", Kind: handoff.QuestionCommand}
	for _, c := range []struct {
		what, body string
		rights     []string
		asked      bool
	}{
		{"it may answer", `{"model":"bigpc","input":"hi"}`, nil, true},
		{"it may use that tool", `{"model":"bigpc","input":"hi"}`, []string{"Tool", tools.AnswerAgent}, true},
		{"it may not answer", `{"model":"bigpc","input":"hi"}`, []string{"Approve", "no"}, false},
		{"it has no such tool", `{"model":"bigpc","input":"hi"}`, []string{"Tool", tools.StopWork}, false},
		{"its yes would be refused", `{"model":"bigpc","input":"hi"}`, []string{"Risk", "high"}, false},
		{"nothing of it is kept", `{"model":"bigpc","input":"hi","store":false}`, nil, false},
	} {
		inWorld(t, func(w *world) {
			a := w.asks(http.MethodPost, "/v1/responses", c.body, c.rights...)
			q := question
			if len(c.rights) > 0 && c.rights[0] == "Risk" {
				q.Risk = c.rights[1]
			}
			w.does(1, handoff.EventAsked{Question: handoff.OpenQuestion{Shown: q}})
			synctest.Wait()
			w.ends(1, handoff.OutcomeResult, "hello")
			got := a.object()
			output, _ := got["output"].([]any)
			last, _ := output[len(output)-1].(map[string]any)
			if asked := last["type"] == typeApproval; asked != c.asked || got["status"] != completed {
				t.Errorf("%s: %v", c.what, got)
			}
		})
	}
}

// TestQuestionComesFirst: a response with an open question can only be continued with the answer.
func TestQuestionComesFirst(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.begun(`{"model":"bigpc","input":"hi"}`)
		q := handoff.RecordQuestion{ID: "q", Handoff: "r1", Kind: handoff.QuestionCommand}
		w.does(1, handoff.EventAsked{Question: handoff.OpenQuestion{Shown: q}})
		a.object()
		for _, open := range []bool{true, false} {
			w.mu.Lock()
			if w.asked = nil; open {
				w.asked = []handoff.RecordQuestion{q}
			}
			w.mu.Unlock()
			next := w.begun(`{"model":"bigpc","input":"go on","previous_response_id":"resp_r1"}`)
			if open {
				if w.count() > 1 {
					w.ends(2, handoff.OutcomeResult, "too early")
				}
				if code := w.refusal(next.Code, next.object()); code != "approval_required" || w.count() != 1 {
					t.Errorf("%d %s", next.Code, next.Body)
				}
				continue
			}
			w.ends(2, handoff.OutcomeResult, "hello")
			if got := next.object(); got["status"] != completed {
				t.Errorf("answered: %v", got)
			}
		}
	})
}

// TestNothingRan: a response that never had a turn cannot be continued.
func TestNothingRan(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hold = true
		w.begun(backgroundPost)
		w.ends(1, handoff.OutcomeFailed, "")
		synctest.Wait()
		status, got := w.ask(
			http.MethodPost, "/v1/responses", `{"model":"bigpc","input":"go on","previous_response_id":"resp_r1"}`,
		)
		if code := w.refusal(status, got); code != "previous_response_not_found" || w.count() != 1 {
			t.Errorf("%d %v", status, got)
		}
	})
}

// TestCancelIsARight: a key that may not stop work cannot cancel a response.
func TestCancelIsARight(t *testing.T) {
	inWorld(t, func(w *world) {
		w.begun(backgroundPost)
		status, got := w.ask(http.MethodPost, "/v1/responses/resp_r1/cancel", "", "Tool", tools.AnswerAgent)
		if code := w.refusal(status, got); code != string(handoff.CodeNotGranted) || len(w.stops()) > 0 {
			t.Errorf("%d %v, stopped are %v", status, got, w.stops())
		}
	})
}

// TestAskedAtTheStart: a request that comes before the API runs is served, and not refused as at a shutdown.
func TestAskedAtTheStart(t *testing.T) {
	inWorld(t, func(w *world) {
		w.begins = time.Second
		w.begin()
		a := w.begun(`{"model":"bigpc","input":"hi"}`)
		w.ends(1, handoff.OutcomeResult, "hello")
		if got := a.object(); got["status"] != completed {
			t.Errorf("%d %v", a.Code, got)
		}
		time.Sleep(w.begins)
	})
}

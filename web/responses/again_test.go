package responses

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// TestSentAgain: a repeated request, with a key or with the mark of SDKs, runs once, even after a restart, and even if
// the first answer never arrived. Without either it runs again.
func TestSentAgain(t *testing.T) {
	for _, headers := range [][]string{{"Idempotency-Key", "k"}, {"X-Stainless-Retry-Count", "1"}} {
		inWorld(t, func(w *world) {
			var key []string // an SDK does not mark what it sends first
			if headers[0] == "Idempotency-Key" {
				key = headers
			}
			first := w.asks(http.MethodPost, "/v1/responses", `{"model":"bigpc","input":"hi"}`, key...)
			first.leave(nil)
			if got := w.runs[0].req.Again; got != (key != nil) {
				t.Errorf("%v: it may be of a former life: %t", headers, got)
			}
			again := w.asks(http.MethodPost, "/v1/responses", `{"model":"bigpc","input":"hi"}`, headers...)
			w.ends(1, handoff.OutcomeResult, "hello")
			if got := again.object(); got["id"] != "resp_r1" || got["status"] != completed || w.count() != 1 {
				t.Errorf("%v: %v, %d runs", headers, got, w.count())
			}
			if key != nil {
				if status, got := w.ask(http.MethodPost, "/v1/responses", `{"model":"bigpc","input":"other words"}`, key...); status != http.StatusBadRequest || w.refusal(status, got) != "idempotency_key_reused" {
					t.Errorf("other words under the same key: %d %v", status, got)
				}
			}
			w.begin()
			w.breaks(true) // nobody knows whether it ran
			if status, got := w.ask(http.MethodPost, "/v1/responses", `{"model":"bigpc","input":"hi"}`, headers...); status != http.StatusServiceUnavailable || w.count() != 1 {
				t.Errorf("%v while the store is away: %d %v, %d runs", headers, status, got, w.count())
			}
			w.breaks(false)
			if _, got := w.ask(http.MethodPost, "/v1/responses", `{"model":"bigpc","input":"hi"}`, headers...); got["id"] != "resp_r1" || w.count() != 1 {
				t.Errorf("%v in the next life: %v, %d runs", headers, got, w.count())
			}
			if key != nil {
				w.begin()
				if status, got := w.ask(http.MethodPost, "/v1/responses", `{"model":"bigpc","input":"other words"}`, key...); status != http.StatusBadRequest || w.refusal(status, got) != "idempotency_key_reused" || w.count() != 1 {
					t.Errorf("other words under the same key in the next life: %d %v, %d runs", status, got, w.count())
				}
				if _, got := w.ask(http.MethodPost, "/v1/responses", `{"model":"bigpc","input":"hi"}`, key...); got["id"] != "resp_r1" || w.count() != 1 {
					t.Errorf("the same words after that: %v, %d runs", got, w.count())
				}
			}
			other := w.begun(`{"model":"bigpc","input":"hi"}`)
			w.ends(2, handoff.OutcomeResult, "hello")
			if got := other.object(); got["id"] != "resp_r2" {
				t.Errorf("%v: not sent again it is %v", headers, got)
			}
		})
	}
}

// A slowDirectory takes a second to tell its machines.
type slowDirectory struct{ *world }

func (d slowDirectory) Servers(ctx context.Context, g handoff.Grant) []handoff.ServerInfo {
	time.Sleep(time.Second)
	return d.world.Servers(ctx, g)
}

// TestSentAgainWhileItIsMade: a request that is repeated before its work has begun runs once, whether its client says
// so, or its connection has broken. Another one at the same time is a new request.
func TestSentAgainWhileItIsMade(t *testing.T) {
	for _, talks := range []bool{false, true} {
		for _, tc := range []struct {
			first, again string // the header of SDKs; "": none
			broken       bool
			want         int
		}{
			{"", "", true, 1}, {"", "1", false, 1}, {"0", "1", false, 1}, {"0", "0", true, 2}, {"", "", false, 2},
		} {
			inWorld(t, func(w *world) {
				body := `{"model":"bigpc","input":"hi"}`
				if talks && tc.want == 1 {
					_, talk := w.ask(http.MethodPost, "/v1/conversations", "")
					body = fmt.Sprintf(`{"model":"bigpc","input":"hi","conversation":%q}`, talk["id"])
				}
				w.api.cfg.Directory = slowDirectory{w}
				send := func(mark string) *answer {
					if mark == "" {
						return w.begun(body)
					}
					return w.asks(http.MethodPost, "/v1/responses", body, "X-Stainless-Retry-Count", mark)
				}
				first := send(tc.first)
				time.Sleep(time.Second / 2)
				if tc.broken {
					first.leave(nil)
				}
				send(tc.again)
				again := send("2")
				time.Sleep(2 * time.Second)
				if w.count() != tc.want || len(w.stops()) > 0 {
					t.Errorf("%+v, in a conversation %t: %d runs, stopped are %v", tc, talks, w.count(), w.stops())
				}
				w.ends(tc.want, handoff.OutcomeResult, "hello")
				if got := again.object(); got["id"] != fmt.Sprint("resp_r", tc.want) || got["status"] != completed {
					t.Errorf("%+v, in a conversation %t: %v", tc, talks, got)
				}
			})
		}
	}
}

// TestUnkeptSentAgain: each repetition of a request whose work has ended, and is not kept, is told just that, also one
// that comes while another is being answered.
func TestUnkeptSentAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		const body = `{"model":"bigpc","input":"hi","store":false}`
		w.asks(http.MethodPost, "/v1/responses", body, "Idempotency-Key", "k").leave(nil)
		w.ends(1, handoff.OutcomeResult, "hello")
		w.run(1).rec.State = handoff.StatusDelivered
		w.begin()
		w.api.cfg.Directory = slowDirectory{w}
		var all []*answer
		for range 3 {
			all = append(all, w.asks(http.MethodPost, "/v1/responses", body, "Idempotency-Key", "k"))
		}
		for i, a := range all {
			got := a.object()
			if e, _ := got["error"].(map[string]any); e["code"] != "response_not_kept" || w.count() != 1 {
				t.Errorf("the repetition %d: %d %v, %d runs", i, a.Code, got, w.count())
			}
		}
	})
}

// TestSentAgainInAConversation: a request that is repeated after a restart gets its response even if the conversation
// has gone on since, while the response runs and after its end; the conversation accepts more responses then.
func TestSentAgainInAConversation(t *testing.T) {
	for _, headers := range [][]string{{"Idempotency-Key", "k"}, {"X-Stainless-Retry-Count", "1"}} {
		inWorld(t, func(w *world) {
			_, talk := w.ask(http.MethodPost, "/v1/conversations", "")
			for n := 1; n < 6; n++ {
				body, key := fmt.Sprintf(`{"model":"bigpc","input":"words %d","conversation":%q}`, n, talk["id"]), headers
				if headers[0] == "Idempotency-Key" {
					key = []string{headers[0], fmt.Sprint("k", n)}
				}
				var first *answer
				if headers[0] == "Idempotency-Key" {
					first = w.asks(http.MethodPost, "/v1/responses", body, key...)
				} else {
					first = w.begun(body)
				}
				if first.leave(nil); n%2 == 0 {
					w.begin()
					w.ask(http.MethodGet, fmt.Sprint("/v1/responses/resp_r", n), "")
				}
				w.ends(n, handoff.OutcomeResult, "hello")
				for round := range 2 {
					if w.begin(); round > 0 && key[0] == "Idempotency-Key" { // which counts for a day
						time.Sleep(retriedFor - time.Minute)
					}
					again := w.asks(http.MethodPost, "/v1/responses", body, key...)
					if got := again.object(); got["id"] != fmt.Sprint("resp_r", n) || got["status"] != completed || w.count() != n {
						t.Fatalf("%v: %v, %d runs, want %d", key, got, w.count(), n)
					}
					if want := "thread1"; n > 1 && w.run(n).req.Target.Thread != want {
						t.Fatalf("%v: run %d is in %v, want %s", key, n, w.run(n).req.Target, want)
					}
				}
			}
		})
	}
}

// TestConversationIsBusyInTheNextLife: while the response of an earlier process is open, nobody else can add items to
// its conversation.
func TestConversationIsBusyInTheNextLife(t *testing.T) {
	inWorld(t, func(w *world) {
		_, talk := w.ask(http.MethodPost, "/v1/conversations", "")
		body := strings.TrimSuffix(backgroundPost, "}") + fmt.Sprintf(`,"conversation":%q}`, talk["id"])
		w.begun(body)
		w.begin()
		if status, got := w.ask(http.MethodPost, "/v1/responses", body); w.refusal(status, got) != "conversation_locked" {
			t.Errorf("while it runs: %d %v", status, got)
		}
		w.ends(1, handoff.OutcomeResult, "hello")
		synctest.Wait()
		if status, got := w.ask(http.MethodPost, "/v1/responses", body); status != http.StatusOK {
			t.Errorf("after it: %d %v", status, got)
		}
	})
}

// TestApprovalSentAgain: an answer to a question that is repeated after a restart gets the response that it began,
// while that runs and after its end. A different request does not.
func TestApprovalSentAgain(t *testing.T) {
	for _, key := range [][]string{{"Idempotency-Key", "k"}, {"X-Stainless-Retry-Count", "0"}} {
		inWorld(t, func(w *world) {
			first := w.begun(`{"model":"bigpc","input":"hi"}`)
			w.does(1, handoff.EventAsked{Question: handoff.OpenQuestion{Shown: handoff.RecordQuestion{ID: "q", Kind: handoff.QuestionCommand}}})
			if got := first.object(); got["status"] != completed {
				t.Fatalf("%v", got)
			}
			body := fmt.Sprintf(`{"model":"bigpc","previous_response_id":"resp_r1","input":[{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}]}`, approvalID("resp_r1", "q"))
			answer := w.asks(http.MethodPost, "/v1/responses", body, key...)
			answer.leave(nil)
			if key[0] != "Idempotency-Key" {
				key = []string{key[0], "1"}
			}
			for _, running := range []bool{true, false, false} {
				w.begin()
				again := w.asks(http.MethodPost, "/v1/responses", body, key...)
				if running {
					w.ends(1, handoff.OutcomeResult, "pushed")
				}
				if got := again.object(); got["id"] != "resp_r1_2" || got["status"] != completed {
					t.Errorf("%v: sent again it is %d %v", key, again.Code, got)
				}
			}
			other := strings.Replace(body, "true", "false", 1)
			if status, got := w.ask(http.MethodPost, "/v1/responses", other); w.refusal(status, got) != "response_in_use" {
				t.Errorf("another answer: %d %v", status, got)
			}
		})
	}
}

// TestDecisionFails: if an answer to a question could not be passed on, nothing is kept, and another request may use
// the same key.
func TestDecisionFails(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.begun(`{"model":"bigpc","input":"hi"}`)
		q := handoff.RecordQuestion{ID: "q", Handoff: "r1", Kind: handoff.QuestionCommand}
		w.does(1, handoff.EventAsked{Question: handoff.OpenQuestion{Shown: q}})
		first.object()
		body := func(approve bool) string {
			return fmt.Sprintf(`{"model":"bigpc","previous_response_id":"resp_r1","input":[{"type":"mcp_approval_response","approval_request_id":%q,"approve":%t}]}`, approvalID("resp_r1", "q"), approve)
		}
		w.mu.Lock()
		w.asked, w.refuse = []handoff.RecordQuestion{q}, handoff.Fault(handoff.CodeUnreachable, "bigpc", "")
		w.mu.Unlock()
		status, got := w.ask(http.MethodPost, "/v1/responses", body(true), "Idempotency-Key", "k")
		if code := w.refusal(status, got); code != "unreachable" {
			t.Errorf("%d %v", status, got)
		}
		w.mu.Lock()
		w.asked, w.refuse = nil, nil // it was answered elsewhere
		w.mu.Unlock()
		w.ends(1, handoff.OutcomeResult, "not pushed")
		if status, got := w.ask(http.MethodPost, "/v1/responses", body(false), "Idempotency-Key", "k"); status != http.StatusOK || got["id"] != "resp_r1_2" {
			t.Errorf("another answer: %d %v", status, got)
		}
		w.ask(http.MethodDelete, "/v1/responses/resp_r1_2", "")
		if status, got := w.ask(http.MethodPost, "/v1/responses", body(true)); status != http.StatusNotFound {
			t.Errorf("after that was deleted: %d %v", status, got)
		}
	})
}

// TestSentAgainBeforeItBegan: an earlier process promised the work and did not begin it. When the request is repeated,
// the work runs once, as another response.
func TestSentAgainBeforeItBegan(t *testing.T) {
	for _, talks := range []bool{false, true} {
		inWorld(t, func(w *world) { sentAgainBeforeItBegan(w, talks, "X-Stainless-Retry-Count", "1") })
		inWorld(t, func(w *world) { sentAgainBeforeItBegan(w, talks, "Idempotency-Key", "k") })
	}
}

func sentAgainBeforeItBegan(w *world, talks bool, headers ...string) {
	keyed := headers[0] == "Idempotency-Key"
	body := backgroundPost
	if talks {
		_, talk := w.ask(http.MethodPost, "/v1/conversations", "")
		body = strings.TrimSuffix(body, "}") + fmt.Sprintf(`,"conversation":%q}`, talk["id"])
	}
	w.hold = true
	if keyed {
		w.asks(http.MethodPost, "/v1/responses", body, headers...).leave(nil)
	} else {
		w.begun(body).leave(nil)
	}
	synctest.Wait()
	w.mu.Lock()
	left := maps.Clone(w.docs) // what a kill at this moment leaves
	w.mu.Unlock()
	w.fails(1, handoff.Fault(handoff.CodeNotBegun, "bigpc", "a former life of this process had accepted it"))
	w.ends(1, handoff.OutcomeCancelled, "")
	synctest.Wait()
	w.mu.Lock()
	w.docs, w.hold = left, false
	w.mu.Unlock()
	w.begin()
	for range 2 {
		status, got := w.ask(http.MethodPost, "/v1/responses", body, headers...)
		if status != http.StatusOK || got["id"] != "resp_r2" || w.count() != 2 {
			w.t.Errorf("%s: sent again: %d %v, %d runs", headers[0], status, got, w.count())
		}
		if w.begin(); keyed { // nor after another restart, for as long as a key counts
			time.Sleep(retriedFor - time.Minute)
		}
	}
	w.ends(2, handoff.OutcomeResult, "hello")
	for id, want := range map[string]string{"resp_r1": incomplete, "resp_r2": completed} {
		w.ask(http.MethodGet, "/v1/responses/"+id, "") // follows it again
		synctest.Wait()
		if _, got := w.ask(http.MethodGet, "/v1/responses/"+id, ""); got["status"] != want {
			w.t.Errorf("read then %s is %v", id, got)
		}
	}
}

// TestDeletedIsSentAgain: repeating a request whose response was deleted does not run the work again, and does not
// restore the response.
func TestDeletedIsSentAgain(t *testing.T) {
	key := []string{"Idempotency-Key", "k"}
	inWorld(t, func(w *world) {
		_, talk := w.ask(http.MethodPost, "/v1/conversations", "")
		for n, more := range []string{"", `,"background":true`, fmt.Sprintf(`,"conversation":%q`, talk["id"])} {
			body, id := `{"model":"bigpc","input":"hi"`+more+`}`, fmt.Sprint("resp_r", n+1)
			key[1] += "k"
			a := w.asks(http.MethodPost, "/v1/responses", body, key...)
			w.ends(n+1, handoff.OutcomeResult, "hello")
			a.object()
			synctest.Wait()
			w.ask(http.MethodDelete, "/v1/responses/"+id, "")
			for _, life := range []string{"this", "the next"} {
				status, got := w.ask(http.MethodPost, "/v1/responses", body, key...)
				if w.refusal(status, got); status != http.StatusNotFound || w.count() != n+1 {
					t.Errorf("%s in %s life: %d %v, %d runs", body, life, status, got, w.count())
				}
				if status, got := w.ask(http.MethodGet, "/v1/responses/"+id, ""); status != http.StatusNotFound {
					t.Errorf("%s in %s life it is back: %v", body, life, got)
				}
				w.begin()
			}
		}
	})
}

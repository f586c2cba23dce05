package responses

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

const backgroundStream = `{"model":"bigpc","input":"hi","background":true,"stream":true}`

const backgroundPost = `{"model":"bigpc","input":"hi","background":true}`

// work is what the nth run does in these tests, before its end.
func (w *world) work(n int) {
	w.does(n, handoff.RunDelta{ItemID: "m", Kind: handoff.DeltaMessage, Text: "I look"},
		handoff.RunDelta{ItemID: "m", Kind: handoff.DeltaMessage, At: 6, Text: " at it."},
		handoff.RunItem{Item: handoff.Item{ID: "m", Kind: handoff.ItemMessage, Text: "I look at it."}},
		handoff.RunDoing{ID: "c", Item: handoff.ItemCommand, Text: "go test"},
		handoff.RunItem{Item: handoff.Item{ID: "c", Kind: handoff.ItemCommand, Text: "go test", Output: "ok", Exit: new(0)}})
	synctest.Wait()
}

// TestGetAgreesWithTheStream: however a response ends, its stream has one terminal event, which is the last, and GET
// shows the same afterwards, from memory and in the next life of the process.
func TestGetAgreesWithTheStream(t *testing.T) {
	for outcome, want := range map[handoff.Outcome]string{
		handoff.OutcomeResult: completed, handoff.OutcomeFailed: failed, handoff.OutcomeInterrupted: incomplete,
		handoff.OutcomeCancelled: incomplete, handoff.OutcomeUnknown: failed, "cancelled by its reader": cancelled,
	} {
		inWorld(t, func(w *world) {
			a := w.begun(backgroundStream)
			w.work(1)
			if want == cancelled {
				w.ask(http.MethodPost, "/v1/responses/resp_r1/cancel", "")
			} else {
				w.ends(1, outcome, "done")
			}
			_, o := a.frames()
			if err := o.read(a.Body.Bytes()); err != nil || o.over == "" || o.last["status"] != want {
				t.Errorf("%s: %v, %s %v", outcome, err, o.over, o.last)
			}
			for _, life := range []string{"this", "the next"} {
				if life == "the next" {
					w.begin()
				}
				if _, got := w.ask(http.MethodGet, "/v1/responses/resp_r1", ""); fmt.Sprint(got) != fmt.Sprint(o.last) {
					t.Errorf("%s: in %s life it is\n%v, and was\n%v", outcome, life, got, o.last)
				}
			}
		})
	}
}

// TestResumeAfterACut: read again after any event, while it goes on or after its end, a stream is the rest of what
// it was.
func TestResumeAfterACut(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.begun(backgroundStream)
		w.does(1, handoff.RunDelta{ItemID: "m", Kind: handoff.DeltaMessage, Text: "I look"})
		a.leave(nil)
		part, _ := a.frames()
		again := make([]*answer, len(part))
		for k := range part { // the rest comes while they read
			again[k] = w.asks(http.MethodGet, fmt.Sprintf("/v1/responses/resp_r1?stream=true&starting_after=%d", k), "")
		}
		w.does(1, handoff.RunDelta{ItemID: "m", Kind: handoff.DeltaMessage, At: 6, Text: " at it."})
		w.ends(1, handoff.OutcomeResult, "I look at it.")
		all, _ := w.asks(http.MethodGet, "/v1/responses/resp_r1", `{"stream":true}`).frames() // as openai-go asks
		if len(all) <= len(part) || !slices.Equal(all[:len(part)], part) {
			t.Fatalf("it was\n%s, and is\n%s", strings.Join(part, "\n"), strings.Join(all, "\n"))
		}
		for k := range all {
			if k < len(part) {
				if rest, _ := again[k].frames(); !slices.Equal(rest, all[k+1:]) {
					t.Errorf("on the way after %d:\n%s", k, strings.Join(rest, "\n"))
				}
			}
			rest, _ := w.asks(http.MethodGet, fmt.Sprintf("/v1/responses/resp_r1?stream=true&starting_after=%d", k), "").frames()
			if !slices.Equal(rest, all[k+1:]) {
				t.Errorf("after %d:\n%s", k, strings.Join(rest, "\n"))
			}
		}
		if rest := w.asks(http.MethodGet, "/v1/responses/resp_r1?stream=true&starting_after=999", ""); rest.Code != http.StatusOK || rest.Body.Len() > 0 {
			t.Errorf("past the end: %d %s", rest.Code, rest.Body)
		}
	})
}

// TestBadCursor: a cursor that is none is told before it is looked whether the response is there, and only what was
// made with background and stream can be streamed again.
func TestBadCursor(t *testing.T) {
	inWorld(t, func(w *world) {
		for n, body := range []string{`{"model":"bigpc","input":"hi"}`, `{"model":"bigpc","input":"hi","background":true}`, `{"model":"bigpc","input":"hi","stream":true}`} {
			a := w.begun(body)
			w.ends(n+1, handoff.OutcomeResult, "hello")
			<-a.done
			status, got := w.ask(http.MethodGet, fmt.Sprintf("/v1/responses/resp_r%d?stream=true", n+1), "")
			if code := w.refusal(status, got); status != http.StatusBadRequest || code != "invalid_mode" {
				t.Errorf("%s: %d %q", body, status, code)
			}
		}
		for path, want := range map[string]string{
			"resp_nobody?stream=true&starting_after=x":  "400 invalid_value",
			"resp_nobody?stream=true&starting_after=-1": "400 invalid_value",
			"resp_nobody?stream=true&starting_after=1":  "404 ",
		} {
			status, got := w.ask(http.MethodGet, "/v1/responses/"+path, "")
			if code := w.refusal(status, got); fmt.Sprint(status, " ", code) != want {
				t.Errorf("%s: %d %q, want %s", path, status, code, want)
			}
		}
	})
}

// TestCancel: only what goes on in the background can be cancelled, twice is once, and what comes late changes nothing.
func TestCancel(t *testing.T) {
	inWorld(t, func(w *world) {
		cancel := func(n int) (int, map[string]any) {
			return w.ask(http.MethodPost, fmt.Sprintf("/v1/responses/resp_r%d/cancel", n), "")
		}
		sync := w.begun(`{"model":"bigpc","input":"hi"}`)
		status, got := cancel(1)
		if w.refusal(status, got); status != http.StatusBadRequest {
			t.Errorf("a synchronous one: %d", status)
		}
		w.ends(1, handoff.OutcomeResult, "hello")
		sync.object()
		over := w.begun(backgroundStream)
		w.ends(2, handoff.OutcomeResult, "hello")
		over.frames()
		status, got = cancel(2)
		if w.refusal(status, got); status != http.StatusBadRequest {
			t.Errorf("one that is over: %d", status)
		}
		stream := w.begun(backgroundStream)
		w.work(3)
		for range 2 {
			if status, got = cancel(3); status != http.StatusOK || got["status"] != cancelled || fmt.Sprint(got["output"]) != "[]" || got["error"] != nil || got["completed_at"] != nil {
				t.Errorf("%d %v", status, got)
			}
		}
		w.ends(3, handoff.OutcomeResult, "after all")
		w.does(3, handoff.RunItem{Item: handoff.Item{ID: "z", Kind: handoff.ItemMessage, Text: "late"}})
		if _, again := w.ask(http.MethodGet, "/v1/responses/resp_r3", ""); fmt.Sprint(again) != fmt.Sprint(got) {
			t.Errorf("afterwards %v", again)
		}
		if _, o := stream.frames(); o.read(stream.Body.Bytes()) != nil || o.last["status"] != cancelled {
			t.Errorf("%s", stream.Body)
		}
		if !slices.Equal(w.stops(), []string{"r3"}) {
			t.Errorf("stopped are %v", w.stops())
		}
	})
}

// TestDelete: what is in flight is not deleted; what was deleted is gone, and nothing brings it back.
func TestDelete(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.begun(backgroundStream)
		status, got := w.ask(http.MethodDelete, "/v1/responses/resp_r1", "")
		if code := w.refusal(status, got); status != http.StatusBadRequest || code != "response_in_progress" {
			t.Errorf("in flight: %d %q", status, code)
		}
		w.ends(1, handoff.OutcomeResult, "hello")
		a.frames()
		if status, got := w.ask(http.MethodDelete, "/v1/responses/resp_r1", ""); status != http.StatusOK || got["deleted"] != true || got["id"] != "resp_r1" || got["object"] != "response" {
			t.Errorf("%d %v", status, got)
		}
		w.does(1, handoff.RunEnded{})
		for _, life := range []string{"this", "the next"} {
			for _, c := range []string{"GET ", "GET ?stream=true", "GET /input_items", "POST /cancel", "DELETE "} {
				method, rest, _ := strings.Cut(c, " ")
				if status, got := w.ask(method, "/v1/responses/resp_r1"+rest, ""); status != http.StatusNotFound {
					t.Errorf("%s in %s life: %d %v", c, life, status, got)
				}
			}
			w.begin()
		}
	})
}

// TestReaderLeaves: a response whose reader has left is stopped after the time that an SDK needs to come back, unless
// it is in the background.
func TestReaderLeaves(t *testing.T) {
	inWorld(t, func(w *world) {
		for n, body := range []string{`{"model":"bigpc","input":"hi"}`, `{"model":"bigpc","input":"hi","stream":true}`, backgroundStream} {
			w.begun(body).leave(nil)
			time.Sleep(abandoned - time.Millisecond)
			if slices.Contains(w.stops(), fmt.Sprint("r", n+1)) {
				t.Errorf("%s: stopped too early", body)
			}
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			if background := strings.Contains(body, "background"); slices.Contains(w.stops(), fmt.Sprint("r", n+1)) == background {
				t.Errorf("%s: stopped are %v", body, w.stops())
			}
		}
	})
}

// TestKeyIsRevoked: a stream whose key does not count any more ends with an error event, and an answer that has not
// begun is an error. The work is like one whose reader has left.
func TestKeyIsRevoked(t *testing.T) {
	inWorld(t, func(w *world) {
		gone := handoff.Fault(handoff.CodeUnauthorized, "", "")
		a := w.begun(backgroundStream)
		w.work(1)
		a.leave(gone)
		frames, _ := a.frames()
		last := frames[len(frames)-1]
		if !strings.HasPrefix(last, "event: error\n") || !strings.Contains(last, `"type":"error"`) || !strings.Contains(last, `"code":"invalid_api_key"`) ||
			!strings.Contains(last, fmt.Sprintf(`"sequence_number":%d`, len(frames)-1)) || strings.Contains(last, `"error":`) {
			t.Errorf("it ends with %s", last)
		}
		w.ends(1, handoff.OutcomeResult, "done")
		synctest.Wait()
		if _, got := w.ask(http.MethodGet, "/v1/responses/resp_r1", ""); got["status"] != completed {
			t.Errorf("afterwards %v", got)
		}
		a = w.begun(`{"model":"bigpc","input":"hi"}`)
		a.leave(gone)
		if code := w.refusal(a.Code, a.object()); a.Code != http.StatusUnauthorized || code != "invalid_api_key" {
			t.Errorf("%d %s", a.Code, a.Body)
		}
		a = w.begun(`{"model":"bigpc","input":"hi","stream":true}`)
		a.leave(context.Canceled) // it only left
		if frames, _ := a.frames(); strings.Contains(frames[len(frames)-1], "error\n") {
			t.Errorf("it ends with %s", frames[len(frames)-1])
		}
	})
}

// TestRefusals: errors are objects as OpenAI's clients read them, and say whether to try again where SDKs would.
func TestRefusals(t *testing.T) {
	inWorld(t, func(w *world) {
		_, talk := w.ask(http.MethodPost, "/v1/conversations", "")
		in := fmt.Sprintf(`{"model":"bigpc","input":"hi","background":true,"conversation":%q}`, talk["id"])
		w.begun(in)
		w.begun(backgroundStream)
		for _, c := range []struct {
			method, path, body string
			status             int
			code, retry        string
		}{
			{"POST", "/v1/responses", `nothing`, 400, "", ""},
			{"POST", "/v1/responses", `{"model":"nowhere","input":"hi"}`, 404, "model_not_found", ""},
			{"POST", "/v1/responses", `{"model":"bigpc/nothing","input":"hi"}`, 404, "model_not_found", ""},
			{"POST", "/v1/responses", `{"model":"mini","input":"hi"}`, 503, "unreachable", ""},
			{"POST", "/v1/responses", in, 409, "conversation_locked", "false"},
			{"POST", fmt.Sprintf("/v1/conversations/%s/items", talk["id"]), `{"items":[{"role":"user","content":"x"}]}`, 409, "conversation_locked", "false"},
			{"POST", "/v1/responses", `{"model":"bigpc","input":"hi","previous_response_id":"resp_r2"}`, 409, "previous_response_in_progress", "false"},
			{"POST", "/v1/responses/input_tokens", `{"model":"bigpc","input":"hi"}`, 400, "unsupported_endpoint", ""},
			{"POST", "/v1/responses/compact", `{"model":"bigpc","input":"hi"}`, 400, "unsupported_endpoint", ""},
			{"GET", "/v1/responses", "", 400, "unsupported_endpoint", ""},
			{"POST", "/v1/chat/completions", `{"model":"bigpc","messages":[]}`, 400, "unsupported_endpoint", ""},
			{"GET", "/v1/models/nowhere", "", 404, "model_not_found", ""},
			{"GET", "/v1/responses/resp_r1/input_items?limit=0", "", 400, "invalid_value", ""},
			{"GET", "/v1/responses/resp_r1/input_items?order=up", "", 400, "invalid_value", ""},
			{"GET", "/v1/responses/resp_r1/input_items?after=nobody", "", 400, "invalid_value", ""},
		} {
			a := w.asks(c.method, c.path, c.body)
			if code := w.refusal(a.Code, a.object()); a.Code != c.status || code != c.code || a.Header().Get("X-Should-Retry") != c.retry {
				t.Errorf("%s %s %s: %d %q, retry %q", c.method, c.path, c.body, a.Code, code, a.Header().Get("X-Should-Retry"))
			}
		}
	})
}

// TestSentAgain: a request that is sent again, with a key or as SDKs mark it, runs once, also in the next life of the
// process and when the first answer never came; without either it is another.
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

// TestSentAgainInAConversation: a request that is sent again in the next life gets its response also where the
// conversation has gone on by it since, while it runs or after it; the conversation takes more then.
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
					if w.begin(); round > 0 && n > 1 && key[0] == "Idempotency-Key" { // it is forgotten after some minutes, the run is not
						w.forgets("retry_")
					}
					again := w.asks(http.MethodPost, "/v1/responses", body, key...)
					if got := again.object(); got["id"] != fmt.Sprint("resp_r", n) || got["status"] != completed || w.count() != n {
						t.Fatalf("%v: %v, %d runs, want %d", key, got, w.count(), n)
					}
					_, list := w.ask(http.MethodGet, fmt.Sprintf("/v1/conversations/%s/items", talk["id"]), "")
					if items, _ := list["data"].([]any); len(items) != 2*n {
						t.Fatalf("%v: the conversation has %v", key, items)
					}
				}
			}
		})
	}
}

// TestConversationIsBusyInTheNextLife: what a response still writes there at its end nobody else writes.
func TestConversationIsBusyInTheNextLife(t *testing.T) {
	inWorld(t, func(w *world) {
		_, talk := w.ask(http.MethodPost, "/v1/conversations", "")
		body := strings.TrimSuffix(backgroundPost, "}") + fmt.Sprintf(`,"conversation":%q}`, talk["id"])
		w.begun(body)
		w.begin()
		w.ask(http.MethodGet, "/v1/responses/resp_r1", "")
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

// TestApprovalSentAgain: an answer to a question that is sent again in the next life gets the response that it began,
// while that runs and after its end. Another request does not.
func TestApprovalSentAgain(t *testing.T) {
	for _, key := range [][]string{{"Idempotency-Key", "k"}, {"X-Stainless-Retry-Count", "0"}} {
		inWorld(t, func(w *world) {
			first := w.begun(`{"model":"bigpc","input":"hi"}`)
			w.does(1, handoff.RunAsked{Question: handoff.OpenQuestion{Shown: handoff.RecordQuestion{ID: "q", Kind: handoff.QuestionCommand}}})
			if got := first.object(); got["status"] != completed {
				t.Fatalf("%v", got)
			}
			body := fmt.Sprintf(`{"model":"bigpc","previous_response_id":"resp_r1","input":[{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}]}`, approvalID("q"))
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
			if status, got := w.ask(http.MethodPost, "/v1/responses", body); w.refusal(status, got) != "response_in_use" {
				t.Errorf("another answer: %d %v", status, got)
			}
		})
	}
}

// TestSentAgainBeforeItBegan: a former life promised the work and began nothing. Who sends the request again wants it
// done: it runs, once.
func TestSentAgainBeforeItBegan(t *testing.T) {
	for _, talks := range []bool{false, true} {
		inWorld(t, func(w *world) { sentAgainBeforeItBegan(w, talks) })
	}
}

func sentAgainBeforeItBegan(w *world, talks bool) {
	body := backgroundPost
	if talks {
		_, talk := w.ask(http.MethodPost, "/v1/conversations", "")
		body = strings.TrimSuffix(body, "}") + fmt.Sprintf(`,"conversation":%q}`, talk["id"])
	}
	w.hold = true
	w.begun(body).leave(nil)
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
		status, got := w.ask(http.MethodPost, "/v1/responses", body, "X-Stainless-Retry-Count", "1")
		if status != http.StatusOK || got["id"] != "resp_r2" || w.count() != 2 {
			w.t.Errorf("sent again: %d %v, %d runs", status, got, w.count())
		}
		w.begin() // nor after another restart
	}
}

// TestStoreDown: while the store does not answer, what needs it is an error that says so and may be tried again, and
// that does not tell where the store is; what is in memory goes on.
func TestStoreDown(t *testing.T) {
	inWorld(t, func(w *world) {
		_, talk := w.ask(http.MethodPost, "/v1/conversations", "")
		stream := w.begun(backgroundStream)
		w.breaks(true)
		for _, c := range []struct{ method, path, body string }{
			{http.MethodGet, "/v1/responses/resp_r9", ""},
			{http.MethodPost, "/v1/responses", `{"model":"bigpc","input":"hi","previous_response_id":"resp_r9"}`},
			{http.MethodPost, "/v1/responses", fmt.Sprintf(`{"model":"bigpc","input":"hi","conversation":%q}`, talk["id"])},
			{http.MethodPost, "/v1/conversations", ""},
			{http.MethodGet, fmt.Sprintf("/v1/conversations/%s", talk["id"]), ""},
		} {
			a := w.asks(c.method, c.path, c.body)
			if code := w.refusal(a.Code, a.object()); code != "store_down" || a.Code != http.StatusServiceUnavailable || a.Header().Get("X-Should-Retry") == "false" || strings.Contains(a.Body.String(), "/home") {
				t.Errorf("%s %s: %d %s", c.method, c.path, a.Code, a.Body)
			}
		}
		w.ends(1, handoff.OutcomeResult, "hello")
		if _, o := stream.frames(); o.read(stream.Body.Bytes()) != nil || o.over != evCompleted {
			t.Errorf("%s", stream.Body)
		}
		if _, got := w.ask(http.MethodGet, "/v1/responses/resp_r1", ""); got["status"] != completed {
			t.Errorf("afterwards %v", got)
		}
	})
}

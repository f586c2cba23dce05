package responses

import (
	"context"
	"fmt"
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
	w.does(n, handoff.EventDelta{ItemID: "m", Kind: handoff.DeltaMessage, Text: "I look"},
		handoff.EventDelta{ItemID: "m", Kind: handoff.DeltaMessage, At: 6, Text: " at it."},
		handoff.EventItem{Item: handoff.Item{ID: "m", Kind: handoff.ItemMessage, Text: "I look at it."}},
		handoff.EventDoing{ID: "c", Item: handoff.ItemCommand, Text: "go test"},
		handoff.EventItem{Item: handoff.Item{ID: "c", Kind: handoff.ItemCommand, Text: "go test", Output: "ok", Exit: new(0)}})
	synctest.Wait()
}

// TestGetAgreesWithTheStream: at every end of a response, its stream has one terminal event, which is the last one and
// says why, and GET returns the same response afterwards, from memory and after a restart.
func TestGetAgreesWithTheStream(t *testing.T) {
	for outcome, want := range map[handoff.Outcome]string{
		handoff.OutcomeResult: "completed <nil> <nil>", handoff.OutcomeFailed: "failed rate_limit_exceeded <nil>",
		handoff.OutcomeInterrupted: "incomplete <nil> interrupted", handoff.OutcomeCancelled: "incomplete <nil> interrupted",
		handoff.OutcomeUnknown: "failed server_error <nil>", "cancelled by its reader": "cancelled <nil> <nil>",
	} {
		inWorld(t, func(w *world) {
			a := w.begun(backgroundStream)
			w.work(1)
			if outcome == handoff.OutcomeFailed {
				w.run(1).rec.Error = &handoff.RecordError{Code: handoff.CodeModelLimit, Message: "The model takes no more."}
			}
			if outcome == "cancelled by its reader" {
				w.ask(http.MethodPost, "/v1/responses/resp_r1/cancel", "")
			} else {
				w.ends(1, outcome, "done")
			}
			_, o := a.frames()
			err := o.read(a.Body.Bytes())
			failure, _ := o.last["error"].(map[string]any)
			details, _ := o.last["incomplete_details"].(map[string]any)
			if got := fmt.Sprintf("%v %v %v", o.last["status"], failure["code"], details["reason"]); err != nil || got != want {
				t.Errorf("%s: %v, %s", outcome, err, got)
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

// TestResumeAfterACut: a stream that is read again after any event, before or after its end, has the rest of the same
// events.
func TestResumeAfterACut(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.begun(backgroundStream)
		w.does(1, handoff.EventDelta{ItemID: "m", Kind: handoff.DeltaMessage, Text: "I look"})
		a.leave(nil)
		part, _ := a.frames()
		again := make([]*answer, len(part))
		for k := range part { // the rest comes while they read
			again[k] = w.asks(http.MethodGet, fmt.Sprintf("/v1/responses/resp_r1?stream=true&starting_after=%d", k), "")
		}
		w.does(1, handoff.EventDelta{ItemID: "m", Kind: handoff.DeltaMessage, At: 6, Text: " at it."})
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

// TestBadCursor: an invalid starting_after is refused before the response is looked up, and only a response with
// background and stream can be streamed again.
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

// TestCancel: only a response in the background can be cancelled; cancelling twice is like once, and later events
// change nothing.
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
		w.does(3, handoff.EventItem{Item: handoff.Item{ID: "z", Kind: handoff.ItemMessage, Text: "late"}})
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

// TestCancelRefused: a response whose work cannot be stopped goes on, and its outcome is not heard yet. Work that has
// ended needs no stop.
func TestCancelRefused(t *testing.T) {
	for code, want := range map[handoff.Code]string{
		handoff.CodeJoined: completed, handoff.CodeNoConsent: completed, handoff.CodeStoreDown: completed,
		handoff.CodeWorkEnded: cancelled,
	} {
		inWorld(t, func(w *world) {
			w.begun(backgroundPost)
			w.mu.Lock()
			w.goesOn = handoff.Fault(code, "bigpc", "")
			w.mu.Unlock()
			status, got := w.ask(http.MethodPost, "/v1/responses/resp_r1/cancel", "")
			if want == completed && w.refusal(status, got) != string(code) || want == cancelled && got["status"] != cancelled {
				t.Errorf("%s: %d %v", code, status, got)
			}
			w.ends(1, handoff.OutcomeResult, "hello")
			if heard := w.isHeard(1); heard != (want == cancelled) {
				t.Errorf("%s: heard is %t", code, heard)
			}
			if _, got := w.ask(http.MethodGet, "/v1/responses/resp_r1", ""); got["status"] != want {
				t.Errorf("%s: afterwards it is %v", code, got)
			}
		})
	}
}

// TestDelete: an open response cannot be deleted; a deleted one stays deleted.
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
		w.does(1, handoff.EventEnded{})
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

// TestReaderLeaves: a response without a reader is stopped after the time that an SDK needs to reconnect, unless it is
// in the background.
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

// TestKeyIsRevoked: after its key was revoked, a stream ends with an error event, and an answer that has not begun is
// an error. The work goes on as after a reader has left.
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

// TestRefusals: errors have the form of OpenAI's API, and say whether SDKs should repeat the request.
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
			{"POST", fmt.Sprintf("/v1/conversations/%s/items", talk["id"]), `{"items":[]}`, 400, "unsupported_endpoint", ""},
			{"GET", fmt.Sprintf("/v1/conversations/%s/items", talk["id"]), "", 400, "unsupported_endpoint", ""},
			{"POST", fmt.Sprintf("/v1/conversations/%s", talk["id"]), `{"metadata":{}}`, 400, "unsupported_endpoint", ""},
			{
				"POST", "/v1/responses", `{"model":"bigpc","input":"hi","previous_response_id":"resp_r2"}`, 409,
				"previous_response_in_progress", "false",
			},
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

// TestStoreDown: while the store does not answer, requests that need it get an error that does not reveal the store's
// address and may be repeated; responses in memory go on.
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

// TestLongAnswerIsNotLate: a request gets its answer when the response ends, even if the log of events has been cut.
func TestLongAnswerIsNotLate(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.begun(`{"model":"bigpc","input":"hi"}`)
		for i := range 4 { // each is sent three times: in pieces, whole, and as an item
			w.does(1, handoff.EventItem{Item: handoff.Item{ID: fmt.Sprint("m", i), Kind: handoff.ItemMessage,
				Text: strings.Repeat("x", 1<<20)}})
		}
		synctest.Wait()
		began := time.Now()
		w.ends(1, handoff.OutcomeResult, "done")
		if got := a.object(); got["status"] != completed || time.Since(began) > 0 {
			t.Errorf("%v after %v", got["status"], time.Since(began))
		}
	})
}

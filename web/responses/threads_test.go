package responses

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
)

// TestWhereItGoesOn: a new response has a new thread; the next one, and one in the same conversation, continues that
// thread.
func TestWhereItGoesOn(t *testing.T) {
	inWorld(t, func(w *world) {
		_, talk := w.ask(http.MethodPost, "/v1/conversations", "")
		in := fmt.Sprintf(`"conversation":%q`, talk["id"])
		for i, c := range []struct{ more, server, thread, after string }{
			{`"model":"bigpc/shop"`, "bigpc/shop", handoff.NewThread, ""},
			{`"model":"bigpc","previous_response_id":"resp_r1"`, "bigpc", "thread1", "turn1"},
			{`"model":"laptop",` + in, "laptop", handoff.NewThread, ""},
			{`"model":"laptop",` + in, "laptop", "thread3", ""},
			{`"model":"laptop","previous_response_id":"resp_r4"`, "laptop", "thread3", "turn4"},
			{`"model":"laptop","store":false`, "laptop", "", ""},
			{`"model":"laptop","store":false,"previous_response_id":"resp_r4"`, "laptop", "thread3", "turn4"},
		} {
			a := w.begun(`{"input":"hi",` + c.more + `}`)
			w.ends(i+1, handoff.OutcomeResult, "hello")
			if got := a.object(); got["status"] != completed || got["id"] != fmt.Sprint("resp_r", i+1) {
				t.Fatalf("%s: %v", c.more, got)
			}
			req := w.run(i + 1).req
			aside := strings.Contains(c.more, "false")
			if next := strings.Contains(c.more, "conversation"); (req.Mode == handoff.ModeNext) != next {
				t.Errorf("%s: mode %v", c.more, req.Mode)
			}
			if req.Target.Server != c.server || req.Target.Thread != c.thread || string(req.After) != c.after ||
				(req.Mode == handoff.ModeAside) != aside ||
				req.Unkept != aside {
				t.Errorf("%s: %+v", c.more, req)
			}
		}
		for more, want := range map[string]string{
			`"previous_response_id":"resp_nobody"`: "previous_response_not_found",
			`"previous_response_id":"resp_r6"`:     "previous_response_not_found", // it was not stored
			`"conversation":"conv_nobody"`:         "conversation_not_found",
			`"previous_response_id":"resp_r3"`:     "model_mismatch",
			`"store":false,` + in:                  "unsupported_parameter",
		} {
			status, got := w.ask(http.MethodPost, "/v1/responses", `{"model":"bigpc","input":"hi",`+more+`}`)
			if code := w.refusal(status, got); code != want {
				t.Errorf("%s: %d %q, want %q", more, status, code, want)
			}
		}
	})
}

// TestMade: for each caller it is known which sessions programs made, even after a restart. Continuing an existing
// session, or a response that is not kept, makes none.
func TestMade(t *testing.T) {
	inWorld(t, func(w *world) {
		look := func(owner, thread string) bool {
			return w.api.Made(context.Background(), handoff.Caller{Principal: owner})("bigpc", thread)
		}
		w.api.makesSession(handoff.Caller{Principal: "ann"}, "bigpc", "t1")
		names, bob := make([]string, maxMade), handoff.Caller{Principal: "bob"}
		for i := range names {
			names[i] = fmt.Sprint("bigpc/b", i)
		}
		_ = w.api.documents.store(bob, madeDocument, []byte(handoff.Encode(names)), keptFor)
		w.api.makesSession(bob, "bigpc", "last")
		for range 2 {
			if !look("ann", "t1") || look("bob", "t1") || look("ann", "b1") || look("bob", "b0") || !look("bob", "b1") ||
				!look("bob", "last") {
				t.Error("it is told wrong")
			}
			w.begin()
		}
	})
}

// TestAnothersIsUnknown: the responses of another caller look as if they did not exist.
func TestAnothersIsUnknown(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.begun(`{"model":"bigpc","input":"hi","background":true,"stream":true}`)
		_, talk := w.ask(http.MethodPost, "/v1/conversations", "")
		for _, over := range []bool{false, true} {
			if over {
				w.ends(1, handoff.OutcomeResult, "hello")
				a.frames()
			}
			for _, c := range []struct{ method, path, body string }{
				{http.MethodGet, "/v1/responses/%s", ""},
				{http.MethodGet, "/v1/responses/%s?stream=true", ""},
				{http.MethodGet, "/v1/responses/%s/input_items", ""},
				{http.MethodPost, "/v1/responses/%s/cancel", ""},
				{http.MethodDelete, "/v1/responses/%s", ""},
				{http.MethodPost, "/v1/responses", `{"model":"bigpc","input":"hi","previous_response_id":"%s"}`},
			} {
				with := func(id string) string {
					path, body := c.path, c.body
					path, body = strings.ReplaceAll(path, "%s", id), strings.ReplaceAll(body, "%s", id)
					status, got := w.ask(c.method, path, body, "Owner", "other")
					return strings.ReplaceAll(fmt.Sprint(status, got), id, "ID")
				}
				if theirs, none := with("resp_r1"), with("resp_r9"); theirs != none {
					t.Errorf("%s %s: %s, and of what is not there %s", c.method, c.path, theirs, none)
				}
			}
		}
		id := fmt.Sprint(talk["id"])
		for _, c := range []string{http.MethodGet, http.MethodDelete} {
			status, got := w.ask(c, "/v1/conversations/"+id, "{}", "Owner", "other")
			if code := w.refusal(status, got); status != http.StatusNotFound || code != "conversation_not_found" {
				t.Errorf("%s: %d %v", c, status, got)
			}
		}
	})
}

// TestFailedCreate: a response that could not be begun is not kept; repeating the request begins it.
func TestFailedCreate(t *testing.T) {
	inWorld(t, func(w *world) {
		_, talk := w.ask(http.MethodPost, "/v1/conversations", "")
		a := w.begun(`{"model":"bigpc","input":"hi"}`)
		w.ends(1, handoff.OutcomeResult, "hello")
		a.object()
		none := handoff.Fault(handoff.CodeUnreachable, "bigpc", "")
		for _, more := range []string{"", `,"previous_response_id":"resp_r1"`, fmt.Sprintf(`,"conversation":%q`, talk["id"])} {
			body := `{"model":"bigpc","input":"go on"` + more + `}`
			before := w.kept()
			// Refused at once, and refused before anything of it was written down.
			w.mu.Lock()
			w.refuse = none
			w.mu.Unlock()
			status, got := w.ask(http.MethodPost, "/v1/responses", body)
			w.refusal(status, got)
			w.mu.Lock()
			w.refuse, w.hold = nil, true
			w.mu.Unlock()
			early := w.begun(body)
			n := w.count()
			w.fails(n, none)
			w.ends(n, handoff.OutcomeFailed, "")
			w.refusal(early.Code, early.object())
			status, got = w.ask(http.MethodGet, "/v1/responses/resp_"+w.run(n).rec.ID+"x", "")
			w.refusal(status, got)
			if after := w.kept(); !slices.Equal(before, after) {
				t.Errorf("%s: kept are %v, and were %v", more, after, before)
			}
			w.mu.Lock()
			w.hold = false
			w.mu.Unlock()
			again := w.asks(http.MethodPost, "/v1/responses", body, "X-Stainless-Retry-Count", "1")
			w.ends(n+1, handoff.OutcomeResult, "went on")
			if got := again.object(); again.Code != http.StatusOK || got["status"] != completed {
				t.Errorf("%s: again %v", more, got)
			}
		}
	})
}

// TestNotStored: a response with store false streams to its end and is not stored, even if it continues a stored
// response, which does not change.
func TestNotStored(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.begun(`{"model":"bigpc","input":"hi"}`)
		w.ends(1, handoff.OutcomeResult, "hello")
		a.object()
		before := w.kept()
		_, first := w.ask(http.MethodGet, "/v1/responses/resp_r1", "")
		for n, more := range []string{"", `,"previous_response_id":"resp_r1"`} {
			a := w.begun(`{"model":"bigpc","input":"hi","stream":true,"store":false` + more + `}`)
			w.does(n+2, handoff.EventDelta{ItemID: "m", Kind: handoff.DeltaMessage, Text: "hel"})
			w.ends(n+2, handoff.OutcomeResult, "hello")
			_, o := a.frames()
			if err := o.read(a.Body.Bytes()); err != nil || o.over != evCompleted || o.last["store"] != false {
				t.Errorf("%v: %s", err, a.Body)
			}
			status, got := w.ask(http.MethodGet, fmt.Sprint("/v1/responses/resp_r", n+2), "")
			if w.refusal(status, got); status != http.StatusNotFound {
				t.Errorf("afterwards %d %v", status, got)
			}
			if after := w.kept(); !slices.Equal(before, after) {
				t.Errorf("kept are %v, and were %v", after, before)
			}
		}
		if _, again := w.ask(http.MethodGet, "/v1/responses/resp_r1", ""); fmt.Sprint(again) != fmt.Sprint(first) {
			t.Errorf("the first is %v, and was %v", again, first)
		}
	})
}

// TestThreadingIsOptedOut: a request can ask in its metadata that the model gets the whole history; the agent gets this
// as a trusted setting, not as a person's words. Other metadata does not reach the agent.
func TestThreadingIsOptedOut(t *testing.T) {
	inWorld(t, func(w *world) {
		for i, c := range []struct{ metadata, want string }{
			{`{"disable_response_threading":"true","ticket":"7"}`, "true"},
			{`{"ticket":"7"}`, ""},
		} {
			a := w.begun(`{"model":"laptop","input":"hi","metadata":` + c.metadata + `}`)
			w.ends(i+1, handoff.OutcomeResult, "hello")
			got, _ := a.object()["metadata"].(map[string]any)
			if got["ticket"] != "7" {
				t.Errorf("%s is shown as %v", c.metadata, got)
			}
			var want []handoff.Context
			if c.want != "" {
				want = []handoff.Context{{Key: "disable_response_threading", Value: c.want, Trusted: true}}
			}
			if got := w.run(i + 1).req.Context; !slices.Equal(got, want) {
				t.Errorf("with %s the agent is told %+v, want %+v", c.metadata, got, want)
			}
		}
	})
}

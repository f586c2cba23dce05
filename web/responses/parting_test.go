package responses

import (
	"net/http"
	"strings"
	"testing"

	"switchboard/handoff"
)

// TestRunOutlivesProcess: if a handoff goes on when the process ends, or when its caller's home changes, its response
// fails only for the reader at that moment: read again or repeated, it has the outcome of the handoff.
func TestRunOutlivesProcess(t *testing.T) {
	yields := func(w *world) { w.does(1, handoff.EventYielded{}) }
	for _, end := range []struct {
		name  string
		do    func(w *world)
		again bool // it is asked for in the next life of the process
	}{
		{"the front closes", func(w *world) { w.api.Close() }, true},
		{"the router ends", func(w *world) {
			w.fails(1, handoff.Fault(handoff.CodeShutdown, "", ""))
			w.ends(1, handoff.OutcomeUnknown, "")
		}, true},
		{"another home has it", yields, true},
		{"another home had it meanwhile", yields, false},
	} {
		t.Run(end.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				const body, retry = `{"model":"bigpc","input":"hi"}`, "Idempotency-Key"
				first := w.asks(http.MethodPost, "/v1/responses", body, retry, "k")
				end.do(w)
				if got := first.object(); got["status"] != failed {
					t.Fatalf("who waited got %v", got)
				}
				if end.again {
					w.begin()
				}
				r := w.run(1)
				w.mu.Lock()
				r.log, r.rec.Outcome, r.rec.Fault = nil, "", nil // as the next life finds it
				w.mu.Unlock()
				w.does(1, handoff.EventNoted{})
				if _, got := w.ask(http.MethodGet, "/v1/responses/resp_r1", ""); got["status"] != inProgress {
					t.Errorf("while its run goes on it is %v", got)
				}
				w.ends(1, handoff.OutcomeResult, "hello")
				if _, got := w.ask(http.MethodPost, "/v1/responses", body, retry, "k"); got["status"] != completed ||
					got["id"] != "resp_r1" || w.count() != 1 {
					t.Errorf("sent again it is %v, after %d runs", got, w.count())
				}
				if _, got := w.ask(http.MethodGet, "/v1/responses/resp_r1", ""); got["status"] != completed {
					t.Errorf("read again it is %v", got)
				}
			})
		})
	}
}

// TestStreamOutlivesProcess: the stream of a response in the background that goes on elsewhere is cut off, without an
// event that says it failed.
func TestStreamOutlivesProcess(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.begun(backgroundStream)
		w.does(1, handoff.EventYielded{})
		if frames, _ := a.frames(); strings.Contains(strings.Join(frames, ""), failed) {
			t.Errorf("%s", frames)
		}
		r := w.run(1)
		w.mu.Lock()
		r.log = nil
		w.mu.Unlock()
		w.does(1, handoff.EventNoted{})
		w.ends(1, handoff.OutcomeResult, "hello")
		if _, got := w.ask(http.MethodGet, "/v1/responses/resp_r1", ""); got["status"] != completed {
			t.Errorf("read again it is %v", got)
		}
	})
}

// TestEndsWithItsProcess: the response of work that ends with the process fails for good.
func TestEndsWithItsProcess(t *testing.T) {
	inWorld(t, func(w *world) {
		w.begun(`{"model":"bigpc","input":"hi"}`)
		w.fails(1, handoff.Fault(handoff.CodeAgentEnded, "bigpc", ""))
		w.ends(1, handoff.OutcomeUnknown, "")
		w.begin()
		if _, got := w.ask(http.MethodGet, "/v1/responses/resp_r1", ""); got["status"] != failed {
			t.Errorf("it is %v", got)
		}
	})
}

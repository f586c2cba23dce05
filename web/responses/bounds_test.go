package responses

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"switchboard/handoff"
)

// TestFull: a request that is refused because there is no room, or because the process ends, has begun nothing.
// Responses that have ended make room.
func TestFull(t *testing.T) {
	inWorld(t, func(w *world) {
		w.api.live.most = 2
		w.begun(backgroundPost)
		w.ends(1, handoff.OutcomeResult, "hello")
		w.begun(backgroundPost)
		w.begun(backgroundPost)
		status, got := w.ask(http.MethodPost, "/v1/responses", `{"model":"bigpc","input":"hi"}`)
		if code := w.refusal(status, got); code != "overloaded" || w.count() != 3 {
			t.Errorf("full: %d %q, %d handoffs were begun", status, code, w.count())
		}
		w.api.live.close()
		w.api.live.most = 9
		status, got = w.ask(http.MethodPost, "/v1/responses", backgroundPost)
		if code := w.refusal(status, got); code != string(handoff.CodeShutdown) || w.count() != 3 {
			t.Errorf("at the end: %d %q, %d handoffs were begun", status, code, w.count())
		}
	})
}

// TestEndedIsForgotten: the events of a response that the store has leave memory soon after its end, those of others
// when no repetition counts any more, or when there are too many. No request is needed for that.
func TestEndedIsForgotten(t *testing.T) {
	end := func(w *world, body string) weak.Pointer[liveResponse] {
		n := w.count() + 1
		a := w.begun(body)
		l := weak.Make(w.api.live.get(handoff.Caller{Principal: "owner"}, fmt.Sprint("resp_r", n)))
		w.ends(n, handoff.OutcomeResult, "hello")
		a.object()
		return l
	}
	isThere := func(l weak.Pointer[liveResponse]) bool {
		synctest.Wait()
		runtime.GC()
		return l.Value() != nil
	}
	const unstored = `{"model":"bigpc","input":"hi","store":false}`
	inWorld(t, func(w *world) {
		stored, not := end(w, `{"model":"bigpc","input":"hi"}`), end(w, unstored)
		time.Sleep(2 * time.Minute)
		if isThere(stored) || !isThere(not) {
			t.Errorf("soon after its end: one in the store %t, another %t", isThere(stored), isThere(not))
		}
		if time.Sleep(lostFor); isThere(not) {
			t.Error("it is there as long as the process")
		}
		w.api.live.most = 1
		oldest := end(w, unstored)
		if end(w, unstored); isThere(oldest) {
			t.Error("they are kept without bound")
		}
	})
}

// TestReaderComesBack: a response goes on if its reader leaves and comes back in time. One who comes while it is being
// stopped, because the time is over, finds it stopped: it is never stopped under a reader.
func TestReaderComesBack(t *testing.T) {
	for _, away := range []time.Duration{abandoned / 2, abandoned + time.Second/2} {
		inWorld(t, func(w *world) {
			const body = `{"model":"bigpc","input":"hi"}`
			w.begun(body).leave(nil)
			synctest.Wait()
			w.slows(time.Second)
			time.Sleep(away)
			stopped := len(w.stops())
			w.asks(http.MethodPost, "/v1/responses", body, "X-Stainless-Retry-Count", "1")
			time.Sleep(time.Minute)
			if stopped > 0 == (away < abandoned) || len(w.stops()) != stopped {
				t.Errorf("after %v: %d stopped when they came, %d later", away, stopped, len(w.stops()))
			}
		})
	}
}

// TestRefusedIsNotStored: a response whose request was refused is not stored, even if its handoff ends just as the
// request has waited long enough for its begin.
func TestRefusedIsNotStored(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hold = true
		a := w.begun(backgroundPost)
		time.Sleep(placedWithin - 10*time.Millisecond)
		w.slows(20 * time.Millisecond)
		w.fails(1, handoff.Fault(handoff.CodeUnreachable, "bigpc", ""))
		w.ends(1, handoff.OutcomeFailed, "")
		a.object()
		time.Sleep(time.Second)
		if stored := slices.Contains(w.kept(), "owner resp_r1"); stored != (a.Code == http.StatusOK) {
			t.Errorf("%d, stored %t: %s", a.Code, stored, a.Body)
		}
	})
}

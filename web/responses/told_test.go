package responses

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// isHeard reports whether the outcome of the nth run was reported as heard.
func (w *world) isHeard(n int) bool {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.heard, handoff.ID(fmt.Sprint("r", n)))
}

// TestToldIsWritten: an outcome was heard when the bytes with it were written to a client that is still there, however
// it was read, and not before.
func TestToldIsWritten(t *testing.T) {
	const hi = `{"model":"bigpc","input":"hi"}`
	for _, body := range []string{hi, strings.TrimSuffix(hi, "}") + `,"stream":true}`, backgroundStream, backgroundPost} {
		for _, end := range []string{"read", "left before", "left at the end", "broken", "repeated"} {
			t.Run(body+" "+end, func(t *testing.T) {
				inWorld(t, func(w *world) {
					a := w.asks(http.MethodPost, "/v1/responses", body, "Idempotency-Key", "k")
					switch end {
					case "left before":
						a.leave(nil)
						synctest.Wait()
					case "left at the end": // its connection breaks while the end is written
						a.atWrite = func() error { a.leave(nil); return nil }
					case "broken":
						a.atWrite = func() error { return errors.New("broken pipe") }
					case "repeated":
						a.leave(nil)
						synctest.Wait()
						a = w.asks(http.MethodPost, "/v1/responses", body, "Idempotency-Key", "k")
					}
					w.ends(1, handoff.OutcomeResult, "hello")
					<-a.done
					if heard := w.isHeard(1); heard != (body != backgroundPost && (end == "read" || end == "repeated")) {
						t.Errorf("heard is %t", heard)
					}
					if got := w.asks(http.MethodGet, "/v1/responses/resp_r1", ""); got.object()["status"] != completed || !w.isHeard(1) {
						t.Errorf("read afterwards: %s", got.Body)
					}
				})
			})
		}
	}
}

// TestUnheardGoesToCalls: calls hear of an outcome only once nobody reads its response any more.
func TestUnheardGoesToCalls(t *testing.T) {
	inWorld(t, func(w *world) {
		left := func() int {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.left
		}
		a := w.begun(`{"model":"bigpc","input":"hi"}`)
		a.atWrite = func() error {
			if left() != 0 {
				t.Error("left to calls before it was written")
			}
			return errors.New("broken pipe")
		}
		w.ends(1, handoff.OutcomeResult, "hello")
		<-a.done
		if synctest.Wait(); left() != 1 || w.isHeard(1) {
			t.Errorf("its reader has gone: left %d times, heard %t", left(), w.isHeard(1))
		}
	})
}

// TestRepeatedForADay: a request without a key that says that it repeats an earlier one is the same work for 24 hours
// and across restarts, until its answer was written; then for ten minutes more, since bytes may be lost on their way.
// One that does not say so is the same while who made the first has no answer.
func TestRepeatedForADay(t *testing.T) {
	const minutes, same, other = time.Minute, true, false
	marked, unmarked := []string{"X-Stainless-Retry-Count", "1"}, []string(nil)
	for _, tc := range []struct {
		name    string
		acts    string
		after   time.Duration
		headers []string
		want    bool
	}{
		{"after ten minutes", "", 11 * minutes, marked, same},
		{"after ten minutes and a cut", "wait cut", 0, marked, same},
		{"after 23 hours", "", 23 * time.Hour, marked, same},
		{"after 23 hours and a restart", "restart", 23 * time.Hour, marked, same},
		{"after its end, which nobody read", "cut end", 23 * time.Hour, marked, same},
		{"after a day", "cut end", 25 * time.Hour, marked, other},
		{"a moment after its end", "end", minutes, marked, same},
		{"a moment after its end, after a restart", "end restart", minutes, marked, same},
		{"long after its end", "end", 11 * minutes, marked, other},
		{"long after its end, after a restart", "end restart", 11 * minutes, marked, other},
		{"another one at the same time", "", 0, unmarked, other},
		{"after a cut", "cut", 0, unmarked, same},
		{"after a cut and a restart", "restart cut", 0, unmarked, same},
		{"after its end without a mark", "end", 0, unmarked, other},
		{"after a repetition was told", "restart cut again end", 0, unmarked, other},
		{"long after a repetition was told", "restart cut again end restart", 11 * minutes, marked, other},
		{"after its end without a mark, after a restart", "end restart", 0, unmarked, other},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				const body = `{"model":"bigpc","input":"hi"}`
				first := w.begun(body)
				for act := range strings.FieldsSeq(tc.acts) {
					switch act {
					case "cut":
						first.leave(nil)
						<-first.done
					case "end":
						w.ends(1, handoff.OutcomeResult, "hello")
						<-first.done
					case "restart":
						w.begin()
					case "again":
						first = w.asks(http.MethodPost, "/v1/responses", body, marked...)
					case "wait":
						time.Sleep(11 * time.Minute)
					}
					synctest.Wait()
				}
				time.Sleep(tc.after)
				w.asks(http.MethodPost, "/v1/responses", body, tc.headers...)
				if n := w.count(); (n == 1) != tc.want {
					t.Errorf("%d runs", n)
				}
			})
		})
	}
}

// TestReadForLong: that a client has the answer to a request that took long says nothing about a newer equal one. Who
// has no answer to that gets its response when they come back.
func TestReadForLong(t *testing.T) {
	for _, headers := range [][]string{nil, {"X-Stainless-Retry-Count", "1"}} {
		inWorld(t, func(w *world) {
			const body = `{"model":"bigpc","input":"hi"}`
			long, newer := w.begun(body), w.begun(body)
			newer.atWrite = func() error { return errors.New("broken pipe") }
			w.ends(2, handoff.OutcomeResult, "hello")
			<-newer.done
			time.Sleep(2 * time.Minute)
			w.ends(1, handoff.OutcomeResult, "hello")
			long.object()
			again := w.asks(http.MethodPost, "/v1/responses", body, headers...)
			if !strings.Contains(again.Body.String(), `"resp_r2"`) || w.count() != 2 {
				t.Errorf("%v: %s, %d runs", headers, again.Body, w.count())
			}
		})
	}
}

// TestStoreHesitates: a handoff that was promised, and ended before it began because the store did not answer, is begun
// again, and the stream goes on.
func TestStoreHesitates(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hold = true
		a := w.asks(http.MethodPost, "/v1/responses", backgroundStream, "Idempotency-Key", "k")
		r := w.run(1)
		w.mu.Lock()
		r.log = append(r.log, handoff.Event{ID: "r1", Seq: 1, Record: r.rec, Noted: true, Kind: handoff.EventNoted{}})
		r.rec.Outcome, r.rec.Fault = handoff.OutcomeFailed, handoff.Fault(handoff.CodeStoreDown, "", "")
		r.log = append(r.log, handoff.Event{ID: "r1", Seq: 2, Record: r.rec, Noted: true, Kind: handoff.EventEnded{}})
		close(r.changed)
		w.hold = false
		w.mu.Unlock()
		time.Sleep(time.Second)
		if w.count() != 2 || !w.isHeard(1) {
			t.Fatalf("%d runs", w.count())
		}
		w.ends(2, handoff.OutcomeResult, "hello")
		if _, o := a.frames(); o.read(a.Body.Bytes()) != nil || o.over != evCompleted {
			t.Errorf("%s", a.Body)
		}
		if _, got := w.ask(http.MethodGet, "/v1/responses/resp_r1", ""); got["status"] != completed {
			t.Errorf("read again: %v", got)
		}
		w.begin()
		if _, got := w.ask(http.MethodPost, "/v1/responses", backgroundPost, "Idempotency-Key", "other"); got["id"] != "resp_r3" {
			t.Errorf("another request: %v", got)
		}
		if got := w.asks(http.MethodPost, "/v1/responses", backgroundStream, "Idempotency-Key", "k"); !strings.Contains(
			got.Body.String(), `"resp_r1"`) || w.count() != 3 {
			t.Errorf("sent again: %s, %d runs", got.Body, w.count())
		}
		w.ask(http.MethodDelete, "/v1/responses/resp_r1", "")
		if status, got := w.ask(http.MethodPost, "/v1/responses", backgroundStream, "Idempotency-Key", "k"); status != http.StatusNotFound {
			t.Errorf("sent again when it was deleted: %d %v", status, got)
		}
	})
}

// TestNotWantedAnyMore: a promised handoff is not begun again if its response was cancelled meanwhile, or its reader is
// gone for good.
func TestNotWantedAnyMore(t *testing.T) {
	for _, cancels := range []bool{true, false} {
		inWorld(t, func(w *world) {
			w.hold = true
			body := backgroundStream
			if !cancels {
				body = `{"model":"bigpc","input":"hi","stream":true}`
			}
			a := w.asks(http.MethodPost, "/v1/responses", body, "Idempotency-Key", "k")
			if !cancels {
				a.leave(nil)
				time.Sleep(abandoned - beginsAfter/2)
			}
			w.does(1, handoff.EventNoted{})
			r := w.run(1)
			w.mu.Lock()
			r.log = slices.Clone(r.log) // who follows it reads the former one
			r.log[0].Noted = true
			r.rec.Outcome, r.rec.Fault = handoff.OutcomeFailed, handoff.Fault(handoff.CodeStoreDown, "", "")
			r.log = append(r.log, handoff.Event{ID: "r1", Seq: 2, Record: r.rec, Noted: true, Kind: handoff.EventEnded{}})
			close(r.changed)
			r.changed, w.hold, w.goesOn = make(chan struct{}), false, handoff.Fault(handoff.CodeWorkEnded, "", "")
			w.mu.Unlock()
			synctest.Wait()
			if cancels {
				if status, got := w.ask(http.MethodPost, "/v1/responses/resp_r1/cancel", ""); got["status"] != cancelled {
					t.Errorf("%d %v", status, got)
				}
			}
			time.Sleep(time.Minute)
			if n := w.count(); n != 1 {
				t.Errorf("cancelled %t: %d handoffs were begun", cancels, n)
			}
		})
	}
}

// TestRefusedIsNotBegunLater: a handoff that ended before it was promised, because the store did not answer, is
// refused, and not begun behind the back of its client, who sends the request again.
func TestRefusedIsNotBegunLater(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hold = true
		first := w.begun(backgroundPost)
		w.fails(1, handoff.Fault(handoff.CodeStoreDown, "", ""))
		w.ends(1, handoff.OutcomeFailed, "")
		if code := w.refusal(first.Code, first.object()); code != "store_down" {
			t.Errorf("%d %s", first.Code, first.Body)
		}
		time.Sleep(time.Minute)
		if n := w.count(); n != 1 {
			t.Errorf("%d handoffs were begun for a request that was refused", n)
		}
	})
}

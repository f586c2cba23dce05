package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"switchboard/handoff"
)

// unread is a body that nobody may read.
type unread struct{ t *testing.T }

func (b unread) Read([]byte) (int, error) {
	b.t.Error("the body was read")
	return 0, errors.New("unread")
}

// TestBodiesWait: a request waits for room for its body, and is refused if there is none in time; small bodies do not
// wait.
func TestBodiesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, newWorld(), nil)
		large := strings.Repeat(" ", smallBody) + `{"server":"bigpc","prompt":"x"}`
		must(t, s.bodies.room.Acquire(t.Context(), maxBodies-2*int64(len(large))+1))
		rec := ask(
			s,
			http.MethodPost,
			"/fleet/handoffs",
			large,
			func(r *http.Request) { r.Body = io.NopCloser(unread{t}); r.Header.Set("Expect", "100-continue") },
		)
		if got := codeOf(t, rec); got != handoff.CodeOverloaded || rec.Code != http.StatusServiceUnavailable ||
			rec.Header().Get("Retry-After") != "5" {
			t.Errorf("no room: %d %s, Retry-After %q", rec.Code, got, rec.Header().Get("Retry-After"))
		}
		if refused := s.bodies.refused.Load(); refused != 1 {
			t.Errorf("%d were counted", refused)
		}
		if rec := ask(s, http.MethodPost, "/fleet/handoffs", strings.TrimSpace(large), nil); rec.Code >= http.StatusBadRequest {
			t.Errorf("a small one: %d %s", rec.Code, rec.Body)
		}
		served := make(chan int)
		go func() { served <- ask(s, http.MethodPost, "/fleet/handoffs", large, nil).Code }()
		synctest.Wait()
		s.bodies.room.Release(1)
		if got := <-served; got >= http.StatusBadRequest {
			t.Errorf("with room: %d", got)
		}
		s.bodies.room.Release(maxBodies - 2*int64(len(large)))
		if err := s.bodies.room.Acquire(t.Context(), maxBodies); err != nil || s.bodies.held.Load() != 0 {
			t.Errorf("%v, %d bytes are still held", err, s.bodies.held.Load())
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		ask(s, http.MethodPost, "/fleet/handoffs", large, func(r *http.Request) { *r = *r.WithContext(gone) })
	})
}

// TestRateComesBeforeBody: a large body is not read if its sender may not give work now; the body of a request that
// gives no work is read.
func TestRateComesBeforeBody(t *testing.T) {
	w := newWorld()
	w.limited = true
	s := newServer(t, w, nil)
	for _, length := range []int64{smallBody + 1, -1} {
		rec := ask(s, http.MethodPost, "/fleet/handoffs", "", func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(unread{t}), length
			r.Header.Set("Expect", "100-continue")
		})
		if got := codeOf(t, rec); got != handoff.CodeLimited {
			t.Errorf("%d bytes: %s", length, got)
		}
	}
	for name, value := range map[string]string{"Idempotency-Key": "k1", "X-Stainless-Retry-Count": "1"} {
		body := `{"server":"bigpc","prompt":"x"}` + strings.Repeat(" ", smallBody)
		if rec := ask(s, http.MethodPost, "/fleet/handoffs", body, func(r *http.Request) { r.Header.Set(name, value) }); rec.Code >= http.StatusBadRequest {
			t.Errorf("what may be a repetition by its %s is not read", name)
		}
	}
	if rec := ask(s, http.MethodPost, "/fleet/conversation", `{"items":[]}`+strings.Repeat(" ", smallBody), nil); codeOf(
		t,
		rec,
	) == handoff.CodeLimited {
		t.Error("what gives no work is limited")
	}
}

// TestBodyOfUnknownLength: a body of unknown length takes the most room of its route only until it has been read.
func TestBodyOfUnknownLength(t *testing.T) {
	b := newBodies()
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.ContentLength = -1
	body, err := b.take(r, 8<<20)
	if err != nil || b.held.Load() != 16<<20 {
		t.Fatalf("%v, %d bytes are held", err, b.held.Load())
	}
	for _, step := range []struct{ size, held int64 }{{9 << 20, 16 << 20}, {1 << 20, 2 << 20}, {2 << 20, 2 << 20}, {smallBody, 0}} {
		if body.fit(step.size); b.held.Load() != step.held {
			t.Errorf("%d bytes hold %d, not %d", step.size, b.held.Load(), step.held)
		}
	}
	body.leave()
	if !b.room.TryAcquire(maxBodies) || b.held.Load() != 0 {
		t.Errorf("%d bytes are still held", b.held.Load())
	}
}

// TestBodyFits: while it is answered, a request holds room for the actual size of its body.
func TestBodyFits(t *testing.T) {
	s := newServer(t, newWorld(), nil)
	held := int64(-1)
	look := func(http.ResponseWriter, *http.Request, handoff.Grant) error { held = s.bodies.held.Load(); return nil }
	served := s.chain(route{"POST /held", accessPublic, 8 << 20, handoff.ActNone, look})
	r := httptest.NewRequest(http.MethodPost, "/held", strings.NewReader("{}"))
	r.ContentLength = -1
	if served.ServeHTTP(httptest.NewRecorder(), r); held != 0 {
		t.Errorf("a body of two bytes holds %d", held)
	}
}

package web

import (
	"context"
	"errors"
	"io"
	"net/http"
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

// A request waits for room for its body, and is refused when none comes; small ones do not wait.
func TestBodiesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, newWorld(), nil)
		large := strings.Repeat(" ", smallBody) + `{"server":"bigpc","prompt":"x"}`
		if err := s.bodies.room.Acquire(t.Context(), maxBodies-2*int64(len(large))+1); err != nil {
			t.Fatal(err)
		}
		rec := ask(s, http.MethodPost, "/fleet/handoffs", large, func(r *http.Request) { r.Body = io.NopCloser(unread{t}); r.Header.Set("Expect", "100-continue") })
		if got := codeOf(t, rec); got != handoff.CodeOverloaded || rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") != "5" {
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

// Of a large body nothing is read when its sender may not give work at this moment; what gives none is read.
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
	if rec := ask(s, http.MethodPost, "/fleet/conversation", `{"items":[]}`+strings.Repeat(" ", smallBody), nil); codeOf(t, rec) == handoff.CodeLimited {
		t.Error("what gives no work is limited")
	}
}

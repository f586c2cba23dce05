package web

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

func (w *world) Answered(_ handoff.Grant, id handoff.ID, _ time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answered = append(w.answered, id)
}

// broken is a connection that breaks before the answer.
type broken struct{ *httptest.ResponseRecorder }

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
func (broken) FlushError() error         { return errors.New("broken pipe") }

// TestPromiseIsWritten: who asked for work has the promise once it was written to them.
func TestPromiseIsWritten(t *testing.T) {
	for _, whole := range []bool{true, false} {
		w := newWorld()
		var out http.ResponseWriter = httptest.NewRecorder()
		if !whole {
			out = broken{httptest.NewRecorder()}
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/fleet/handoffs",
			strings.NewReader(`{"server":"bigpc","prompt":"run the tests"}`))
		wk := work{router: w, tools: tools.Backend{Directory: w, Work: w, Giver: w}}
		if err := wk.give(out, r, handoff.Grant{}); err != nil {
			t.Fatal(err)
		}
		if got := len(w.answered); (got == 1) != whole {
			t.Errorf("written whole: %t, answered %d times", whole, got)
		}
	}
}

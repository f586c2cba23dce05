package responses

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"switchboard/handoff"
)

// span is a traceparent.
type span string

func (s span) Begin(string) handoff.Span   { return s }
func (s span) End(handoff.Code, ...string) {}
func (s span) Parent() string              { return string(s) }

// TestRequestTellsItsTrace: a request carries the trace that it belongs to, if any.
func TestRequestTellsItsTrace(t *testing.T) {
	var told []string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told = r.Header.Values("Traceparent")
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer api.Close()
	up := newUpstream(api.URL, nil, api.Client())
	for _, parent := range []span{"00-a-b-01", ""} {
		_, _, err := up.ask(handoff.WithSpan(t.Context(), parent), request{}, listener{})
		if err == nil {
			t.Fatal("it was answered")
		}
		if want := parent != ""; want != (len(told) == 1 && told[0] == string(parent)) {
			t.Errorf("with %q it was told %q", parent, told)
		}
	}
}

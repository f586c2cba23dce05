package metrics

import (
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// counted shows one distribution.
type counted struct{ times *handoff.Times }

func (c counted) Metrics() iter.Seq[handoff.Metric] {
	return slices.Values([]handoff.Metric{c.times.Metric("switchboard_run_seconds", "Time of a run.")})
}

// TestExemplars: with OpenMetrics, a scrape gets the newest recorded trace of each bucket; other formats have no
// exemplars.
func TestExemplars(t *testing.T) {
	times := handoff.NewTimes(time.Second, time.Minute)
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	times.ObserveIn("00-"+trace+"-00f067aa0ba902b7-01", 2*time.Second)
	times.ObserveIn("00-00000000000000000000000000000001-00f067aa0ba902b7-00", 3*time.Second)
	times.Observe(time.Millisecond)
	scrape := func(accept string) string {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		Handler(zap.NewNop(), counted{times}).ServeHTTP(w, r)
		return w.Body.String()
	}
	text := scrape("application/openmetrics-text; version=1.0.0")
	if want := `switchboard_run_seconds_bucket{le="60.0"} 3 # {trace_id="` + trace + `"} 2.0 `; !strings.Contains(text, want) {
		t.Errorf("%s is not in\n%s", want, text)
	}
	if n := strings.Count(text, "trace_id"); n != 1 {
		t.Errorf("%d exemplars, want 1", n)
	}
	if text := scrape("text/plain"); strings.Contains(text, "trace_id") {
		t.Errorf("exemplars in\n%s", text)
	}
}

package metrics

import (
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"switchboard/handoff"
)

// counted shows two numbers, and a distribution whose newest time has a trace.
type counted struct{}

const trace = "4bf92f3577b34da6a3ce929d0e0e4736"

func (counted) Metrics() iter.Seq[handoff.Metric] {
	return slices.Values([]handoff.Metric{
		handoff.NewMetric("switchboard_runs_total", "Runs.", 2, "server", "bigpc"),
		handoff.NewMetric("switchboard_runs_open", "Open runs.", 1),
		handoff.NewMetric("switchboard_wrong", "A label without a value.", 1, "server", "\xff"),
	})
}

func (counted) Collectors() []prometheus.Collector {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "switchboard_run_seconds", Buckets: []float64{1, 60}})
	h.Observe(0.001)
	h.(prometheus.ExemplarObserver).ObserveWithExemplar(2, prometheus.Labels{"trace_id": trace})
	return []prometheus.Collector{h}
}

// TestScrape: a scrape has the numbers and the distributions of a source, without those that are not valid; exemplars
// only with OpenMetrics.
func TestScrape(t *testing.T) {
	scrape := func(accept string) string {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		Handler(zap.NewNop(), counted{}).ServeHTTP(w, r)
		return w.Body.String()
	}
	text := scrape("application/openmetrics-text; version=1.0.0")
	for _, want := range []string{
		`switchboard_run_seconds_bucket{le="60.0"} 2 # {trace_id="` + trace + `"} 2.0 `, `switchboard_runs_total{server="bigpc"} 2`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	text = scrape("text/plain")
	for _, want := range []string{"# TYPE switchboard_runs_total counter", "# TYPE switchboard_runs_open gauge", "go_goroutines"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "trace_id") || strings.Contains(text, "switchboard_wrong") {
		t.Errorf("exemplars, or what is not valid, in\n%s", text)
	}
}

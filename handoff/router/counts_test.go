package router

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TestObserve: a time is an exemplar if its trace is recorded, and one from a clock that was set back counts as 0.
func TestObserve(t *testing.T) {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	times := newTimes("switchboard_x_seconds", "Help.", "server", []float64{0.001, 1})
	h := times.WithLabelValues("bigpc")
	observe(h, "", -time.Hour)
	observe(h, "00-00000000000000000000000000000001-00f067aa0ba902b7-00", time.Millisecond)
	observe(h, "00-"+trace+"-00f067aa0ba902b7-01", time.Second)
	observe(h, "no trace", time.Minute)
	registry := prometheus.NewRegistry()
	registry.MustRegister(times)
	got, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	m := got[0].GetMetric()[0].GetHistogram()
	if m.GetSampleCount() != 4 || m.GetSampleSum() != 61.001 || m.Bucket[0].GetCumulativeCount() != 2 ||
		m.Bucket[1].GetCumulativeCount() != 3 || m.Bucket[0].Exemplar != nil ||
		m.Bucket[1].Exemplar.GetLabel()[0].GetValue() != trace {
		t.Errorf("it is %v", m)
	}
}

// Package metrics serves the metrics of other packages in Prometheus' text format, or as OpenMetrics, which has
// exemplars, to clients that ask for it.
//
// Only this package uses the format and its library: packages yield [handoff.Metric] values, and cmd registers them
// here. It must not know what a metric means, nor who may read it: the edge decides that.
package metrics

import (
	"iter"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"switchboard/handoff"
)

// A Source has metrics. Metrics is called at each scrape, from any goroutine.
type Source interface {
	Metrics() iter.Seq[handoff.Metric]
}

// Handler serves the metrics of all sources, of the Go runtime and of the process. Invalid metrics of a source (a name
// twice with the same labels, two helps for one name) are left out and logged.
func Handler(log *zap.Logger, sources ...Source) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, s := range sources {
		registry.MustRegister(collector{s})
	}
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: zap.NewStdLog(log), ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4,
		EnableOpenMetrics: true,
	})
}

// A collector collects the metrics of a source for Prometheus. It describes none beforehand, because their labels are
// known only when they are collected.
type collector struct{ source Source }

// Describe implements [prometheus.Collector].
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (c collector) Collect(out chan<- prometheus.Metric) {
	for m := range c.source.Metrics() {
		out <- convert(m)
	}
}

// convert returns a metric of Prometheus: a histogram for times, a counter for a name that ends in _total, else a
// gauge.
func convert(m handoff.Metric) prometheus.Metric {
	var names, values []string
	for _, l := range m.Labels {
		names, values = append(names, l.Name), append(values, l.Value)
	}
	desc := prometheus.NewDesc(m.Name, m.Help, names, nil)
	var made prometheus.Metric
	var err error
	switch {
	case m.Times != nil:
		buckets := map[float64]uint64{}
		for i, bound := range m.Times.Bounds {
			buckets[bound.Seconds()] = m.Times.Counts[i]
		}
		made, err = prometheus.NewConstHistogram(desc, m.Times.Count, m.Times.Sum.Seconds(), buckets, values...)
		if exemplars := exemplarsOf(m.Times); err == nil && len(exemplars) > 0 {
			made, err = prometheus.NewMetricWithExemplars(made, exemplars...)
		}
	case strings.HasSuffix(m.Name, "_total"):
		made, err = prometheus.NewConstMetric(desc, prometheus.CounterValue, m.Value, values...)
	default:
		made, err = prometheus.NewConstMetric(desc, prometheus.GaugeValue, m.Value, values...)
	}
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err) // the library reports err
	}
	return made
}

// exemplarsOf returns the exemplars of a histogram, which have the id of a trace. Prometheus finds their buckets.
func exemplarsOf(s *handoff.TimesSnapshot) []prometheus.Exemplar {
	var list []prometheus.Exemplar
	for _, e := range s.Exemplars {
		if e.Trace != "" {
			list = append(list, prometheus.Exemplar{
				Value: e.Took.Seconds(), Labels: prometheus.Labels{"trace_id": e.Trace}, Timestamp: e.At,
			})
		}
	}
	return list
}

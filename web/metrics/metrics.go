// Package metrics serves the metrics of other packages in Prometheus' text format, or as OpenMetrics, which has
// exemplars, to clients that ask for it.
//
// Only this package uses the format. Packages yield [handoff.Metric] values, those with distributions of times have
// collectors of the library besides, and cmd registers both here. The package must not know what a metric means, nor
// who may read it: the edge decides that.
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

// Distributions are what a source may have besides: collectors of its own. They are asked for once.
type Distributions interface {
	Collectors() []prometheus.Collector
}

// Handler serves the metrics of all sources, of the Go runtime and of the process. Invalid metrics of a source (a name
// twice with the same labels, two helps for one name) are left out and logged.
func Handler(log *zap.Logger, sources ...Source) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, s := range sources {
		registry.MustRegister(collector{s})
		if d, has := s.(Distributions); has {
			registry.MustRegister(d.Collectors()...)
		}
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

// convert returns a metric of Prometheus: a counter for a name that ends in _total, else a gauge.
func convert(m handoff.Metric) prometheus.Metric {
	var names, values []string
	for _, l := range m.Labels {
		names, values = append(names, l.Name), append(values, l.Value)
	}
	kind := prometheus.GaugeValue
	if strings.HasSuffix(m.Name, "_total") {
		kind = prometheus.CounterValue
	}
	desc := prometheus.NewDesc(m.Name, m.Help, names, nil)
	made, err := prometheus.NewConstMetric(desc, kind, m.Value, values...)
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err) // the library reports err
	}
	return made
}

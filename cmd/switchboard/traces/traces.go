// Package traces sends a trace of each handoff to a collector of OpenTelemetry, by OTLP over HTTP as JSON. Nobody else
// knows that protocol: other packages begin a [handoff.Span] below the one in the context.
//
// It must not know what the spans mean, and sends nothing unless the environment names a collector.
//
// # Concurrency
//
// Ended spans wait in a queue of [maxQueued]. When it is full, spans are dropped and counted, so that a slow or absent
// collector delays nothing. One goroutine, [Traces.Run], sends them.
package traces

import (
	"context"
	"iter"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// Bounds of what is sent.
const (
	maxQueued = 4096            // spans that wait: some 4 MB, from the handoffs of several minutes
	maxBatch  = 512             // spans in one request
	every     = 2 * time.Second // between requests, unless a whole batch waits
	lastTry   = 2 * time.Second // how long the last requests may take at the end of the process
)

// Endpoint returns the URL of the collector from the environment variables of OpenTelemetry; "": send no traces.
func Endpoint(env func(string) string) string {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") || env("OTEL_TRACES_EXPORTER") == "none" {
		return ""
	}
	if own := env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); own != "" {
		return own
	}
	shared, err := url.Parse(env("OTEL_EXPORTER_OTLP_ENDPOINT"))
	if err != nil || shared.Host == "" {
		return env("OTEL_EXPORTER_OTLP_ENDPOINT") // New returns an error for it
	}
	return shared.JoinPath("v1", "traces").String()
}

// Traces makes spans and sends them. Its methods may be used from any goroutine.
type Traces struct {
	log   *zap.Logger   // Set once
	share sampling      // Set once
	to    *collector    // Set once
	queue chan *span    // ended spans; never closed; bound [maxQueued], beyond which spans are dropped
	full  chan struct{} // holds a token when a whole batch waits

	sent, dropped, failed atomic.Uint64 // spans
}

// New returns traces that are sent to an endpoint. It reads the other variables of OpenTelemetry from the environment,
// and does not connect to the endpoint.
func New(endpoint, version string, log *zap.Logger) (*Traces, error) {
	if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, handoff.Fault(handoff.CodeMalformed, "OTEL_EXPORTER_OTLP_ENDPOINT", "want http:// or https:// with a host")
	}
	to, err := newCollector(endpoint, version)
	if err != nil {
		return nil, err
	}
	if asked := exporting("PROTOCOL"); asked != "" && asked != "http/json" {
		log.Warn("traces are sent as http/json, whatever the environment says", zap.String("protocol", asked))
	}
	return &Traces{
		log: log, share: newSampling(), to: to, queue: make(chan *span, maxQueued), full: make(chan struct{}, 1),
	}, nil
}

// ended queues a span or drops it.
func (t *Traces) ended(s *span) {
	select {
	case t.queue <- s:
	default:
		t.dropped.Add(1)
	}
	if len(t.queue) >= maxBatch {
		select {
		case t.full <- struct{}{}:
		default: // a token is there already
		}
	}
}

// Run sends spans until ctx ends, and then the remaining ones, for [lastTry] at most.
func (t *Traces) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTry)
			defer cancel()
			for t.send(last) {
			}
			t.to.client.CloseIdleConnections()
			return nil
		case <-tick.C:
		case <-t.full:
		}
		for t.send(ctx) {
		}
	}
}

// send sends one batch, and reports whether another may wait.
func (t *Traces) send(ctx context.Context) bool {
	var batch []*span
	for len(batch) < maxBatch && len(t.queue) > 0 { // never blocks: only this goroutine receives
		batch = append(batch, <-t.queue)
	}
	if len(batch) == 0 {
		return false
	}
	taken, err := t.to.send(ctx, batch)
	t.sent.Add(uint64(taken))
	failed := uint64(len(batch) - taken)
	if t.failed.Add(failed) == failed && failed > 0 {
		t.log.Warn("traces not taken by the collector; the next failures are counted only", zap.Error(err))
	}
	return len(batch) == maxBatch && (err == nil || ctx.Err() == nil)
}

// Metrics implements metrics.Source.
func (t *Traces) Metrics() iter.Seq[handoff.Metric] {
	const name, help = "switchboard_trace_spans_total", "Spans of traces, by what became of them; dropped: too many waited."
	return slices.Values([]handoff.Metric{
		handoff.NewMetric(name, help, t.sent.Load(), "to", "sent"),
		handoff.NewMetric(name, help, t.failed.Load(), "to", "failed"),
		handoff.NewMetric(name, help, t.dropped.Load(), "to", "dropped"),
	})
}

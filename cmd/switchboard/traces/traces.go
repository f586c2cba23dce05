// Package traces sends a trace of each handoff to a collector of OpenTelemetry. Only this package uses OpenTelemetry:
// other packages begin a [handoff.Span] below the one in the context.
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
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
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
	log      *zap.Logger                // Set once
	exporter sdktrace.SpanExporter      // Set once
	provider *sdktrace.TracerProvider   // Set once
	tracer   trace.Tracer               // Set once
	queue    chan sdktrace.ReadOnlySpan // never closed; bound [maxQueued], beyond which spans are dropped
	full     chan struct{}              // holds a token when a whole batch waits

	sent, dropped, failed atomic.Uint64 // spans
}

// New returns traces that are sent to an endpoint by OTLP over HTTP. The library reads the other variables of
// OpenTelemetry: headers, certificates, sampling, the name of the service. New does not connect to the endpoint.
func New(endpoint, version string, log *zap.Logger) (*Traces, error) {
	if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, handoff.Fault(handoff.CodeMalformed, "OTEL_EXPORTER_OTLP_ENDPOINT", "want http:// or https:// with a host")
	}
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(endpoint),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: time.Second, MaxInterval: 5 * time.Second, MaxElapsedTime: 20 * time.Second,
		}))
	if err != nil {
		return nil, err
	}
	about, err := resource.New(context.Background(), resource.WithAttributes(
		attribute.String("service.name", "switchboard"), attribute.String("service.version", version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	t := &Traces{
		log: log, exporter: exporter, queue: make(chan sdktrace.ReadOnlySpan, maxQueued), full: make(chan struct{}, 1),
	}
	t.provider = sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithSpanProcessor((*processor)(t)))
	t.tracer = t.provider.Tracer("switchboard")
	return t, nil
}

// Begin is a [handoff.Tracer].
func (t *Traces) Begin(name string, from http.Header) handoff.Span {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(from))
	_, s := t.tracer.Start(ctx, name)
	return span{t, s}
}

// A span is a [handoff.Span] that is recorded.
type span struct {
	traces *Traces
	trace.Span
}

// Begin implements [handoff.Span].
func (s span) Begin(name string) handoff.Span {
	_, below := s.traces.tracer.Start(trace.ContextWithSpan(context.Background(), s.Span), name)
	return span{s.traces, below}
}

// End implements [handoff.Span].
func (s span) End(code handoff.Code, fields ...string) {
	for field := range slices.Chunk(fields, 2) {
		if field[1] != "" {
			s.SetAttributes(attribute.String("switchboard."+field[0], field[1]))
		}
	}
	if code != "" {
		s.SetAttributes(attribute.String("switchboard.code", string(code)))
		s.SetStatus(codes.Error, string(code))
	}
	s.Span.End()
}

// Parent implements [handoff.Span].
func (s span) Parent() string {
	header := propagation.HeaderCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), s.Span), header)
	return header.Get("traceparent")
}

// Call returns the span of a call, the root of its own trace. A span that begins below it is the root of another trace,
// linked to that of the call: a call can last an hour, and people look at one handoff at a time.
func (t *Traces) Call() handoff.Span {
	_, s := t.tracer.Start(context.Background(), "call")
	return callSpan{span{t, s}}
}

// callSpan is the span of a call.
type callSpan struct{ span }

// Begin implements [handoff.Span].
func (s callSpan) Begin(name string) handoff.Span {
	toCall := trace.WithLinks(trace.Link{SpanContext: s.SpanContext()})
	_, first := s.traces.tracer.Start(context.Background(), name, toCall)
	return span{s.traces, first}
}

// processor is a Traces as [sdktrace.SpanProcessor].
type processor Traces

// OnStart implements [sdktrace.SpanProcessor].
func (*processor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements [sdktrace.SpanProcessor]: it queues the span or drops it.
func (p *processor) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	select {
	case p.queue <- s:
	default:
		p.dropped.Add(1)
	}
	if len(p.queue) >= maxBatch {
		select {
		case p.full <- struct{}{}:
		default: // a token is there already
		}
	}
}

// Shutdown implements [sdktrace.SpanProcessor].
func (*processor) Shutdown(context.Context) error { return nil }

// ForceFlush implements [sdktrace.SpanProcessor].
func (*processor) ForceFlush(context.Context) error { return nil }

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
			_ = t.exporter.Shutdown(last) // the exporter buffers nothing
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
	var batch []sdktrace.ReadOnlySpan
	for len(batch) < maxBatch && len(t.queue) > 0 { // never blocks: only this goroutine receives
		batch = append(batch, <-t.queue)
	}
	if len(batch) == 0 {
		return false
	}
	if err := t.exporter.ExportSpans(ctx, batch); err != nil {
		if t.failed.Add(uint64(len(batch))) == uint64(len(batch)) {
			t.log.Warn("traces not taken by the collector; the next failures are counted only", zap.Error(err))
		}
		return ctx.Err() == nil && len(batch) == maxBatch
	}
	t.sent.Add(uint64(len(batch)))
	return len(batch) == maxBatch
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

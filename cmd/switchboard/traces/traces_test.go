package traces

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
)

// TestEndpoint: only OpenTelemetry's own variables for a collector begin anything.
func TestEndpoint(t *testing.T) {
	for _, c := range []struct {
		want string
		env  map[string]string
	}{
		{"", nil},
		{"", map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=b", "OTEL_SERVICE_NAME": "x", "OTEL_TRACES_SAMPLER": "always_on"}},
		{"http://c:4318/v1/traces", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}},
		{"https://c/otel/v1/traces", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c/otel/"}},
		{"http://t/own", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t/own"}},
		{"", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}},
		{"", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}},
	} {
		if got := Endpoint(func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%v: %q, want %q", c.env, got, c.want)
		}
	}
	if _, err := New("localhost:4318", "v1", zap.NewNop()); err == nil {
		t.Error("an endpoint without a scheme was taken")
	}
}

// TestDeadCollector: spans of a collector that takes nothing wait up to a bound, and beyond it are dropped and counted;
// whoever ends one never waits. Making and dropping traces contacts nobody.
func TestDeadCollector(t *testing.T) {
	var asked atomic.Int64
	dead := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer dead.Close()
	traces, err := New(dead.URL+"/v1/traces", "v1", zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	for range maxQueued + 10 {
		traces.Begin("request", nil).End("")
	}
	if n := traces.dropped.Load(); n != 10 || asked.Load() > 0 {
		t.Errorf("%d dropped, asked %d times", n, asked.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := traces.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if n := traces.failed.Load(); n != maxQueued || traces.sent.Load() > 0 {
		t.Errorf("%d failed, want %d; %d sent", n, maxQueued, traces.sent.Load())
	}
}

// TestUnsampled: a client that does not record its trace has nothing recorded here.
func TestUnsampled(t *testing.T) {
	traces, err := New("http://127.0.0.1:1/v1/traces", "v1", zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
	root := traces.Begin("request", http.Header{"Traceparent": {parent}})
	below := root.Begin("handoff")
	below.End("")
	root.End("")
	if len(traces.queue) > 0 {
		t.Errorf("%d spans wait", len(traces.queue))
	}
	if got := below.Parent(); got[:36] != parent[:36] || got[len(got)-2:] != "00" {
		t.Errorf("the next is told %s", got)
	}
}

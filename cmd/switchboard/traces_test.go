package main

import (
	"cmp"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// An otelCollector takes traces as OpenTelemetry's own collector does.
type otelCollector struct {
	url string

	mu    sync.Mutex
	spans []*otlp.Span // Guarded by mu
	raw   []byte       // Guarded by mu: everything that came
}

func newOtelCollector(t *testing.T) *otelCollector {
	c := &otelCollector{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent otlp.TracesData // has the same fields as a request
		if err != nil || r.URL.Path != "/v1/traces" || protojson.Unmarshal(body, &sent) != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw = append(c.raw, body...)
		for _, resource := range sent.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(server.Close)
	c.url = server.URL + "/v1/traces"
	return c
}

// id returns an id as it was sent: in hexadecimal digits, which protojson takes for base64.
func id(read []byte) string { return base64.StdEncoding.EncodeToString(read) }

// tree draws the spans below a parent, each with its fields, in the order in which they began.
func (c *otelCollector) tree(trace, parent, indent string) string {
	var below []*otlp.Span
	for _, s := range c.spans {
		if id(s.TraceId) == trace && id(s.ParentSpanId) == parent {
			below = append(below, s)
		}
	}
	slices.SortFunc(below, func(a, b *otlp.Span) int { return cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano) })
	var text strings.Builder
	for _, s := range below {
		text.WriteString(indent + s.Name)
		for _, a := range s.Attributes {
			text.WriteString(" " + strings.TrimPrefix(a.Key, "switchboard.") + "=" + strings.ReplaceAll(a.Value.GetStringValue(), " ", "_"))
		}
		text.WriteString("\n" + c.tree(trace, id(s.SpanId), indent+"  "))
	}
	return text.String()
}

// named returns the spans of a name.
func (c *otelCollector) named(name string) (found []*otlp.Span) {
	for _, s := range c.spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// TestTraces: work that is given by voice is one trace, linked to that of its call, and work that is given over HTTP is
// part of the client's; nothing that was said is in them. The numbers name them.
func TestTraces(t *testing.T) {
	t.Parallel()
	c := newOtelCollector(t)
	r := start(t, func(p *plan) { p.Hurry, p.Traces = 5, c.url })
	r.up("bigpc", "laptop")

	p := r.call()
	p.say("Continue the auth session on bigpc and run the tests")
	p.hear("TestRefreshExpiredToken")
	r.allHeard()
	p.hangUp()

	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	status, body := r.ask(http.MethodPost, "/fleet/handoffs", `{"server":"laptop","prompt":"what did you do?"}`,
		"Traceparent", "00-"+trace+"-"+span+"-01")
	if status != http.StatusAccepted {
		t.Fatalf("%d %s", status, body)
	}
	const third = "4bf92f3577b34da6a3ce929d0e0e4737"
	if status, body := r.ask(http.MethodPost, "/v1/responses", `{"model":"laptop","input":"what happened?","store":false}`,
		"Traceparent", "00-"+third+"-"+span+"-01"); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	until(t, "its end", func() bool { return r.newestOf("what did you do").Outcome != "" })
	_, numbers := r.ask(http.MethodGet, "/metrics", "", "Accept", "application/openmetrics-text; version=1.0.0")
	named := func(id string) bool { return strings.Contains(string(numbers), `# {trace_id="`+id+`"}`) }
	if !named(trace) && !named(third) { // the newest in each bucket stands there
		t.Error("the numbers do not name the trace")
	}
	until(t, "what ends last of each trace", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.named("call")) == 1 && len(c.named("request")) == 3 && len(c.named("handoff")) == 3
	})

	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.named("call")
	if len(calls[0].ParentSpanId) > 0 {
		t.Error("the call is not the first of its trace")
	}
	var voice *otlp.Span
	for _, s := range c.named("request") {
		if len(s.Links) == 1 && string(s.Links[0].SpanId) == string(calls[0].SpanId) {
			voice = s
		}
	}
	if voice == nil {
		t.Fatal("no request is linked to its call")
	}
	if got, want := c.tree(id(voice.TraceId), "", ""), `request tool=codex told=heard
  handoff outcome=result server=bigpc why=named
    resolve fact=resolved_thread
    attach fact=attached
    start fact=started
    follow fact=turn_completed
  say told=heard
`; got != want {
		t.Errorf("by voice:\n%swant\n%s", got, want)
	}
	if got, want := c.tree(trace, span, ""), `request route=POST_/fleet/handoffs
  handoff outcome=result server=laptop why=new
    resolve fact=resolved_new
    create fact=attached
    start fact=started
    follow fact=turn_completed
`; got != want {
		t.Errorf("over HTTP:\n%swant\n%s", got, want)
	}
	if got := c.tree(third, span, ""); !strings.HasPrefix(got, "request route=POST_/v1/responses\n  handoff outcome=result ") {
		t.Errorf("a response:\n%s", got)
	}
	said := []string{"run the tests", "what did you do", "what happened"}
	for _, words := range append(said, "auth", "TestRefresh", testKey, "owner") {
		if strings.Contains(strings.ToLower(string(c.raw)), strings.ToLower(words)) {
			t.Errorf("%q is in the traces", words)
		}
	}
}

package traces

import (
	"compress/gzip"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"switchboard/handoff"
)

// TestSent: a collector that is asked for by the variables of OpenTelemetry gets what OTLP prescribes for JSON.
func TestSent(t *testing.T) {
	var body []byte
	var header http.Header
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		body, _ = io.ReadAll(unpacked)
		header = r.Header
	}))
	defer server.Close()
	trusted := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_CERTIFICATE":    trusted,
		"OTEL_EXPORTER_OTLP_COMPRESSION":    "gzip",
		"OTEL_EXPORTER_OTLP_HEADERS":        "key=of all",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "Authorization=Basic%20YQ==, tenant = one,",
		"OTEL_RESOURCE_ATTRIBUTES":          "service.name=theirs,deployment.environment=a%2Cb",
		"OTEL_SERVICE_NAME":                 "ours",
	} {
		t.Setenv(name, value)
	}
	traces, err := New(server.URL, "v1", zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	call := traces.Call()
	request := call.Begin("request")
	request.Begin("handoff").End(handoff.CodeShutdown, "server", "bigpc", "why", "")
	request.End("")
	call.End("")
	taken, err := traces.to.send(t.Context(), []*span{<-traces.queue, <-traces.queue, <-traces.queue})
	if taken != 3 || err != nil {
		t.Fatal(taken, err)
	}
	traces.to.client.CloseIdleConnections()

	if got := []string{header.Get("Content-Type"), header.Get("Authorization"), header.Get("Tenant"), header.Get("Key")}; !cmp.Equal(
		got, []string{"application/json", "Basic YQ==", "one", ""}) {
		t.Errorf("headers: %q", got)
	}
	// Ids and times differ from run to run: an id becomes the order in which it appears.
	seen := map[string]string{}
	told := regexp.MustCompile(`"[0-9a-f]{16,32}"`).ReplaceAllStringFunc(string(body), func(id string) string {
		if len(id) == len(`"1760000000000000000"`) {
			return `"time"`
		}
		if seen[id] == "" {
			kind := map[int]string{34: "trace", 18: "span"}[len(id)]
			seen[id] = `"` + kind + string(rune('A'+len(seen))) + `"`
		}
		return seen[id]
	})
	const want = `{"resourceSpans":[{"resource":{"attributes":[` +
		`{"key":"deployment.environment","value":{"stringValue":"a,b"}},{"key":"service.name","value":{"stringValue":"ours"}},` +
		`{"key":"service.version","value":{"stringValue":"v1"}}]},"scopeSpans":[{"scope":{"name":"switchboard"},"spans":[` +
		`{"traceId":"traceA","spanId":"spanB","parentSpanId":"spanC","name":"handoff","kind":1,` +
		`"startTimeUnixNano":"time","endTimeUnixNano":"time","attributes":[{"key":"switchboard.server","value":{"stringValue":"bigpc"}},` +
		`{"key":"switchboard.code","value":{"stringValue":"shutdown"}}],"status":{"code":2,"message":"shutdown"}},` +
		`{"traceId":"traceA","spanId":"spanC","name":"request","kind":1,"startTimeUnixNano":"time","endTimeUnixNano":"time",` +
		`"links":[{"traceId":"traceD","spanId":"spanE"}]},` +
		`{"traceId":"traceD","spanId":"spanE","name":"call","kind":1,"startTimeUnixNano":"time","endTimeUnixNano":"time"}]}]}]}`
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

// far is a collector's answers, one a request; after the last no more are given.
type far []func() (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f *far) RoundTrip(*http.Request) (*http.Response, error) {
	next := (*f)[0]
	if len(*f) > 1 {
		*f = (*f)[1:]
	}
	return next()
}

// says answers with a status and a text.
func says(status int, text string, header ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		w := httptest.NewRecorder()
		if len(header) > 0 {
			w.Header().Set(header[0], header[1])
		}
		w.WriteHeader(status)
		_, _ = w.WriteString(text)
		return w.Result(), nil
	}
}

// TestAnswers: what may pass is tried again for a while, as late as the collector wants; what it rejects has failed.
func TestAnswers(t *testing.T) {
	gone := func() (*http.Response, error) { return nil, errors.New("connection refused") }
	for _, c := range []struct {
		name    string
		answers far
		sent    uint64
		after   time.Duration // at least
		logged  string
	}{
		{"taken", far{says(200, `{}`)}, 3, 0, ""},
		{"some rejected", far{says(200, `{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}`)}, 1, 0, "2 spans rejected: too old"},
		{"only a word of advice", far{says(200, `{"partialSuccess":{"errorMessage":"use gzip"}}`)}, 3, 0, ""},
		{"refused", far{says(403, "no key"), says(200, "")}, 0, 0, "403: no key"},
		{"sent on", far{says(307, "", "Location", "http://elsewhere/"), says(200, "")}, 0, 0, "307: "},
		{"busy", far{says(503, ""), says(429, "", "Retry-After", "7"), says(200, "")}, 3, 7500 * time.Millisecond, ""},
		{"away for a moment", far{gone, gone, says(200, "")}, 3, time.Second, ""},
		{"away", far{gone}, 0, patience, "connection refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				core, logged := observer.New(zap.WarnLevel)
				traces, err := New("http://127.0.0.1:1/v1/traces", "v1", zap.New(core))
				if err != nil {
					t.Fatal(err)
				}
				traces.to.client.Transport = &c.answers
				for range 3 {
					traces.Begin("request", nil).End("")
				}
				began := time.Now()
				traces.send(t.Context())
				if took := time.Since(began); traces.sent.Load() != c.sent || traces.failed.Load() != 3-c.sent || took < c.after || took > c.after+10*time.Second {
					t.Errorf("%d sent, %d failed, after %v", traces.sent.Load(), traces.failed.Load(), took)
				}
				said := logged.All()
				if len(said) > 0 != (c.logged != "") || c.logged != "" && !strings.Contains(said[0].ContextMap()["error"].(string), c.logged) {
					t.Errorf("logged %v, want %q", said, c.logged)
				}
			})
		})
	}
}

// TestSampling: OTEL_TRACES_SAMPLER decides what a client does not; by the id, half of the traces are half.
func TestSampling(t *testing.T) {
	const low, high = "4bf92f3577b34da61000000000000000", "4bf92f3577b34da6f000000000000000"
	for _, c := range []struct {
		sampler, share string
		want           string // whether low and high are sent: as the first service, from a client that does not, from one that does
	}{
		{"", "", "yy nn yy"},
		{"nonsense", "", "yy nn yy"},
		{"always_on", "", "yy yy yy"},
		{"always_off", "", "nn nn nn"},
		{"traceidratio", "0.5", "yn yn yn"},
		{"traceidratio", "7", "yy yy yy"},
		{"parentbased_traceidratio", "0.5", "yn nn yy"},
		{"parentbased_always_off", "", "nn nn yy"},
	} {
		t.Setenv("OTEL_TRACES_SAMPLER", c.sampler)
		t.Setenv("OTEL_TRACES_SAMPLER_ARG", c.share)
		traces, err := New("http://127.0.0.1:1/v1/traces", "v1", zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		letter := func(sent bool) string { return map[bool]string{true: "y", false: "n"}[sent] }
		from := func(trace, flags string) string {
			s := traces.Begin("request", http.Header{"Traceparent": {"00-" + trace + "-00f067aa0ba902b7-" + flags}})
			return letter(strings.HasSuffix(s.Parent(), "-01"))
		}
		got := letter(traces.share.takes(low)) + letter(traces.share.takes(high)) +
			" " + from(low, "00") + from(high, "00") + " " + from(low, "03") + from(high, "03")
		if got != c.want {
			t.Errorf("%s %s: %s, want %s", c.sampler, c.share, got, c.want)
		}
	}
}

// TestParents: only a whole traceparent is continued, of whatever version.
func TestParents(t *testing.T) {
	traces, err := New("http://127.0.0.1:1/v1/traces", "v1", zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for header, continued := range map[string]bool{
		"00-" + trace + "-" + parent + "-01":      true,
		"01-" + trace + "-" + parent + "-01-more": true,
		"":                                    false,
		"00-" + trace + "-" + parent:          false,
		"00-" + trace + "-" + parent + "-012": false,
		"00-" + strings.ToUpper(trace) + "-" + parent + "-01":  false,
		"00-" + strings.Repeat("0", 32) + "-" + parent + "-01": false,
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01":  false,
		"\n00-" + trace + "-" + parent + "-01":                 false,
	} {
		s := traces.Begin("request", http.Header{"Traceparent": {header}}).(*span)
		if (s.TraceID == trace) != continued || (s.ParentID == parent) != continued {
			t.Errorf("%q: %s below %q", header, s.TraceID, s.ParentID)
		}
	}
}

// TestWrongVariables: what cannot be understood is said at the start, without its value, which may be a key.
func TestWrongVariables(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/none")
	for _, c := range [][2]string{
		{"OTEL_EXPORTER_OTLP_HEADERS", "secret"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a=%zzsecret"},
		{"OTEL_RESOURCE_ATTRIBUTES", "=secret"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/none"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", "collector_test.go"},
		{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/none"},
	} {
		t.Run(c[0], func(t *testing.T) {
			t.Setenv(c[0], c[1])
			_, err := New("http://127.0.0.1:1/v1/traces", "v1", zap.NewNop())
			if err == nil || !strings.Contains(err.Error(), c[0]) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: %v", c[1], err)
			}
		})
	}
}

package traces

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/handoff"
)

// Bounds of one batch.
const (
	maxTime   = 10 * time.Second // of a request, unless the environment says otherwise
	patience  = 20 * time.Second // with all requests for it
	maxAnswer = 4 << 10          // bytes of an answer that are read
)

// pauses are the pauses between the requests for a batch.
var pauses = handoff.Backoff{First: time.Second, Longest: 5 * time.Second}

// A collector takes traces by OTLP over HTTP as JSON. Set once.
type collector struct {
	url    string
	header http.Header
	about  []attribute // what sends the traces
	client *http.Client
	packed bool // requests are compressed
}

// exporting returns a variable of OpenTelemetry for the export of traces, or else the one for everything exported.
func exporting(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

func newCollector(endpoint, version string) (*collector, error) {
	c := &collector{url: endpoint, header: http.Header{}, packed: exporting("COMPRESSION") == "gzip"}
	err := pairs("OTEL_EXPORTER_OTLP_HEADERS", exporting("HEADERS"), c.header.Set)
	if err != nil {
		return nil, err
	}
	c.header.Set("Content-Type", "application/json")
	c.header.Set("User-Agent", "switchboard")
	if c.packed {
		c.header.Set("Content-Encoding", "gzip")
	}
	about := map[string]string{"service.name": "switchboard", "service.version": version}
	err = pairs("OTEL_RESOURCE_ATTRIBUTES", os.Getenv("OTEL_RESOURCE_ATTRIBUTES"), func(key, value string) { about[key] = value })
	if err != nil {
		return nil, err
	}
	about["service.name"] = cmp.Or(os.Getenv("OTEL_SERVICE_NAME"), about["service.name"])
	for _, key := range slices.Sorted(maps.Keys(about)) {
		c.about = append(c.about, newAttribute(key, about[key]))
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute}
	if transport.TLSClientConfig, err = certificates(); err != nil {
		return nil, err
	}
	timeout := maxTime
	if ms, err := strconv.Atoi(exporting("TIMEOUT")); err == nil && ms > 0 {
		timeout = time.Duration(ms) * time.Millisecond
	}
	// A redirect is a failure: the headers, which may have a key, are for the configured address alone.
	c.client = &http.Client{Transport: transport, Timeout: timeout, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return c, nil
}

// pairs reads name=value,name=value, where values are percent-encoded. An error does not have the values.
func pairs(variable, list string, set func(name, value string)) error {
	for pair := range strings.SplitSeq(list, ",") {
		name, value, found := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		switch name = strings.TrimSpace(name); {
		case name == "" && value == "": // such as after the last comma
		case name == "" || !found || err != nil:
			return handoff.Fault(handoff.CodeMalformed, variable, "want name=value,name=value with percent-encoded values")
		default:
			set(name, value)
		}
	}
	return nil
}

// certificates reads which collectors are trusted, and what is shown to them.
func certificates() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := exporting("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, handoff.Fault(handoff.CodeMalformed, "OTEL_EXPORTER_OTLP_CERTIFICATE", err.Error())
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, handoff.Fault(handoff.CodeMalformed, "OTEL_EXPORTER_OTLP_CERTIFICATE", "no certificate is in "+file)
		}
	}
	if file := exporting("CLIENT_CERTIFICATE"); file != "" {
		own, err := tls.LoadX509KeyPair(file, exporting("CLIENT_KEY"))
		if err != nil {
			return nil, handoff.Fault(handoff.CodeMalformed, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", err.Error())
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}

// encode returns a request for spans.
func (c *collector) encode(spans []*span) ([]byte, error) {
	body, err := json.Marshal(object{"resourceSpans": []object{{
		"resource":   object{"attributes": c.about},
		"scopeSpans": []object{{"scope": object{"name": "switchboard"}, "spans": spans}},
	}}})
	if err != nil || !c.packed {
		return body, err
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(body)
	err = errors.Join(err, w.Close())
	return packed.Bytes(), err
}

// send sends spans, and again after what may pass. It returns how many of them the collector took; the error says why
// not all.
func (c *collector) send(ctx context.Context, spans []*span) (taken int, err error) {
	body, err := c.encode(spans)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for try := 0; ; try++ {
		taken, again, after, err := c.post(ctx, body, len(spans))
		if !again {
			return taken, err
		}
		select {
		case <-time.After(max(after, pauses.Pause(try))):
		case <-ctx.Done():
			return taken, err
		}
	}
}

// post sends a request with n spans once, and returns how many of them the collector took, and why not all. again says
// that another try may help, and after how long the collector wants it.
func (c *collector) post(ctx context.Context, body []byte, n int) (taken int, again bool, after time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return 0, true, 0, err
	}
	req.Header = c.header.Clone()
	res, err := c.client.Do(req)
	if err != nil {
		return 0, true, 0, err
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer)) // the status says what became of it
	if res.StatusCode/100 != 2 {
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		passing := []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
		return 0, slices.Contains(passing, res.StatusCode), time.Duration(seconds) * time.Second,
			fmt.Errorf("%d: %s", res.StatusCode, handoff.Clip(string(text), 300))
	}
	var said struct {
		Partial struct {
			Rejected json.Number `json:"rejectedSpans"`
			Message  string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	_ = json.Unmarshal(text, &said) // whoever takes everything need not say so
	if rejected, _ := said.Partial.Rejected.Int64(); rejected > 0 {
		err = fmt.Errorf("%d spans rejected: %s", rejected, handoff.Clip(said.Partial.Message, 300))
		n -= int(min(rejected, int64(n)))
	}
	return n, false, 0, err
}

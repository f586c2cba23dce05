package mcp_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/handoff"
)

// span is where a trace stands.
type span string

func (s span) Begin(string) handoff.Span   { return s }
func (s span) End(handoff.Code, ...string) {}
func (s span) Parent() string              { return string(s) }

// withHeader sends requests with a traceparent.
type withHeader string

func (parent withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Who", "owner")
	r.Header.Set("Traceparent", string(parent))
	return http.DefaultTransport.RoundTrip(r)
}

// TestTraceOfACall: work belongs to the trace that a call names, in its _meta or in the header of its request, with and
// without a session of the protocol.
func TestTraceOfACall(t *testing.T) {
	for _, version := range versions() {
		f := newFleet()
		url := serve(t, f, time.Millisecond)
		s := connect(t, url, "owner", version, nil)
		_, err := s.CallTool(t.Context(), &sdk.CallToolParams{
			Name: "codex", Arguments: map[string]any{"server": "bigpc", "prompt": "wait for it"},
			Meta: sdk.Meta{"traceparent": "00-a-b-01"},
		})
		if err != nil {
			t.Fatal(err)
		}
		client := sdk.NewClient(&sdk.Implementation{Name: "other", Version: "1"}, nil)
		other, err := client.Connect(t.Context(),
			&sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: withHeader("00-c-d-01")}, MaxRetries: -1},
			&sdk.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = other.Close() })
		say(t, other, "codex", map[string]any{"server": "bigpc", "prompt": "something else"})
		if want := []string{"00-a-b-01", "00-c-d-01"}; !slices.Equal(f.parents, want) {
			t.Errorf("%s: work was begun in %q, want %q", version, f.parents, want)
		}
	}
}

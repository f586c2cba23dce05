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

// TestTraceOfACall: work belongs to the trace that a call names, in its _meta or in the header of its request, with and
// without a session of the protocol.
func TestTraceOfACall(t *testing.T) {
	for _, version := range versions() {
		f := newFleet()
		url := serve(t, f, time.Millisecond)
		s := connect(t, url, "owner", version, nil)
		_, err := s.CallTool(t.Context(), &sdk.CallToolParams{
			Name: "codex", Arguments: onBigpc("wait for it"),
			Meta: sdk.Meta{"traceparent": "00-a-b-01"},
		})
		if err != nil {
			t.Fatal(err)
		}
		traced := &http.Client{Transport: with{"X-Who": "owner", "Traceparent": "00-c-d-01"}}
		other, err := connectOver(t, &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: traced}, version, nil)
		if err != nil {
			t.Fatal(err)
		}
		say(t, other, "codex", onBigpc("something else"))
		if want := []string{"00-a-b-01", "00-c-d-01"}; !slices.Equal(f.parents, want) {
			t.Errorf("%s: work was begun in %q, want %q", version, f.parents, want)
		}
	}
}

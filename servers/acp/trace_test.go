package acp

import (
	"encoding/json"
	"testing"

	"switchboard/handoff"
)

// span is where a trace stands.
type span string

func (s span) Begin(string) handoff.Span   { return s }
func (s span) End(handoff.Code, ...string) {}
func (s span) Parent() string              { return string(s) }

// TestPromptTellsItsTrace: a prompt that belongs to a trace says so, and another says nothing.
func TestPromptTellsItsTrace(t *testing.T) {
	for parent, want := range map[span]string{
		"00-a-b-01": `{"sessionId":"s","prompt":null,"_meta":{"traceparent":"00-a-b-01"}}`,
		"":          `{"sessionId":"s","prompt":null}`,
	} {
		p := promptParams{Session: "s", Meta: traceOf(handoff.WithSpan(t.Context(), parent))}
		if got, err := json.Marshal(p); err != nil || string(got) != want {
			t.Errorf("%s %v, want %s", got, err, want)
		}
	}
}

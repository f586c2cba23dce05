package realtime

import (
	"testing"

	"switchboard/handoff"
)

// TestProbe: it is let in like a call, says nothing, and what is refused keeps its meaning.
func TestProbe(t *testing.T) {
	h := newHouse(t)
	for refuse, code := range map[int]handoff.Code{0: "", 401: handoff.CodeVoiceKey, 404: handoff.CodeVoiceModel, 500: handoff.CodeVoiceUnreachable} {
		h.model.refuse = refuse
		err := Probe(t.Context(), h.front.config)
		if got := handoff.Code(""); err != nil && handoff.AsError(err).Code != code || err == nil && code != got {
			t.Errorf("refused with %d: %v", refuse, err)
		}
	}
	if err := Probe(t.Context(), Config{ModelURL: "ws://127.0.0.1:1/v1/realtime"}); err == nil || handoff.AsError(err).Code != handoff.CodeVoiceUnreachable {
		t.Errorf("nobody there: %v", err)
	}
}

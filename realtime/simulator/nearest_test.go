package simulator

import (
	"strings"
	"testing"
)

// TestNearest: for a sentence that is not known the three are offered that are most like it, and each is known.
func TestNearest(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"please tell me which machine is free", "Which machines do I have?"},
		{"i would like the tests to be run on bigpc", "On bigpc, run the tests"},
		{"what was worked on yesterday", "What was I working on?"},
		{"could you push to the origin", "Push it from bigpc"},
		{"stopp the works", "Stop the work"},
		{"", "Which machines do I have?"},
		{"Wie spät ist es?", "Which machines do I have?"},
	} {
		if got := nearest(row.text); len(got) != offered || got[0] != row.want {
			t.Errorf("%q: %q", row.text, got)
		}
	}
	for _, e := range examples {
		if known, _ := understand(strings.TrimRight(e, " .!?")); known == nil {
			t.Errorf("it offers %q, which it does not know", e)
		}
	}
	if got := offer("stopp the works"); !strings.HasPrefix(got, sayUnknown+" The nearest are: “Stop the work”, “") || strings.Count(got, "”") != offered {
		t.Errorf("it says %q", got)
	}
}

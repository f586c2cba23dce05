package handoff

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTally(t *testing.T) {
	tally := NewTally(OutcomeResult, OutcomeFailed, OutcomeUnknown)
	for _, word := range []Outcome{OutcomeResult, OutcomeResult, "/home/me/secret", "more text", OutcomeFailed} {
		tally.Add(word)
	}
	var got []string
	for m := range tally.Metrics("switchboard_x_total", "Help.", "outcome") {
		got = append(got, fmt.Sprint(m.Name, m.Labels, m.Value))
	}
	want := []string{
		"switchboard_x_total[{outcome failed}] 1", "switchboard_x_total[{outcome other}] 2",
		"switchboard_x_total[{outcome result}] 2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for m := range NewTally(OutcomeResult, OutcomeFailed).Metrics("a", "b", "c", "server", "bigpc") {
		if m.Value != 0 || m.Labels[0].Value != "failed" || m.Labels[1].Value != "bigpc" {
			t.Errorf("nothing was counted: %+v", m)
		}
		break
	}
}

func TestNewMetric(t *testing.T) {
	want := Metric{Name: "x", Help: "y", Labels: []MetricLabel{{"leg", "webrtc"}, {"server", "bigpc"}}, Value: 7}
	if diff := cmp.Diff(want, NewMetric("x", "y", 7, "leg", "webrtc", "server", "bigpc")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if m := NewMetric("x", "y", uint64(math.MaxUint64)); m.Value != math.MaxUint64 || m.Labels != nil {
		t.Errorf("a large one: %+v", m)
	}
}

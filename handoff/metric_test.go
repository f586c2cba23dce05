package handoff

import (
	"fmt"
	"math"
	"testing"
	"time"

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

func TestTimes(t *testing.T) {
	times := NewTimes(time.Millisecond, time.Second)
	for _, d := range []time.Duration{-time.Hour, 0, time.Millisecond, time.Millisecond + 1, time.Second, time.Minute} {
		times.Observe(d)
	}
	got := times.Metric("switchboard_x_seconds", "Help.", "leg", "webrtc", "server", "bigpc")
	want := Metric{
		Name: "switchboard_x_seconds", Help: "Help.", Labels: []MetricLabel{{"leg", "webrtc"}, {"server", "bigpc"}},
		Times: &TimesSnapshot{
			Bounds: []time.Duration{time.Millisecond, time.Second}, Counts: []uint64{3, 5}, Count: 6,
			Sum: 2*time.Millisecond + 1 + time.Second + time.Minute,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if m := NewTimes().Metric("x", "y"); m.Times.Count != 0 || m.Times.Sum != 0 || len(m.Times.Counts) != 0 {
		t.Errorf("an empty one: %+v", m.Times)
	}
	if m := NewMetric("x", "y", uint64(math.MaxUint64)); m.Value != math.MaxUint64 || m.Labels != nil {
		t.Errorf("a large one: %+v", m)
	}
}

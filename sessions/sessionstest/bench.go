package sessionstest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// A Load is a state of the store and a pace in which a ledger is measured.
type Load struct {
	Name  string
	Kept  int           // handoffs in the history
	Apart time.Duration // pause before each measurement; without one, everything is in caches
}

// Loads are the loads for every store. In a call there is a pause before each step, which then takes several times as
// long as a step without one.
var Loads = []Load{{"10", 10, 0}, {"10-apart", 10, 20 * time.Millisecond}, {"10000", 10_000, 0}, {"100000", 100_000, 0}}

// BenchmarkLedger measures the step that a start waits for, which makes the entry, in a filled store. It reports p50
// and p99 of the step in microseconds and in floors; a floor is the median of the plainest write of the same store in
// the same run.
func BenchmarkLedger(b *testing.B, l ledger.Ledger, apart time.Duration, floor func()) {
	for range 100 { // load scripts and pages
		floor()
	}
	run, n := b.Name()+fmt.Sprint(b.N, time.Now().UnixNano()), 0
	var floors, steps []time.Duration
	took := func(do func()) time.Duration {
		time.Sleep(apart)
		began := time.Now()
		do()
		return time.Since(began)
	}
	advance := func(s ledger.Step) {
		s.At = time.Now()
		if _, err := l.Advance(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		n++
		key := fmt.Sprint(run, n)
		floors = append(floors, took(floor))
		b.StartTimer()
		steps = append(steps, took(func() { advance(LedgerStep(key, "a", handoff.StatusDispatching)) }))
		b.StopTimer()
		advance(LedgerStep(key, "a", handoff.StatusStarted)) // so that the number of open entries does not grow
		advance(LedgerStep(key, "a", handoff.StatusCompleted))
		advance(LedgerStep(key, "a", handoff.StatusDelivered))
		b.StartTimer()
	}
	slices.Sort(floors)
	slices.Sort(steps)
	at := func(all []time.Duration, q float64) float64 { return float64(all[int(q*float64(len(all)-1))]) }
	b.ReportMetric(at(steps, .5)/1e3, "p50-µs")
	b.ReportMetric(at(steps, .99)/1e3, "p99-µs")
	b.ReportMetric(at(steps, .5)/at(floors, .5), "p50-floors")
	b.ReportMetric(at(steps, .99)/at(floors, .5), "p99-floors")
	b.ReportMetric(at(floors, .99)/at(floors, .5), "floor-p99-floors")
	b.ReportMetric(at(floors, .5)/1e3, "floor-µs")
}

// Heard returns the steps of a handoff that was heard a moment ago, to fill a store.
func Heard(key string) []ledger.Step {
	s, heard := LedgerStep(key, "a", handoff.StatusCompleted), LedgerStep(key, "a", handoff.StatusDelivered)
	s.New, s.At, heard.At = true, time.Now(), time.Now()
	s.Set.Title, s.Set.Prompt, s.Set.Target = "auth refactor", "fix the failing login test of the shop",
		handoff.Target{Server: "bigpc", Project: "api", Thread: "t1"}
	s.Body = ledger.Body{Prompt: s.Set.Prompt, Text: "The tests pass. I changed two files."}
	return []ledger.Step{s, heard}
}

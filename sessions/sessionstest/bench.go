package sessionstest

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

// A Load is a state of the store and a pace in which it is measured.
type Load struct {
	Name  string
	Kept  int           // handoffs in the history
	Apart time.Duration // pause before each measurement; without one, everything is in caches
}

// Loads are the loads for every store. In a call there is a pause before each commit, which then takes several times
// as long as one without.
var Loads = []Load{{"10", 10, 0}, {"10-apart", 10, 20 * time.Millisecond}, {"10000", 10_000, 0}, {"100000", 100_000, 0}}

// BenchmarkCommit measures the commit that a start waits for, in a filled store. It reports p50 and p99 of the commit
// in microseconds and in floors; a floor is the median of the plainest write of the same store in the same run.
func BenchmarkCommit(b *testing.B, s sessions.Callers, apart time.Duration, floor func()) {
	for range 100 { // load scripts and pages
		floor()
	}
	Must(b, Write(b.Context(), s, Owner, Put("open")))
	now, err := s.State(b.Context(), Owner)
	Must(b, err)
	run, n := b.Name()+fmt.Sprint(b.N, time.Now().UnixNano()), 0
	var floors, commits []time.Duration
	took := func(do func()) time.Duration {
		time.Sleep(apart)
		began := time.Now()
		do()
		return time.Since(began)
	}
	commit := func(batch ledger.Batch) {
		batch.Was, batch.Now = now.Version, rand.Text()
		if done, err := s.Commit(b.Context(), Owner, batch); err != nil || done != ledger.Written {
			b.Fatal(done, err)
		}
		now.Version = batch.Now
	}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		n++
		e := Entry(fmt.Sprint(run, n))
		batch := Put(e.Key)
		batch.Changed = []ledger.Changed{{Key: e.Key, Free: true, Texts: map[string]string{ledger.PartPrompt: e.Prompt}}}
		floors = append(floors, took(floor))
		b.StartTimer()
		commits = append(commits, took(func() { commit(batch) }))
		b.StopTimer()
		commit(Over(time.Now(), e)) // so that the number of open handoffs does not grow
		b.StartTimer()
	}
	slices.Sort(floors)
	slices.Sort(commits)
	at := func(all []time.Duration, q float64) float64 { return float64(all[int(q*float64(len(all)-1))]) }
	b.ReportMetric(at(commits, .5)/1e3, "p50-µs")
	b.ReportMetric(at(commits, .99)/1e3, "p99-µs")
	b.ReportMetric(at(commits, .5)/at(floors, .5), "p50-floors")
	b.ReportMetric(at(commits, .99)/at(floors, .5), "p99-floors")
	b.ReportMetric(at(floors, .99)/at(floors, .5), "floor-p99-floors")
	b.ReportMetric(at(floors, .5)/1e3, "floor-µs")
}

// Fill stores handoffs of [Owner] that were heard a moment ago.
func Fill(b *testing.B, s sessions.Callers, n int) {
	b.Helper()
	const atOnce = 50
	for from := 0; from < n; from += atOnce {
		var all []ledger.Entry
		for i := from; i < min(from+atOnce, n); i++ {
			all = append(all, Entry(fmt.Sprint("heard-", i)))
		}
		batch := Over(time.Now(), all...)
		for i := range batch.Changed {
			batch.Changed[i].Texts = map[string]string{ledger.PartPrompt: all[i].Prompt, ledger.PartText: "The tests pass."}
		}
		Must(b, Write(b.Context(), s, Owner, batch))
	}
}

// BenchmarkOpen measures what is read to open a caller with 100 open handoffs, each with its words and its whole
// request, and in the floor the documents alone.
func BenchmarkOpen(b *testing.B, s sessions.Memory) {
	open := handoff.Caller{Principal: "opened"}
	archive := sessions.NewArchive(s, func(name string) { b.Fatal(name) })
	var keys []string
	batch := ledger.Batch{Put: map[string]string{}}
	for i := range 100 {
		e := Entry(fmt.Sprint("open-", i))
		keys = append(keys, e.Key)
		batch.Put[ledger.HandoffDoc+e.Key] = handoff.Encode(e)
		batch.Changed = append(batch.Changed, ledger.Changed{Key: e.Key, Texts: map[string]string{
			ledger.PartPrompt: e.Prompt, ledger.PartRequest: strings.Repeat("a whole request ", 64)}})
	}
	Must(b, Write(b.Context(), s, open, batch))
	var floors []time.Duration
	for b.Loop() {
		began := time.Now()
		now, err := s.State(b.Context(), open)
		Must(b, err)
		entries := ledger.Entries(now.Documents, func(name string) { b.Fatal(name) })
		floors = append(floors, time.Since(began))
		bodies := 0
		for some := range slices.Chunk(keys, 32) {
			all, err := archive.Bodies(b.Context(), open, some...)
			Must(b, err)
			bodies += len(all)
		}
		if len(entries) != 100 || bodies != 100 {
			b.Fatal(len(entries), bodies)
		}
	}
	slices.Sort(floors)
	b.ReportMetric(float64(floors[len(floors)/2].Microseconds()), "documents-µs")
}

package filter

import (
	"runtime"
	"testing"
)

// BenchmarkSession is the beginning of a session whose model answers our updates, and what a call keeps of it.
func BenchmarkSession(b *testing.B) {
	var kept []*Filter
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before := heap()
	b.ReportAllocs()
	for b.Loop() {
		kept = append(kept, newOpenFilter())
	}
	b.ReportMetric((heap()-before)/float64(b.N), "kept-B/op")
	runtime.KeepAlive(kept)
}

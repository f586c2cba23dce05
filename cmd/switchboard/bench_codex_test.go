package main

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkAttach is what a request waits for unless its thread was attached ahead: thread/resume at the real codex,
// of a session with one item of the agent's and of one with 2,000, which codex has to load, or which it has loaded. The
// floor is a request that loads nothing.
func BenchmarkAttach(b *testing.B) {
	c := startCodex(b)
	for _, items := range []int{1, 2000} {
		thread := c.thread(fmt.Sprintf("list %d", min(items, 100)))
		at := c.attach(*codexAt(c.url), thread)
		for i := range items/100 - 1 {
			at.ended(at.begin(fmt.Sprint("list-", i), "list 100"))
		}
		_ = at.Agent.Close()
		for _, loaded := range []bool{false, true} {
			b.Run(fmt.Sprintf("items=%d/loaded=%t", items, loaded), func(b *testing.B) {
				link := c.other(*codexAt(c.url))
				if loaded {
					c.attach(*codexAt(c.url), thread)
				}
				var took, floors []time.Duration
				for b.Loop() {
					if !loaded {
						time.Sleep(1500 * time.Millisecond) // it is unloaded a second after the last one left
					}
					began := time.Now()
					_, err := link.Catalog.List(b.Context(), 1)
					must(b, err)
					floors = append(floors, time.Since(began))
					began = time.Now()
					at, err := link.Conn.Attach(b.Context(), thread)
					took = append(took, time.Since(began))
					must(b, err)
					_ = at.Agent.Close()
				}
				b.ReportMetric(float64(quantile(took, 0.5).Microseconds())/1e3, "median-ms")
				b.ReportMetric(float64(quantile(floors, 0.5).Microseconds())/1e3, "floor-ms")
			})
		}
	}
}

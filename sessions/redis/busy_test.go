package redis_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// keepBusy takes processors until the test ends.
func keepBusy(t *testing.T) {
	t.Helper()
	var stop atomic.Bool
	var all sync.WaitGroup
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		all.Go(func() {
			for n := 0; !stop.Load(); n++ {
				_ = n
			}
		})
	}
	t.Cleanup(func() {
		stop.Store(true)
		all.Wait()
	})
}

package redis

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"switchboard/handoff"
	"switchboard/sessions/sessionstest"
)

// BenchmarkLedger measures the step that a start waits for; the floor is one HSET.
func BenchmarkLedger(b *testing.B) {
	server := sessionstest.StartRedis(b)
	for _, load := range sessionstest.Loads {
		b.Run(load.Name, func(b *testing.B) {
			s, err := Open(b.Context(), Config{URL: server.URL, Prefix: b.Name()})
			must(b, err)
			defer func() { _ = s.Close() }()
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan error, 1)
			go func() { done <- s.Run(ctx) }()
			fill(b, s, load.Kept)
			sessionstest.BenchmarkLedger(b, s, load.Apart, func() {
				must(b, s.client.HSet(b.Context(), s.prefix+":plain", "words", "fix the failing login test of the shop").Err())
			})
			cancel()
			must(b, <-done)
		})
	}
}

// fill stores handoffs that were heard, several at once.
func fill(b *testing.B, s *Store, n int) {
	b.Helper()
	if kept, err := s.client.ZCard(b.Context(), s.key("owner", historyKey)).Result(); err == nil && kept >= int64(n) {
		return // by an earlier round
	}
	var all sync.WaitGroup
	for worker := range poolSize {
		all.Go(func() {
			for i := worker; i < n; i += poolSize {
				for _, step := range sessionstest.Heard(fmt.Sprint("heard-", i)) {
					if _, err := s.Advance(b.Context(), step); err != nil && handoff.CodeOf(err) != handoff.CodeTakenOver {
						b.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
}

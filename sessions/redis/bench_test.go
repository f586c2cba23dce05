package redis

import (
	"context"
	"testing"

	"switchboard/sessions/sessionstest"
)

// BenchmarkCommit measures the commit that a start waits for; the floor is one HSET.
func BenchmarkCommit(b *testing.B) {
	server := sessionstest.StartRedis(b)
	for _, load := range sessionstest.Loads {
		b.Run(load.Name, func(b *testing.B) {
			s, err := Open(b.Context(), Config{URL: server.URL, Prefix: b.Name()})
			must(b, err)
			defer func() { _ = s.Close() }()
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan error, 1)
			go func() { done <- s.Run(ctx) }()
			if kept := s.client.ZCard(b.Context(), s.key("owner", historyKey)).Val(); kept < int64(load.Kept) {
				sessionstest.Fill(b, s, load.Kept) // not by an earlier round
			}
			sessionstest.BenchmarkCommit(b, s, load.Apart, func() {
				must(b, s.client.HSet(b.Context(), s.prefix+":plain", "words", "fix the failing login test of the shop").Err())
			})
			cancel()
			must(b, <-done)
		})
	}
}

// BenchmarkOpen measures how a caller with 100 open handoffs is read.
func BenchmarkOpen(b *testing.B) {
	s, err := Open(b.Context(), Config{URL: sessionstest.StartRedis(b).URL, Prefix: "opened"})
	must(b, err)
	defer func() { _ = s.Close() }()
	sessionstest.BenchmarkOpen(b, s)
}

package sqlite

import (
	"context"
	"testing"
	"time"

	"switchboard/sessions/sessionstest"
)

// BenchmarkCommit measures the commit that a start waits for; the floor is one insert into a table of its own.
func BenchmarkCommit(b *testing.B) {
	for _, load := range sessionstest.Loads {
		b.Run(load.Name, func(b *testing.B) {
			s, err := Open(b.Context(), Config{Dir: b.TempDir()})
			must(b, err)
			defer func() { _ = s.Close() }()
			sessionstest.Fill(b, s, load.Kept)
			must(b, s.checkpoint(b.Context()))
			if _, err := s.write.ExecContext(b.Context(), "CREATE TABLE plain (id INTEGER PRIMARY KEY, words "+
				"TEXT) STRICT"); err != nil {
				b.Fatal(err)
			}
			plain, err := s.write.PrepareContext(b.Context(), "INSERT INTO plain (words) VALUES (?)")
			must(b, err)
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan error, 1)
			go func() { done <- s.Run(ctx) }()
			time.Sleep(tickEvery) // without the daily copy
			sessionstest.BenchmarkCommit(b, s, load.Apart, func() {
				_, err := plain.Exec("fix the failing login test of the shop")
				must(b, err)
			})
			cancel()
			must(b, <-done)
		})
	}
}

// BenchmarkOpen measures how a caller with 100 open handoffs is read.
func BenchmarkOpen(b *testing.B) {
	s, err := Open(b.Context(), Config{Dir: b.TempDir()})
	must(b, err)
	defer func() { _ = s.Close() }()
	sessionstest.BenchmarkOpen(b, s)
}

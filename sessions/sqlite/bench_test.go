package sqlite

import (
	"context"
	"fmt"
	"testing"
	"time"

	"switchboard/sessions/sessionstest"
)

// BenchmarkLedger measures the step that a start waits for; the floor is one insert into a table of its own.
func BenchmarkLedger(b *testing.B) {
	for _, load := range sessionstest.Loads {
		b.Run(load.Name, func(b *testing.B) {
			s, err := Open(b.Context(), Config{Dir: b.TempDir()})
			must(b, err)
			defer func() { _ = s.Close() }()
			fill(b, s, load.Kept)
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
			sessionstest.BenchmarkLedger(b, s, load.Apart, func() {
				_, err := plain.Exec("fix the failing login test of the shop")
				must(b, err)
			})
			cancel()
			must(b, <-done)
		})
	}
}

// fill stores handoffs that were heard.
func fill(b *testing.B, s *Store, n int) {
	b.Helper()
	for i := range n {
		for _, step := range sessionstest.Heard(fmt.Sprint("heard-", i)) {
			_, err := s.Advance(b.Context(), step)
			must(b, err)
		}
	}
	must(b, s.checkpoint(b.Context()))
}

package sqlite

import (
	"context"
	"errors"
	"strings"
	"testing"

	"switchboard/handoff/ledger"
	"switchboard/sessions/sessionstest"
)

var must = sessionstest.Must

// put writes a document of a handoff, with long texts.
func put(t *testing.T, s *Store, key string) error {
	b := sessionstest.Put(key)
	b.Changed = []ledger.Changed{{Key: key, Texts: map[string]string{ledger.PartPrompt: strings.Repeat("words ", 10_000)}}}
	return sessionstest.Write(t.Context(), s, sessionstest.Owner, b)
}

// TestChangeLeavesNothingOpen: however a change fails, nothing of it is written, and the connection can make the next
// one.
func TestChangeLeavesNothingOpen(t *testing.T) {
	broken := errors.New("broken")
	for name, do := range map[string]func(context.Context, transaction, context.CancelFunc) error{
		"an error after a write": func(context.Context, transaction, context.CancelFunc) error { return broken },
		"a panic":                func(context.Context, transaction, context.CancelFunc) error { panic(broken) },
		"a statement that SQLite ends the transaction for": func(ctx context.Context, tx transaction,
			_ context.CancelFunc) error {
			_, err := tx.ExecContext(ctx, "INSERT OR ROLLBACK INTO once VALUES (1), (1)")
			return err
		},
		"a commit that is refused": func(ctx context.Context, tx transaction, _ context.CancelFunc) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO child VALUES (7)")
			return err
		},
		"a context that ends in the middle": func(ctx context.Context, tx transaction, cancel context.CancelFunc) error {
			cancel()
			_, err := tx.ExecContext(ctx, "DELETE FROM life WHERE 0")
			return errors.Join(err, broken)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), Config{Dir: t.TempDir()})
			must(t, err)
			defer func() { _ = s.Close() }()
			for _, text := range []string{
				"PRAGMA foreign_keys = 1", "CREATE TABLE once (n INTEGER PRIMARY KEY)",
				"CREATE TABLE child (n REFERENCES once DEFERRABLE INITIALLY DEFERRED)", "CREATE TABLE seen (n)",
			} {
				_, err := s.write.ExecContext(t.Context(), text)
				must(t, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			func() {
				defer func() { _ = recover() }()
				err = broken // unless it returns
				err = s.change(ctx, func(ctx context.Context, tx transaction) error {
					if _, err := tx.ExecContext(ctx, "INSERT INTO seen VALUES (1)"); err != nil {
						t.Error(err)
					}
					return do(ctx, tx, cancel)
				})
			}()
			if err == nil {
				t.Fatal("it was acknowledged")
			}
			if err := put(t, s, "next"); err != nil {
				t.Fatalf("the next change: %v", err)
			}
			var n int
			if err := s.read.QueryRowContext(t.Context(), "SELECT count(*) FROM seen").Scan(&n); err != nil || n != 0 {
				t.Fatalf("%d rows of it are written, %v", n, err)
			}
		})
	}
}

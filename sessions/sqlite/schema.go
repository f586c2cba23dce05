package sqlite

import (
	"context"
	"embed"
	"fmt"
	"path/filepath"
)

//go:embed schema_*.sql
var schemas embed.FS

// schemaVersion is the version of the tables, PRAGMA user_version, and the number of the newest schema_*.sql: a
// file of an older version gets what is missing, a newer one is refused.
const schemaVersion = 11

// migrate checks the file, makes its tables and begins a life. After an unclean end all of it is looked
// through.
func (s *Store) migrate(ctx context.Context, unclean bool) error {
	var version int
	if err := s.write.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return s.unusable(err)
	}
	if err := tooNew(s.path, version); err != nil {
		return err
	}
	if unclean {
		if err := s.check(ctx); err != nil {
			return err
		}
	}
	return s.change(ctx, func(ctx context.Context, tx transaction) error {
		for n := version + 1; n <= schemaVersion; n++ {
			schema, err := schemas.ReadFile(fmt.Sprintf("schema_%d.sql", n))
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, string(schema)+fmt.Sprintf("PRAGMA user_version = %d;", n)); err != nil {
				return err
			}
		}
		return tx.QueryRowContext(ctx, "UPDATE life SET epoch = epoch + 1 RETURNING epoch").Scan(&s.epoch)
	})
}

// check looks through the whole file.
func (s *Store) check(ctx context.Context) error {
	var found string
	if err := s.write.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
		return s.unusable(err)
	}
	if found != "ok" {
		return s.unusable(fmt.Errorf("it is damaged: %s", found))
	}
	return nil
}

// unusable says what to do about a file that cannot be opened.
func (s *Store) unusable(err error) error {
	if !isOne(err, passing) {
		if newest := s.newestCopy(); newest != "" {
			return fmt.Errorf("%s cannot be used: %w; put its newest copy in its place (cp %s %s, and remove %s-wal and %s-shm), "+
				"or move it away to begin with nothing remembered", s.path, err, filepath.Join(s.dir.Path, newest), s.path, s.path, s.path)
		}
		return fmt.Errorf("%s cannot be used: %w; there is no copy of it yet: move it away to begin with nothing remembered", s.path, err)
	}
	return fmt.Errorf("open %s: %w", s.path, err)
}

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

// Backup writes a copy of the file of a state directory to a path where nothing is yet, and checks the copy. It may be
// used whether a service runs or not; the copy has what was written before the call.
func Backup(ctx context.Context, dir, to string) (err error) {
	path := filepath.Join(dir, fileName)
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("there is nothing to back up: %w", err)
	}
	made, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode) // VACUUM INTO accepts an empty file
	if err != nil {
		return fmt.Errorf("make the backup: %w", err)
	}
	defer func() {
		if err = errors.Join(err, made.Close()); err != nil {
			_ = os.Remove(to) // so that no partial copy is left
		}
	}()
	if err := execOn(ctx, path, "VACUUM INTO ?", to); err != nil {
		return fmt.Errorf("copy %s: %w", path, err)
	}
	if err := execOn(ctx, to, "PRAGMA quick_check(1)"); err != nil {
		return fmt.Errorf("check the copy of %s: %w", path, err)
	}
	return made.Sync()
}

// execOn runs one statement on a connection of its own to a file that is there. If it returns a row, the row must be
// "ok".
func execOn(ctx context.Context, path, text string, args ...any) error {
	q := url.Values{"_pragma": {fmt.Sprintf("busy_timeout(%d)", busyFor.Milliseconds())}, "mode": {"rw"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String())
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // any error of the statement was reported already
	result := "ok"
	if err := db.QueryRowContext(ctx, text, args...).Scan(&result); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if result != "ok" {
		return errors.New("it is damaged: " + result)
	}
	return nil
}

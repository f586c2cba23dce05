package sqlite

import (
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"switchboard/sessions"
)

// tables makes the tables of a new file.
//
//go:embed tables.sql
var tables string

// schemas bring older files up to date, each from the version before.
//
//go:embed schema_*.sql
var schemas embed.FS

// schemaVersion is the PRAGMA user_version of the present tables, and the number of the newest schema_*.sql. A file of
// an older version gets the missing schemas; one of a newer version is refused.
const schemaVersion = 20

// migrate brings the tables up to date and begins a life. After an unclean end it first checks the whole file. A file
// of an older version is copied first, since that version cannot read the new tables.
func (f *file) migrate(ctx context.Context, unclean bool) error {
	var version int
	if err := f.write.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return f.unusable(err)
	}
	if err := tooNew(f.path, version); err != nil {
		return err
	}
	if unclean {
		var result string
		if err := f.write.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&result); err != nil {
			return f.unusable(err)
		}
		if result != "ok" {
			return f.unusable(fmt.Errorf("it is damaged: %s", result))
		}
	}
	if version > 0 && version < schemaVersion {
		if err := f.copyTo(ctx, formerName(version)); err != nil {
			return fmt.Errorf("copy %s before its tables are changed: %w; make room in the state directory", f.path, err)
		}
		for older := range version { // of updates before
			_ = f.dir.Root().Remove(formerName(older)) // usually there is none
		}
	}
	return f.change(ctx, func(ctx context.Context, tx transaction) error {
		if version == 0 {
			is := fmt.Sprintf("PRAGMA user_version = %d;", schemaVersion)
			if _, err := tx.ExecContext(ctx, tables+is); err != nil {
				return err
			}
			version = schemaVersion
		}
		for n := version + 1; n <= schemaVersion; n++ {
			schema, err := schemas.ReadFile(fmt.Sprintf("schema_%d.sql", n))
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, string(schema)+fmt.Sprintf("PRAGMA user_version = %d;", n)); err != nil {
				return err
			}
			if n == keyedVersion {
				if err := convertKeyed(ctx, tx); err != nil {
					return err
				}
			}
		}
		return tx.QueryRowContext(ctx, "UPDATE life SET epoch = epoch + 1 RETURNING epoch").Scan(&f.epoch)
	})
}

// unusable adds to an error of opening the file what the user can do.
func (f *file) unusable(err error) error {
	if !isOne(err, passing) {
		if all := f.copies(); len(all) > 0 {
			newest := all[len(all)-1]
			return fmt.Errorf("%s cannot be used: %w; put its newest copy in its place (cp %s %s, and remove %s-wal and "+
				"%s-shm), "+
				"or move it away to begin with nothing remembered", f.path, err, filepath.Join(f.dir.Path, newest), f.path,
				f.path, f.path)
		}
		return fmt.Errorf("%s cannot be used: %w; there is no copy of it yet: move it away to begin with nothing "+
			"remembered", f.path, err)
	}
	return fmt.Errorf("open %s: %w", f.path, err)
}

// The header of an SQLite file, with offsets in bytes (sqlite.org/fileformat.html).
const (
	headLength = 100
	headMagic  = "SQLite format 3\x00"
	headUser   = 60 // offset of user_version, four bytes
)

// Look returns the error that [Open] would return for the file of a state directory, as far as its first bytes show.
// It takes no lock and writes nothing, so it may be used beside a running service. A missing file is no error.
func Look(dir string) error {
	if err := sessions.OnNetwork(dir); err != nil {
		return err
	}
	path := filepath.Join(dir, fileName)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read from
	head := make([]byte, headLength)
	switch n, err := io.ReadFull(f, head); {
	case n == 0 && errors.Is(err, io.EOF): // made, but still empty
		return nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("read %s: %w", path, err)
	case string(head[:len(headMagic)]) != headMagic:
		return fmt.Errorf("%s cannot be used: it is no SQLite file; put its newest copy in its place, or move it away to "+
			"begin with nothing remembered", path)
	}
	return tooNew(path, int(binary.BigEndian.Uint32(head[headUser:])))
}

// formerName returns the file name of the copy that is made before a file of a version is changed.
func formerName(version int) string { return fmt.Sprintf("%s.v%d", fileName, version) }

// tooNew returns an error for the file of a newer version.
func tooNew(path string, version int) error {
	if version <= schemaVersion {
		return nil
	}
	next := "move the file away to begin with nothing remembered"
	former := filepath.Join(filepath.Dir(path), formerName(schemaVersion))
	if _, err := os.Stat(former); err == nil {
		next = fmt.Sprintf("go back to what was there before that one (cp %s %s, and remove %s-wal and %s-shm)", former,
			path, path, path)
	}
	return fmt.Errorf("%s was written by a newer Switchboard (version %d, this one reads %d): start that one, or %s", path,
		version, schemaVersion, next)
}

package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"switchboard/sessions"
)

// Where the head of an SQLite file has what, in bytes (sqlite.org/fileformat.html).
const (
	headLength = 100
	headMagic  = "SQLite format 3\x00"
	headUser   = 60 // user_version, four bytes
)

// Look tells what would keep [Open] from opening the file of a state directory, as far as its first bytes tell. It
// takes no lock and writes nothing, so it may be used beside a running service. A file that is not there yet is none.
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
	case n == 0 && errors.Is(err, io.EOF): // made, and nothing written yet
		return nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("read %s: %w", path, err)
	case string(head[:len(headMagic)]) != headMagic:
		return fmt.Errorf("%s cannot be used: it is no SQLite file; put its newest copy in its place, or move it away to begin with nothing remembered", path)
	}
	return tooNew(path, int(binary.BigEndian.Uint32(head[headUser:])))
}

// tooNew refuses the file of a newer version.
func tooNew(path string, version int) error {
	if version <= schemaVersion {
		return nil
	}
	return fmt.Errorf("%s was written by a newer Switchboard (version %d, this one reads %d): "+
		"start that one, or move the file away to begin with nothing remembered", path, version, schemaVersion)
}

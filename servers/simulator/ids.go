package simulator

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// newID returns a UUID of version 7, as Codex uses for threads and turns: they sort by time.
func newID(now time.Time) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16|uint64(b[6])<<8|uint64(b[7]))
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// madeAt returns when an id was made; false if it is not one of [newID].
func madeAt(id string) (time.Time, bool) {
	b, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	if err != nil || len(b) != 16 || b[6]>>4 != 7 {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b[:8]) >> 16)), true
}

// checkID returns the error of the app-server for a thread id that is not a UUID, "" for a valid one.
func checkID(id string) string {
	text := strings.TrimPrefix(id, "urn:uuid:")
	for i, r := range text {
		if !strings.ContainsRune("0123456789abcdefABCDEF-", r) {
			return fmt.Sprintf("invalid thread id: invalid character: expected an optional prefix of `urn:uuid:` followed by "+
				"[0-9a-fA-F-], found `%c` at %d", r, i+1)
		}
	}
	if len(text) != 36 && len(text) != 32 {
		return fmt.Sprintf("invalid thread id: invalid length: expected length 32 for simple format, found %d", len(text))
	}
	return ""
}

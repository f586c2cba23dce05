package simulator

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"regexp"
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

// threadID matches the thread ids that the app-server accepts.
var threadID = regexp.MustCompile(`^[0-9a-fA-F-]{32,36}$`)

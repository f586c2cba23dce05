package joined

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// TestLobby: handshakes from one address give way to those of others, the oldest first, and never the other way round.
func TestLobby(t *testing.T) {
	t.Parallel()
	var l lobby
	crowd := func(n, address int) (gone []*guest) {
		for range n {
			if out := l.enter(&guest{from: netip.MustParseAddr(fmt.Sprint("203.0.113.", address))}); out != nil {
				gone = append(gone, out)
			}
		}
		return gone
	}
	crowd(maxFromOne, 1)
	if first := l[0]; crowd(1, 1)[0] != first || len(l) != maxFromOne {
		t.Error("one address has more than its share")
	}
	for address := 2; len(l) < maxGuests; address++ {
		crowd(maxFromOne, address)
	}
	honest := &guest{from: netip.MustParseAddr("198.51.100.1")}
	if first := l[0]; l.enter(honest) != first {
		t.Error("not the oldest of the many goes")
	}
	for address := 1; address < maxGuests/2; address++ {
		for _, out := range crowd(4, address) {
			if out == honest {
				t.Fatalf("one that came alone goes before those from %d addresses", address)
			}
		}
	}
	if len(l) != maxGuests || !l.leave(honest) || l.leave(honest) {
		t.Errorf("there are %d", len(l))
	}
}

// TestSilentSocketsKeepNobodyOut: while many connections are open that say nothing, machines join and come back.
func TestSilentSocketsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	s, key := fresh(t), newKey(t)
	door := s.open(t, Visit{Key: key, Invitation: s.invite(t, "mini"), About: codex})
	must(t, door.Close())
	var last *socket
	for range 2 * maxGuests {
		last = s.raw(t)
	}
	s.open(t, Visit{Key: key, Service: door.Service, Name: "mini", About: codex})
	s.open(t, Visit{Key: newKey(t), Invitation: s.invite(t, "studio"), About: codex})
	until(t, "their lines", func() bool { return s.counts.lines.Load() == 2 })
	must(t, last.SetReadDeadline(time.Now().Add(patience))) // the newest one waits on
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.guests) > maxGuests {
		t.Errorf("%d handshakes are going on", len(s.guests))
	}
}

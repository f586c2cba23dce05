package realtime

import (
	"net"
	"slices"
	"syscall"
)

// maxBatches bounds what Flush writes before it leaves the rest to write: who flushes has a far end to read from.
const maxBatches = 16

// directOf returns what writes to a connection without waiting, or nil where there is none: TLS has to put a record
// through whole.
func directOf(conn net.Conn) syscall.RawConn {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	direct, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	return direct
}

// Flush implements [flusher]. What the far end does not take at once is left to write, and so is what is more than
// maxBatches. Where somebody else writes, he looks again.
func (s *socket) Flush() {
	for range maxBatches {
		if !s.Waits() || s.closing() || s.closed.Load() {
			return
		}
		if s.direct == nil {
			break
		}
		select {
		case s.turn <- struct{}{}:
		default:
			return // who writes looks again
		}
		whole := s.tryBatch()
		<-s.turn
		if !whole {
			break
		}
	}
	s.Signal()
}

// tryBatch writes of what waits as much as goes into one write, and returns whether the far end took it all at once.
func (s *socket) tryBatch() bool {
	if s.rest != nil {
		return false
	}
	lent := frames.Get().(*[]byte)
	defer giveBack(lent)
	if *lent = s.nextBatch((*lent)[:0]); len(*lent) == 0 {
		return true
	}
	s.batch, s.taken = *lent, 0
	_ = s.direct.Write(s.attempt) // who waits for the rest learns what is wrong
	s.batch = nil
	if s.taken == len(*lent) {
		return true
	}
	s.rest = slices.Clone((*lent)[s.taken:])
	return false
}

// writeOnce lets the far end take of a batch what it can.
func (s *socket) writeOnce(fd uintptr) bool {
	n, _ := syscall.Write(int(fd), s.batch)
	s.taken = max(n, 0)
	return true
}

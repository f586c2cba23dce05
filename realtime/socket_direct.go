package realtime

import (
	"net"
	"slices"
	"syscall"
)

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

// Flush implements [flusher]. What the far end does not take at once is left to write, and so is everything while write
// is at it.
func (s *socket) Flush() {
	for s.Waits() && !s.closing() && !s.closed.Load() {
		if s.direct == nil {
			s.Signal()
			return
		}
		select {
		case s.turn <- struct{}{}:
		default:
			return // who writes looks again
		}
		all := s.tryAll()
		<-s.turn
		if !all {
			s.Signal()
			return
		}
	}
}

// tryAll writes what waits, and returns whether the far end took it all at once.
func (s *socket) tryAll() bool {
	if s.rest != nil {
		return false
	}
	lent := frames.Get().(*[]byte)
	defer giveBack(lent)
	for {
		if *lent = s.nextBatch((*lent)[:0]); len(*lent) == 0 {
			return true
		}
		s.batch, s.taken = *lent, 0
		_ = s.direct.Write(s.attempt) // who waits for the rest learns what is wrong
		s.batch = nil
		if s.taken < len(*lent) {
			s.rest = slices.Clone((*lent)[s.taken:])
			return false
		}
	}
}

// writeOnce lets the far end take of a batch what it can.
func (s *socket) writeOnce(fd uintptr) bool {
	n, _ := syscall.Write(int(fd), s.batch)
	s.taken = max(n, 0)
	return true
}

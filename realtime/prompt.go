package realtime

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// maxRest bounds the bytes that a promptConn keeps: one event, and what TLS and the library add to it.
const maxRest = 2 * maxFrame

var errRest = errors.New("too much waits to be written")

// A promptConn is a connection whose Write never waits once its handshake is over: it keeps, in order, what the far end
// does not take at once, until drain writes it and waits. It is below TLS, so that a TLS record is never written in
// part, and a goroutine that must not wait can write to the TLS connection.
type promptConn struct {
	net.Conn
	direct     syscall.RawConn    // Set once: writes without waiting; nil: everything is kept for drain
	tryWrite   func(uintptr) bool // Set once: is tryPiece
	prompt     bool               // Set once, after the handshake: Write does not wait
	holdAnswer bool               // Set once: the answer of the handshake is kept for release
	answer     []byte             // Owned by the goroutine of the handshake

	mu       sync.Mutex // held during writes that do not wait
	piece    []byte     // Guarded by mu: what Write is writing
	taken    int        // Guarded by mu: bytes of piece that the far end has taken
	rest     []byte     // Guarded by mu: what the far end did not take, for drain
	draining bool       // Guarded by mu: drain is writing, and Write only keeps
	writeEnd time.Time  // Guarded by mu: the deadline of all writing; zero: none
	err      error      // Guarded by mu: why writing has failed for good
}

func newPromptConn(conn net.Conn) *promptConn {
	c := &promptConn{Conn: conn}
	c.tryWrite = c.tryPiece
	if file, ok := conn.(syscall.Conn); ok {
		c.direct, _ = file.SyscallConn()
	}
	return c
}

// Write implements [net.Conn]. An error means that p and all later writes are lost.
func (c *promptConn) Write(p []byte) (int, error) {
	switch {
	case c.prompt:
	case c.holdAnswer:
		c.answer = append(c.answer, p...)
		return len(p), nil
	default:
		return c.Conn.Write(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	c.piece, c.taken = p, 0
	if c.direct != nil && !c.draining && len(c.rest) == 0 {
		_ = c.direct.Write(c.tryWrite) // drain finds the error, as it writes the rest
	}
	c.piece = nil
	if rest := p[c.taken:]; len(rest) > 0 {
		if len(c.rest) > 0 && len(c.rest)+len(rest) > maxRest {
			c.err = errRest
			return 0, c.err
		}
		c.rest = append(c.rest, rest...)
	}
	return len(p), nil
}

// release writes the answer of the handshake. An error shows when the connection is read.
func (c *promptConn) release() { _, _ = c.Conn.Write(c.answer) }

// tryPiece writes as much of piece as the far end takes at once.
func (c *promptConn) tryPiece(fd uintptr) bool {
	n, _ := syscall.Write(int(fd), c.piece)
	c.taken = max(n, 0)
	return true
}

// pending reports whether anything is kept or being drained, or writing has failed: then drain has to end it.
func (c *promptConn) pending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.draining || len(c.rest) > 0 || c.err != nil
}

// drain writes what was kept and waits for it, for each write at most patience. It must not be called concurrently.
func (c *promptConn) drain(patience time.Duration) error {
	piece, err := c.next(patience, nil)
	for piece != nil {
		_, err = c.Conn.Write(piece)
		piece, err = c.next(patience, err)
	}
	return err
}

// next takes what was kept and sets the deadline for writing it; nil: nothing is left, or writing failed.
func (c *promptConn) next(patience time.Duration, failed error) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = failed
	}
	piece, until := c.rest, c.writeEnd
	if c.draining = c.err == nil && len(piece) > 0; !c.draining {
		piece = nil
	} else if until.IsZero() {
		until = time.Now().Add(patience)
	}
	c.rest = nil
	_ = c.SetWriteDeadline(until) // zero once nothing is left: with an old one no direct write succeeds
	return piece, c.err
}

// endWritesAt sets the deadline of all writing, also of a write that waits now.
func (c *promptConn) endWritesAt(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeEnd = until
	_ = c.SetWriteDeadline(until)
}

// A hijacker is a ResponseWriter whose Hijack returns a promptConn.
type hijacker struct {
	http.ResponseWriter
	holdAnswer bool        // Set once: see [promptConn]
	conn       *promptConn // Set once, by Hijack
}

// Hijack implements [http.Hijacker].
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.conn = newPromptConn(conn)
	h.conn.holdAnswer = h.holdAnswer
	return h.conn, buffers, nil
}

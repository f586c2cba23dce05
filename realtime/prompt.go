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

// maxRest bounds what a promptConn keeps, in bytes: one event, and what TLS and the library add to it.
const maxRest = 2 * maxFrame

var errRest = errors.New("too much waits to be written")

// A promptConn is a connection whose Write never waits once its handshake is over: what the far end does not take at
// once is kept, in order, until somebody waits for it in drain. It stands below TLS, which so puts its records through
// whole and can be written to by who must not wait.
type promptConn struct {
	net.Conn
	direct syscall.RawConn    // Set once: writes without waiting; nil: nothing does, all is kept
	try    func(uintptr) bool // Set once: writes piece
	prompt bool               // Set once, after the handshake, which waits and is alone
	holds  bool               // Set once: the handshake's answer waits for release
	answer []byte             // Owned by who shakes hands: what waits so

	mu    sync.Mutex // held over a write that does not wait
	piece []byte     // Guarded by mu: what Write writes now
	taken int        // Guarded by mu: bytes of piece that the far end has taken
	rest  []byte     // Guarded by mu: what it did not take, for drain
	waits bool       // Guarded by mu: somebody writes in drain, and what comes meanwhile is kept
	until time.Time  // Guarded by mu: when writing ends; zero: nothing ends yet
	err   error      // Guarded by mu: why nothing is written any more
}

func newPromptConn(conn net.Conn) *promptConn {
	c := &promptConn{Conn: conn}
	c.try = c.tryPiece
	if file, ok := conn.(syscall.Conn); ok {
		c.direct, _ = file.SyscallConn()
	}
	return c
}

// Write implements [net.Conn]. An error means that p is lost, and all that comes after it.
func (c *promptConn) Write(p []byte) (int, error) {
	switch {
	case c.prompt:
	case c.holds:
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
	if c.direct != nil && !c.waits && len(c.rest) == 0 {
		_ = c.direct.Write(c.try) // who waits for the rest learns what is wrong
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

// release writes the handshake's answer. That the far end has gone shows when somebody reads.
func (c *promptConn) release() { _, _ = c.Conn.Write(c.answer) }

// tryPiece lets the far end take of a piece what it can.
func (c *promptConn) tryPiece(fd uintptr) bool {
	n, _ := syscall.Write(int(fd), c.piece)
	c.taken = max(n, 0)
	return true
}

// pending reports whether something was kept that has not been written.
func (c *promptConn) pending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waits || len(c.rest) > 0 || c.err != nil
}

// drain writes what was kept, and waits for it, for each write as long as patience says. One at a time does.
func (c *promptConn) drain(patience time.Duration) error {
	piece, err := c.next(patience, nil)
	for piece != nil {
		_, err = c.Conn.Write(piece)
		piece, err = c.next(patience, err)
	}
	return err
}

// next takes what was kept and bounds the time for it; or nil, where nothing is left or writing failed.
func (c *promptConn) next(patience time.Duration, failed error) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = failed
	}
	piece, until := c.rest, c.until
	if c.waits = c.err == nil && len(piece) > 0; !c.waits {
		piece = nil
	} else if until.IsZero() {
		until = time.Now().Add(patience)
	}
	c.rest = nil
	_ = c.SetWriteDeadline(until) // none is left behind: Write would find it in its way
	return piece, c.err
}

// hurry ends all writing at a time, also one that waits now.
func (c *promptConn) hurry(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = until
	_ = c.SetWriteDeadline(until)
}

// A hijacker gives an upgrade a connection that is prompt.
type hijacker struct {
	http.ResponseWriter
	holds bool        // Set once: what the upgrade answers waits for the connection's release
	conn  *promptConn // set by Hijack
}

// Hijack implements [http.Hijacker].
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.conn = newPromptConn(conn)
	h.conn.holds = h.holds
	return h.conn, buffers, nil
}

package handoff

import (
	"errors"
	"net"
)

// MaxHandshake bounds a server's answer to the handshake of a WebSocket, in bytes: TLS, status and headers.
const MaxHandshake = 64 << 10

// ErrLongHandshake ends a handshake whose answer is longer than [MaxHandshake].
var ErrLongHandshake = errors.New("the answer to the handshake is too long")

// A Handshake is a connection from which at most [MaxHandshake] bytes can be read until Done is called.
type Handshake struct {
	net.Conn      // Set once
	read     int  // Owned by the reader: bytes so far
	done     bool // Owned by the reader
}

// Done lifts the bound. The reader of the connection calls it.
func (h *Handshake) Done() { h.done = true }

// Read implements [net.Conn].
func (h *Handshake) Read(p []byte) (int, error) {
	switch {
	case h.done:
		return h.Conn.Read(p)
	case h.read == MaxHandshake:
		return 0, ErrLongHandshake
	}
	n, err := h.Conn.Read(p[:min(len(p), MaxHandshake-h.read)])
	h.read += n
	return n, err
}

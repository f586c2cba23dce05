package realtime

import (
	"context"
	"errors"
	"net"
)

// maxHead bounds what the model's server may answer to the handshake, in bytes; its TLS is in it, too.
const maxHead = 64 << 10

// errLongHead ends a handshake whose answer is too long.
var errLongHead = errors.New("the answer to the handshake is too long")

// A headConn reads at most maxHead bytes, and without a bound once the handshake is over.
type headConn struct {
	*promptConn
	left int // bytes; -1: no bound. Owned by who reads
}

// dialHead connects for a handshake.
func dialHead(ctx context.Context, network, address string) (*headConn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &headConn{newPromptConn(conn), maxHead}, nil
}

func (c *headConn) Read(p []byte) (int, error) {
	switch {
	case c.left < 0:
		return c.promptConn.Read(p)
	case c.left == 0:
		return 0, errLongHead
	}
	n, err := c.promptConn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

package transport

import (
	"net"
	"syscall"
)

// ackingConn acknowledges TCP segments at once. The app-server leaves Nagle's algorithm on, so a delayed
// acknowledgement would hold back its next small frame by 40 ms. The kernel resets the option, so it is set again
// after each read.
type ackingConn struct {
	*net.TCPConn
	raw syscall.RawConn // Set once
}

// quickAck returns an ackingConn for a TCP connection, and any other connection unchanged.
func quickAck(conn net.Conn) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return conn
	}
	c := &ackingConn{tcp, raw}
	c.arm()
	return c
}

// Read implements [net.Conn].
func (c *ackingConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	c.arm()
	return n, err
}

// arm sets the option. An error is ignored: it costs only time.
func (c *ackingConn) arm() {
	_ = c.raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 1)
	})
}

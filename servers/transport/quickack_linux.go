package transport

import (
	"net"
	"syscall"
)

// ackingConn acknowledges at once what it reads. The app-server leaves Nagle's algorithm on, so that a
// delayed acknowledgement holds its next small frame back by 40 ms. The kernel forgets the setting, so it
// is made again after each read.
type ackingConn struct {
	*net.TCPConn
	raw syscall.RawConn // Set once
}

// quickAck wraps a TCP connection; anything else stays as it is.
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

// Read reads and acknowledges.
func (c *ackingConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	c.arm()
	return n, err
}

// arm is a wish: a kernel that refuses it costs only time.
func (c *ackingConn) arm() {
	_ = c.raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 1)
	})
}

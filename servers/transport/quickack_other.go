//go:build !linux

package transport

import "net"

// quickAck returns the connection unchanged: this system has no TCP_QUICKACK.
func quickAck(conn net.Conn) net.Conn { return conn }

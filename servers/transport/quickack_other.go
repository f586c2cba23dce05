//go:build !linux

package transport

import "net"

// quickAck does nothing where TCP_QUICKACK does not exist.
func quickAck(conn net.Conn) net.Conn { return conn }

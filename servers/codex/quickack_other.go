//go:build !linux

package codex

import "net"

// quickAck does nothing where TCP_QUICKACK does not exist.
func quickAck(conn net.Conn) net.Conn { return conn }

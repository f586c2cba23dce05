package sessionstest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
)

// Loopback ports for programs. The kernel gives those from 32768 on to whoever asks for any: one of them may belong to
// another test before its program has taken it, and a client that dials one at which nobody listens may be given that
// very port and connect to itself.
const firstPort, portsEnd = 20000, 32768

// portsGiven counts them. Each process begins at a port of its own, since those of other packages look too.
var (
	portsGiven atomic.Int64
	portsStart = rand.Int64N(portsEnd - firstPort)
)

// FreePort returns a loopback port that nobody uses now and that is given once. The nine after it are not given either.
func FreePort(t testing.TB) int {
	t.Helper()
	for range (portsEnd - firstPort) / 10 {
		port := firstPort + int((portsStart+10*portsGiven.Add(1))%(portsEnd-firstPort-10))
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no loopback port is free")
	return 0
}

package web

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// Bounds of open connections. A browser opens at most six to a host; a backend has one for each call by
// WebSocket.
const (
	maxConnections = 1024
	maxFromAddress = 256
)

// refusedEvery is how often refused connections are logged.
const refusedEvery = time.Minute

// A Listener refuses connections beyond its bounds: it closes them at once. It is safe for concurrent use.
type Listener struct {
	net.Listener
	proxies     []netip.Prefix // Set once
	log         *zap.Logger    // Set once
	most        int            // Set once: in all
	mostFromOne int            // Set once: from one address

	mu      sync.Mutex
	open    int                // Guarded by mu
	from    map[netip.Addr]int // Guarded by mu: only addresses that are counted apart
	refused uint64             // Guarded by mu
	told    time.Time          // Guarded by mu: when the log last said so
}

// Limit bounds the connections of a listener, in all and from one address: an IPv4 address, or an IPv6
// network of 64 bits. This machine and the proxies count in all alone, because behind them is everybody.
func Limit(l net.Listener, proxies []netip.Prefix, log *zap.Logger) *Listener {
	return &Listener{Listener: l, proxies: proxies, log: log, most: maxConnections, mostFromOne: maxFromAddress, from: map[netip.Addr]int{}}
}

// Accept implements [net.Listener].
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		at := l.address(c.RemoteAddr())
		if l.enter(at) {
			return &limitedConn{Conn: c, leave: sync.OnceFunc(func() { l.leave(at) })}, nil
		}
		_ = c.Close() // nobody is told: that would take the time of one who reads
	}
}

// address is what a connection is counted under; the zero address is not counted apart.
func (l *Listener) address(a net.Addr) netip.Addr {
	peer, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	addr := peer.Addr().Unmap().WithZone("")
	if addr.IsLoopback() || within(l.proxies, addr) {
		return netip.Addr{}
	}
	if addr.Is6() {
		network, _ := addr.Prefix(64) // 64 bits are always there
		return network.Addr()
	}
	return addr
}

func (l *Listener) enter(at netip.Addr) bool {
	l.mu.Lock()
	if l.open < l.most && (!at.IsValid() || l.from[at] < l.mostFromOne) {
		l.open++
		if at.IsValid() {
			l.from[at]++
		}
		l.mu.Unlock()
		return true
	}
	l.refused++
	refused, now := l.refused, time.Now()
	tell := now.Sub(l.told) >= refusedEvery
	if tell {
		l.told = now
	}
	l.mu.Unlock()
	if tell {
		l.log.Warn("connections refused, too many are open", zap.Uint64("so_far", refused), zap.Stringer("address", at))
	}
	return false
}

func (l *Listener) leave(at netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if !at.IsValid() {
		return
	}
	if l.from[at]--; l.from[at] == 0 {
		delete(l.from, at)
	}
}

// A limitedConn gives its place back when it is closed.
type limitedConn struct {
	net.Conn
	leave func() // Set once; the first call counts
}

// SyscallConn implements [syscall.Conn], for who writes without waiting.
func (c *limitedConn) SyscallConn() (syscall.RawConn, error) {
	if conn, ok := c.Conn.(syscall.Conn); ok {
		return conn.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

func (c *limitedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

package web

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
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

// A Listener bounds the connections that are open. When there are too many, the one that has waited longest for its
// next request is closed for a new one; when none waits, the new one is closed at once. It knows which of them wait if
// its connections are served by [Server.HTTPServer]. It is safe for concurrent use.
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
	evicted uint64             // Guarded by mu
	told    time.Time          // Guarded by mu: when the log last said so

	waiting map[*limitedConn]time.Time // Guarded by mu: connections without a request, and since when
}

// Limit bounds the connections of a listener, in all and from one address: an IPv4 address, or an IPv6
// network of 64 bits. This machine and the proxies count in all alone, because behind them is everybody.
func Limit(l net.Listener, proxies []netip.Prefix, log *zap.Logger) *Listener {
	return &Listener{
		Listener: l, proxies: proxies, log: log, most: maxConnections, mostFromOne: maxFromAddress,
		from: map[netip.Addr]int{}, waiting: map[*limitedConn]time.Time{},
	}
}

// Accept implements [net.Listener].
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		limited := &limitedConn{Conn: c, of: l, at: l.address(c.RemoteAddr())}
		if l.enter(limited.at) || l.evict(limited.at) && l.enter(limited.at) {
			return limited, nil
		}
		l.refuse(limited.at)
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

// enter counts a connection, unless there are too many.
func (l *Listener) enter(at netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most || l.crowdedLocked(at) {
		return false
	}
	l.open++
	if at.IsValid() {
		l.from[at]++
	}
	return true
}

// crowdedLocked reports whether as many connections come from an address as may.
func (l *Listener) crowdedLocked(at netip.Addr) bool {
	return at.IsValid() && l.from[at] >= l.mostFromOne
}

// evict closes the connection that has waited longest for a request, and reports whether there was one. Where an
// address has too many connections, it is one of those.
func (l *Listener) evict(at netip.Addr) bool {
	l.mu.Lock()
	crowded := l.crowdedLocked(at)
	var oldest *limitedConn
	for c, since := range l.waiting {
		if (!crowded || c.at == at) && (oldest == nil || since.Before(l.waiting[oldest])) {
			oldest = c
		}
	}
	if oldest != nil {
		delete(l.waiting, oldest)
		l.evicted++
	}
	l.mu.Unlock()
	if oldest == nil {
		return false
	}
	_ = oldest.Close() // it is gone either way
	return true
}

// refuse counts a connection that is refused, and logs it now and then.
func (l *Listener) refuse(at netip.Addr) {
	l.mu.Lock()
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

// A limitedConn is a connection that a [Listener] counts until it is closed.
type limitedConn struct {
	net.Conn
	of    *Listener   // Set once
	at    netip.Addr  // Set once: what it is counted under
	known atomic.Bool // a request with a key or a login came by it
	left  sync.Once   // gives its place back
	limit *time.Timer // Guarded by of.mu: closes it while only strangers asked by it; nil: none yet
}

// limitedKey is where a request says which connection it came by.
type limitedKey struct{}

// limitedOf returns the connection that a [Listener] counts, or nil.
func limitedOf(c net.Conn) *limitedConn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	limited, _ := c.(*limitedConn)
	return limited
}

// watch lets a server tell which connections wait for a request. One by which only strangers asked is closed when it
// has waited this long.
func watch(h *http.Server, unkeyed time.Duration) {
	h.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, limitedKey{}, limitedOf(c))
	}
	h.ConnState = func(c net.Conn, state http.ConnState) {
		if limited := limitedOf(c); limited != nil {
			limited.becomes(state, unkeyed)
		}
	}
}

// recognized notes that the sender of a request has a key or a login.
func recognized(r *http.Request) {
	if c, _ := r.Context().Value(limitedKey{}).(*limitedConn); c != nil {
		c.known.Store(true)
	}
}

func (c *limitedConn) becomes(state http.ConnState, unkeyed time.Duration) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.limit != nil {
		c.limit.Stop()
	}
	if state != http.StateNew && state != http.StateIdle {
		delete(c.of.waiting, c)
		return
	}
	c.of.waiting[c] = time.Now()
	if state == http.StateNew || c.known.Load() { // before its first request the deadline of a head holds
		return
	}
	if c.limit == nil {
		c.limit = time.AfterFunc(unkeyed, func() {
			c.of.mu.Lock()
			since, waits := c.of.waiting[c]
			c.of.mu.Unlock()
			if waits && time.Since(since) >= unkeyed {
				_ = c.Close() // it is gone either way
			}
		})
	} else {
		c.limit.Reset(unkeyed)
	}
}

// SyscallConn implements [syscall.Conn], for who writes without waiting.
func (c *limitedConn) SyscallConn() (syscall.RawConn, error) {
	if conn, ok := c.Conn.(syscall.Conn); ok {
		return conn.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

func (c *limitedConn) Close() error {
	c.left.Do(func() { c.of.leave(c.at) })
	return c.Conn.Close()
}

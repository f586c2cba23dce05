package web

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// Bounds of the open connections of strangers: connections without a request with a key or a login so far. A browser
// opens at most six connections to a host.
const (
	maxStrangers   = 1024
	maxFromAddress = 256
)

// mostConnections returns how many connections a listener may have open: a quarter of the process's limit of open
// files, which Go raises as far as it can. Each call also needs one or more connections to its model, and an instance
// with peers has two listeners.
func mostConnections() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return maxStrangers
	}
	return int(min(files.Cur, 1<<20)) / 4
}

// refusedEvery is the least time between two log lines about refused connections.
const refusedEvery = time.Minute

// A Listener bounds the open connections, and those of strangers more tightly. When there are too many, it closes
// another one in favour of a new one: the oldest that has shown no key, whatever it does, or else the one with a key
// that has waited longest for its next request. If there is none, it closes the new one at once. [Server.HTTPServer]
// tells it what connections do. It is safe for concurrent use.
type Listener struct {
	net.Listener
	proxies       []netip.Prefix // Set once
	log           *zap.Logger    // Set once
	most          int            // Set once: the most connections
	mostStrangers int            // Set once: the most connections of strangers
	mostFromOne   int            // Set once: the most connections of strangers from one address

	mu        sync.Mutex
	open      int                // Guarded by mu
	strangers int                // Guarded by mu: the sum of from
	from      map[netip.Addr]int // Guarded by mu: connections of strangers by address; see address
	refused   uint64             // Guarded by mu
	evicted   uint64             // Guarded by mu
	logged    time.Time          // Guarded by mu: when a refusal was last logged

	// Guarded by mu: connections that may be closed for others, and since when they wait: those without a current
	// request, and those of strangers with one.
	waiting map[*limitedConn]time.Time
}

// Limit bounds the connections of a listener, and those of strangers also for each address; see [strangerAt].
func Limit(l net.Listener, proxies []netip.Prefix, log *zap.Logger) *Listener {
	most := mostConnections()
	log.Info("connections are bounded", zap.Int("most", most))
	return &Listener{
		Listener: l, proxies: proxies, log: log, most: most, mostStrangers: maxStrangers, mostFromOne: maxFromAddress,
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
		if l.enter(limited) || l.evict(limited.at) && l.enter(limited) {
			return limited, nil
		}
		l.refuse(limited.at)
		_ = c.Close() // without an answer, because writing one could block Accept
	}
}

// address returns the address under which a connection counts; the zero address if it counts only to the whole.
func (l *Listener) address(a net.Addr) netip.Addr {
	peer, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return strangerAt(peer.Addr(), l.proxies)
}

// strangerAt returns the address under which a stranger counts: an IPv4 address, or an IPv6 network of 64 bits; the
// zero address for this machine and the proxies, because everybody may be behind them.
func strangerAt(addr netip.Addr, proxies []netip.Prefix) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if addr.IsLoopback() || within(proxies, addr) {
		return netip.Addr{}
	}
	if addr.Is6() {
		network, _ := addr.Prefix(64) // never fails for IPv6
		return network.Addr()
	}
	return addr
}

// enter counts a new connection, a stranger's. It reports false if there are too many.
func (l *Listener) enter(c *limitedConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	there, inAll := l.crowdedLocked(c.at)
	if there || inAll || l.open >= l.most {
		return false
	}
	l.open++
	l.countLocked(c.at, 1)
	return true
}

// countLocked adds n to the connections of strangers.
func (l *Listener) countLocked(at netip.Addr, n int) {
	if !at.IsValid() {
		return
	}
	l.strangers += n
	if l.from[at] += n; l.from[at] == 0 {
		delete(l.from, at)
	}
}

// crowdedLocked reports whether the bounds of strangers' connections are reached, for an address and for the whole.
func (l *Listener) crowdedLocked(at netip.Addr) (there, inAll bool) {
	return at.IsValid() && l.from[at] >= l.mostFromOne, at.IsValid() && l.strangers >= l.mostStrangers
}

// evict closes the connection that has to go first, and reports whether there was one. If there are too many strangers,
// in all or from an address, it closes one of those.
func (l *Listener) evict(at netip.Addr) bool {
	l.mu.Lock()
	there, inAll := l.crowdedLocked(at)
	var oldest *limitedConn
	for c, since := range l.waiting {
		stranger := c.at.IsValid() && !c.known
		if there && (c.at != at || !stranger) || inAll && !stranger {
			continue
		}
		if oldest == nil || oldest.known && !c.known ||
			oldest.known == c.known && since.Before(l.waiting[oldest]) {
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
	_ = oldest.Close()
	return true
}

// refuse counts a refused connection, and logs it at most every [refusedEvery].
func (l *Listener) refuse(at netip.Addr) {
	l.mu.Lock()
	l.refused++
	refused, now := l.refused, time.Now()
	due := now.Sub(l.logged) >= refusedEvery
	if due {
		l.logged = now
	}
	l.mu.Unlock()
	if due {
		l.log.Warn("connections refused, too many are open", zap.Uint64("so_far", refused), zap.Stringer("address", at))
	}
}

// leave stops counting a connection. Later calls do nothing.
func (l *Listener) leave(c *limitedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	l.open--
	if !c.known {
		l.countLocked(c.at, -1)
	}
}

// markKnown records that a connection is not a stranger's.
func (l *Listener) markKnown(c *limitedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.known || c.closed {
		return
	}
	c.known = true
	delete(l.waiting, c) // it has a request
	l.countLocked(c.at, -1)
}

// A limitedConn is a connection that a [Listener] counts until it is closed.
type limitedConn struct {
	net.Conn
	of     *Listener   // Set once
	at     netip.Addr  // Set once: see [Listener.address]
	known  bool        // Guarded by of.mu: it has had a request with a key or a login
	closed bool        // Guarded by of.mu: it no longer counts
	idle   bool        // Guarded by of.mu: it has no request
	limit  *time.Timer // Guarded by of.mu: closes it if it waits too long and is not known; nil: not started yet
}

// limitedKey is the context key of a request's connection.
type limitedKey struct{}

// limitedOf returns the connection as a [Listener] counts it, or nil.
func limitedOf(c net.Conn) *limitedConn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	limited, _ := c.(*limitedConn)
	return limited
}

// watch makes a server report which connections wait for a request. A stranger's connection that has had a request is
// closed when it has waited for unkeyed.
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

// markKnown records that the connection of a request is not a stranger's.
func markKnown(r *http.Request) {
	if c, _ := r.Context().Value(limitedKey{}).(*limitedConn); c != nil {
		c.of.markKnown(c)
	}
}

// becomes records the new state of a connection.
func (c *limitedConn) becomes(state http.ConnState, unkeyed time.Duration) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.limit != nil {
		c.limit.Stop()
	}
	c.idle = state == http.StateNew || state == http.StateIdle
	if !c.idle {
		if c.known || state != http.StateActive {
			delete(c.of.waiting, c)
		}
		return
	}
	c.of.waiting[c] = time.Now()
	if state == http.StateNew || c.known { // the deadline of the header bounds the wait for the first request
		return
	}
	if c.limit == nil {
		c.limit = time.AfterFunc(unkeyed, func() {
			c.of.mu.Lock()
			over := c.idle && !c.known && time.Since(c.of.waiting[c]) >= unkeyed
			c.of.mu.Unlock()
			if over {
				_ = c.Close()
			}
		})
	} else {
		c.limit.Reset(unkeyed)
	}
}

// SyscallConn implements [syscall.Conn], for code that writes without blocking.
func (c *limitedConn) SyscallConn() (syscall.RawConn, error) {
	if conn, ok := c.Conn.(syscall.Conn); ok {
		return conn.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// Close implements [net.Conn].
func (c *limitedConn) Close() error {
	c.of.leave(c)
	return c.Conn.Close()
}

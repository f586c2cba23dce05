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

// Bounds of open connections of strangers: those by which nobody has come with a key or a login so far. A browser opens
// at most six to a host.
const (
	maxStrangers   = 1024
	maxFromAddress = 256
)

// mostConnections is how many connections a listener has open: a quarter of the files that this process may have open,
// of which Go takes as many as the system gives. A call has one of its client and one or more of its model, and one of
// several instances has two listeners.
func mostConnections() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return maxStrangers
	}
	return int(min(files.Cur, 1<<20)) / 4
}

// refusedEvery is how often refused connections are logged.
const refusedEvery = time.Minute

// A Listener bounds the connections that are open, and more tightly those of strangers. When there are too many, the
// one that has waited longest for its next request is closed for a new one; when none waits, the new one is closed at
// once. It knows which of them wait if its connections are served by [Server.HTTPServer]. It is safe for concurrent
// use.
type Listener struct {
	net.Listener
	proxies       []netip.Prefix // Set once
	log           *zap.Logger    // Set once
	most          int            // Set once: in all
	mostStrangers int            // Set once: of strangers
	mostFromOne   int            // Set once: of strangers from one address

	mu        sync.Mutex
	open      int                // Guarded by mu
	strangers int                // Guarded by mu: the sum of from
	from      map[netip.Addr]int // Guarded by mu: of strangers; only addresses that are counted apart
	refused   uint64             // Guarded by mu
	evicted   uint64             // Guarded by mu
	told      time.Time          // Guarded by mu: when the log last said so

	waiting map[*limitedConn]time.Time // Guarded by mu: connections without a request, and since when
}

// Limit bounds the connections of a listener in all, and those of strangers also from one address: an IPv4 address, or
// an IPv6 network of 64 bits. This machine and the proxies count in all alone, because behind them is everybody.
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

// enter counts a connection, which is a stranger's, unless there are too many.
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

// countLocked counts strangers who come or go.
func (l *Listener) countLocked(at netip.Addr, n int) {
	if !at.IsValid() {
		return
	}
	l.strangers += n
	if l.from[at] += n; l.from[at] == 0 {
		delete(l.from, at)
	}
}

// crowdedLocked reports whether there are as many strangers as may be: from an address, or in all.
func (l *Listener) crowdedLocked(at netip.Addr) (there, inAll bool) {
	return at.IsValid() && l.from[at] >= l.mostFromOne, at.IsValid() && l.strangers >= l.mostStrangers
}

// evict closes the connection that has waited longest for a request, and reports whether there was one. Where there are
// too many strangers, in all or from an address, it is one of those.
func (l *Listener) evict(at netip.Addr) bool {
	l.mu.Lock()
	there, inAll := l.crowdedLocked(at)
	var oldest *limitedConn
	for c, since := range l.waiting {
		stranger := c.at.IsValid() && !c.known
		if there && (c.at != at || !stranger) || inAll && !stranger {
			continue
		}
		if oldest == nil || since.Before(l.waiting[oldest]) {
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

// leave gives the place of a connection back, once.
func (l *Listener) leave(c *limitedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.left {
		return
	}
	c.left = true
	l.open--
	if !c.known {
		l.countLocked(c.at, -1)
	}
}

// recognize notes that a connection is no stranger's.
func (l *Listener) recognize(c *limitedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.known || c.left {
		return
	}
	c.known = true
	l.countLocked(c.at, -1)
}

// A limitedConn is a connection that a [Listener] counts until it is closed.
type limitedConn struct {
	net.Conn
	of    *Listener   // Set once
	at    netip.Addr  // Set once: what it is counted under
	known bool        // Guarded by of.mu: a request with a key or a login came by it
	left  bool        // Guarded by of.mu: it is counted no more
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
		c.of.recognize(c)
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
	if state == http.StateNew || c.known { // before its first request the deadline of a head holds
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
	c.of.leave(c)
	return c.Conn.Close()
}

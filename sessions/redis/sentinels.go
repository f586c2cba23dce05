package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// sentinelWithin bounds how long the Sentinels are asked which Redis counts, and sentinelMore how long the others are
// waited for once more than half have answered: the machine of one may have gone with the Redis.
const (
	sentinelWithin = 500 * time.Millisecond
	sentinelMore   = 100 * time.Millisecond
)

// sentinels find the Redis that counts. After a failover the former one may be there again, as a master of its own, and
// a Sentinel that missed the failover still names it. So more than half of the Sentinels have to answer, the newest
// failover that one of them knows decides, and none may be deciding another one.
type sentinels struct {
	name  string                                                        // Set once; the Redis as they call it
	asked []*goredis.SentinelClient                                     // Set once
	dial  func(_ context.Context, network, at string) (net.Conn, error) // Set once

	mu   sync.Mutex
	at   string                // Guarded by mu; the Redis that was last agreed on
	open map[net.Conn]struct{} // Guarded by mu; all are to that one
}

func newSentinels(o *goredis.FailoverOptions) *sentinels {
	s := &sentinels{name: o.MasterName, open: map[net.Conn]struct{}{}}
	for _, at := range o.SentinelAddrs {
		s.asked = append(s.asked, goredis.NewSentinelClient(options(&goredis.Options{
			Addr: at, Username: o.SentinelUsername, Password: o.SentinelPassword, TLSConfig: o.TLSConfig,
			ClientName: o.ClientName,
		})))
	}
	s.dial = goredis.NewDialer(&goredis.Options{DialTimeout: dialWithin, TLSConfig: o.TLSConfig})
	return s
}

// options returns the options of a client of the Redis that counts.
func (s *sentinels) options(o *goredis.FailoverOptions) *goredis.Options {
	return options(&goredis.Options{
		Addr: o.MasterName, Username: o.Username, Password: o.Password, DB: o.DB, ClientName: o.ClientName, Dialer: s.connect,
		MinIdleConns: o.MinIdleConns, MaxIdleConns: o.MaxIdleConns, MaxActiveConns: o.MaxActiveConns,
		ConnMaxIdleTime: o.ConnMaxIdleTime, ConnMaxLifetime: o.ConnMaxLifetime,
	})
}

// close closes the connections to the Sentinels.
func (s *sentinels) close() {
	for _, one := range s.asked {
		_ = one.Close() // nothing is written there
	}
}

// A view is what a Sentinel says of a Redis.
type view struct {
	at       string // host:port
	epoch    int64  // of the failover that made it count; a newer one has a greater number
	deciding bool   // a failover is under way, and what it comes to is not known yet
	err      error
}

// view asks a Sentinel. The address comes first: if a failover ends in between, it still counts as under way.
func (s *sentinels) view(ctx context.Context, one *goredis.SentinelClient) view {
	at, err := one.GetMasterAddrByName(ctx, s.name).Result()
	if err == nil && len(at) != 2 {
		err = unexpected("Sentinel")
	}
	if err != nil {
		return view{err: err}
	}
	says, err := one.Master(ctx, s.name).Result()
	if err != nil {
		return view{err: err}
	}
	epoch, err := strconv.ParseInt(says["config-epoch"], 10, 64)
	return view{net.JoinHostPort(at[0], at[1]), epoch,
		strings.Contains(says["flags"], "failover_in_progress") && at[0] == says["ip"] && at[1] == says["port"], err}
}

// agreed returns the address of the Redis that counts.
func (s *sentinels) agreed(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, sentinelWithin)
	defer cancel()
	views := make(chan view, len(s.asked))
	for _, one := range s.asked {
		go func() { views <- s.view(ctx, one) }()
	}
	var all []view
	var enough <-chan time.Time
	for well := 0; len(all) < len(s.asked); {
		select {
		case v := <-views:
			all = append(all, v)
			if v.err == nil {
				well++
			}
			if enough == nil && 2*well > len(s.asked) {
				enough = time.After(sentinelMore)
			}
			continue
		case <-enough:
		}
		break
	}
	return newest(all, len(s.asked))
}

// newest returns the address that the newest failover has decided, by the views of some of a number of Sentinels.
func newest(all []view, of int) (string, error) {
	var errs []error
	last := view{epoch: -1}
	for _, v := range all {
		switch {
		case v.err != nil:
			errs = append(errs, v.err)
		case v.epoch > last.epoch, v.epoch == last.epoch && v.deciding:
			last = v
		}
	}
	switch n := len(all) - len(errs); {
	case n == 0:
		return "", errors.Join(errs...)
	case 2*n <= of: // the text alone: what one of them refuses is no refusal of all
		return "", fmt.Errorf("only %d of %d Sentinels say which Redis counts: %v", n, of, errors.Join(errs...))
	case last.deciding:
		return "", errors.New("the Sentinels are replacing the Redis")
	}
	return last.at, nil
}

// connect connects to the Redis that counts. It asks again once it is connected: while it waited, the one that had been
// named may have been replaced, and have come back.
func (s *sentinels) connect(ctx context.Context, network, _ string) (net.Conn, error) {
	at, err := s.agreed(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := s.dial(ctx, network, at)
	if err != nil {
		return nil, err
	}
	if again, err := s.agreed(ctx); err != nil || again != at {
		return nil, errors.Join(errors.New("the Sentinels have replaced the Redis"), err, conn.Close())
	}
	s.moved(at, conn)
	closed := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, conn)
	}
	if tcp, ok := conn.(*net.TCPConn); ok { // the client looks into these whether they are still open
		return &plainConn{tcp, closed}, nil
	}
	return &otherConn{conn, closed}, nil
}

// moved notes which Redis counts, with another connection to it if there is one, and closes those to a former one.
func (s *sentinels) moved(at string, one net.Conn) {
	s.mu.Lock()
	var former map[net.Conn]struct{}
	if s.at != at {
		s.at, former, s.open = at, s.open, map[net.Conn]struct{}{}
	}
	if one != nil {
		s.open[one] = struct{}{}
	}
	s.mu.Unlock()
	for conn := range former {
		_ = conn.Close() // whoever uses it sees an error
	}
}

// leave leaves a Redis that was replaced. Without Sentinels, and while they do not agree, nothing is left.
func (s *sentinels) leave(ctx context.Context) {
	if s == nil {
		return
	}
	if at, err := s.agreed(ctx); err == nil {
		s.moved(at, nil)
	}
}

// last returns the address of the Redis that was last agreed on, to be given to still.
func (s *sentinels) last() string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// still reports whether the Redis at an address counts: what was written there while it was the last one is not lost
// by a failover that has begun.
func (s *sentinels) still(ctx context.Context, at string) bool {
	if s == nil {
		return true
	}
	now, err := s.agreed(ctx)
	return err == nil && now == at
}

// plainConn and otherConn are connections that tell when they are closed.
type (
	plainConn struct {
		*net.TCPConn
		closed func()
	}
	otherConn struct {
		net.Conn
		closed func()
	}
)

// Close implements [net.Conn].
func (c *plainConn) Close() error { c.closed(); return c.TCPConn.Close() }

// Close implements [net.Conn].
func (c *otherConn) Close() error { c.closed(); return c.Conn.Close() }

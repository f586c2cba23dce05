package redis

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"switchboard/handoff"
)

const (
	openWithin  = 3 * time.Second        // how long a Redis may take to answer when we start
	openPause   = 100 * time.Millisecond // between two tries then
	dialWithin  = 2 * time.Second
	replyWithin = 2 * time.Second // one command or script; ours take about a millisecond
	// poolSize bounds the connections. Commands beyond it wait up to replyWithin for a free one and
	// then fail: callers have a human waiting and must not queue longer.
	poolSize = 8
)

// options sets what every client of ours needs.
func options(o *goredis.Options) *goredis.Options {
	o.Protocol = 2
	o.MaxRetries = -1   // a repeated command may count twice
	o.DialerRetries = 1 // who asks wants to know now
	o.ContextTimeoutEnabled = true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = dialWithin, replyWithin, replyWithin
	o.PoolSize, o.PoolTimeout = poolSize, replyWithin
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o
}

// connect connects to the Redis of a URL.
func (s *Store) connect(ctx context.Context, url string) error {
	parsed, err := goredis.ParseURL(url)
	if err != nil { // its text may quote the password
		return handoff.Fault(handoff.CodeUnreachable, "Redis"+plainHost(url), "the URL is not one of a Redis: "+
			"write redis://[user:password@]host:port/db, and @ : / # ? in a password as %40 %3A %2F %23 %3F")
	}
	s.where = "Redis at " + parsed.Addr
	s.client = goredis.NewClient(options(parsed))
	if err := s.greet(ctx); err != nil {
		_ = s.client.Close() // nothing was written yet
		return err
	}
	return nil
}

// greet waits until the Redis answers, at most openWithin. An answer that refuses is final.
func (s *Store) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	var last error
	for {
		err := s.client.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // the error of the end of waiting tells nothing
			last = err
		}
		if !waitable(err) {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(openPause):
			continue
		}
		break
	}
	return handoff.Fault(handoff.CodeUnreachable, s.where, last.Error())
}

// waitable reports whether an error may go away by itself: everything but a refusal.
func waitable(err error) bool {
	reply, ok := errors.AsType[goredis.Error](err)
	return !ok || strings.HasPrefix(reply.Error(), "LOADING")
}

// passingWords begin refusals that tell how the Redis is now: it loads, is a replica, is full, has lost its
// replicas or its disk, or lets nobody in since its password was changed. Before version 7 they stand
// within the error of the script.
var passingWords = regexp.MustCompile(`(?:^|: -)(?:LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|OOM|MISCONF|` +
	`NOREPLICAS|BUSY|NOAUTH|WRONGPASS|NOPERM|ERR max number of clients) `)

// passing reports whether a Redis that refuses something now may take it later. What it says of a single key
// or a script stays as it is.
func passing(err error) bool {
	reply, ok := errors.AsType[goredis.Error](err)
	return ok && passingWords.MatchString(reply.Error())
}

// fault gives an error of the client as one of the vocabulary. What may go away by itself is unreachable:
// who has to write something tries again.
func (s *Store) fault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, goredis.ErrClosed):
		return handoff.Fault(handoff.CodeShutdown, "", "the store is closed")
	case waitable(err), passing(err):
		return handoff.Fault(handoff.CodeUnreachable, s.where, err.Error())
	default: // it answered, and said no
		return handoff.Fault(handoff.CodeInternal, "", s.where+" refused: "+err.Error())
	}
}

// hostPort matches what may be shown of a URL that does not parse.
var hostPort = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?$`)

// plainHost finds " at host:port" in a URL that does not parse, "" when in doubt.
func plainHost(url string) string {
	_, rest, found := strings.Cut(url, "://")
	if !found {
		return ""
	}
	rest = rest[strings.LastIndex(rest, "@")+1:]
	rest, _, _ = strings.Cut(rest, "/")
	if !hostPort.MatchString(rest) {
		return ""
	}
	return " at " + rest
}

// silence takes the client's own log lines: every error also comes back to who asked, and is told there.
type silence struct{}

// Printf implements the client's logger.
func (silence) Printf(context.Context, string, ...any) {}

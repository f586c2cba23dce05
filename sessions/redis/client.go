package redis

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/sessions"
)

const (
	openWithin  = 3 * time.Second        // how long a start waits for the first answer
	openPause   = 100 * time.Millisecond // between two tries of a start
	dialWithin  = 2 * time.Second
	replyWithin = 2 * time.Second // one command or script; ours take about a millisecond
	// poolSize bounds the connections. A command beyond it waits up to replyWithin for a free connection and then
	// fails: callers have a person waiting and must not queue longer.
	poolSize = 8
)

// An engine is the connection to the Redis of a store, with what all its subjects share.
type engine struct {
	prefix     string                  // Set once
	together   string                  // Set once; the prefix, on a Cluster as a hash tag so that its keys share a slot
	where      string                  // Set once; the Redis as errors name it, without a password
	historyFor time.Duration           // Set once; how long history is kept
	threadsFor time.Duration           // Set once; how long threads are kept
	leaseFor   time.Duration           // Set once; how long a lease lives
	within     time.Duration           // Set once; bounds a commit, and one round trip
	log        *zap.Logger             // Set once
	client     goredis.UniversalClient // Set once; closed by hangUp
	sentinels  *sentinels              // Set once; nil where none name the Redis
	lease      *lease                  // Set once; only the holder of the lease token calls tick
	id         string                  // Set once; of this life of the service
	shared     bool                    // Set once; whether several instances use the store
	homes      homeSet
	followers  followers
	counts     counters
}

// counters count failures; any goroutine may add.
type counters struct {
	renewErrors atomic.Uint64 // renewals of the lease without an answer
	leasesLost  atomic.Uint64 // leases that another process took over
	badEntries  atomic.Uint64 // unreadable entries that were left out
	unconfirmed atomic.Uint64 // writes that no replica confirmed in time
}

//go:embed *.lua
var sources embed.FS

// script returns the script made of these files, without their suffix, in this order.
func script(names ...string) *goredis.Script {
	var source []byte
	for _, name := range names {
		text, err := sources.ReadFile(name + ".lua")
		if err != nil {
			panic(err) // the files are embedded
		}
		source = append(source, text...)
	}
	return goredis.NewScript(string(source))
}

// fenced returns a script that writes data of a caller: fence.lua, then the named file.
func fenced(name string) *goredis.Script { return script("fence", name) }

// runFenced runs a script of [fenced] for the caller with a name. It fails as [engine.write] does.
func (e *engine) runFenced(ctx context.Context, name string, s *goredis.Script, keys []string, args ...any) error {
	f, err := e.fence(name)
	if err != nil {
		return err
	}
	return e.fault(s.Run(ctx, e.client, append([]string{f.newest}, keys...), append([]any{f.epoch}, args...)...).Err())
}

// A script may touch one slot of a Cluster only. The keys of one name that begin with key are in one slot, and all
// keys that begin with together are in one slot.

// key returns a key of a caller or principal; name is escaped.
func (e *engine) key(name, kind string) string { return e.prefix + ":{" + name + "}:" + kind }

// epochKey holds the epoch of the newest holder of the lease.
func (e *engine) epochKey() string { return e.together + ":epoch" }
func (e *engine) leaseKey() string { return e.together + ":holder" }

// badEntry counts and logs an unreadable entry. It is left out, since one bad entry must not hide the others.
func (e *engine) badEntry(key string) {
	e.counts.badEntries.Add(1)
	e.log.Warn("unreadable entry of the store left out", zap.String("key", key))
}

// parse decodes the entries of a key, and leaves out unreadable ones.
func parse[T any](e *engine, key string, texts ...string) []T {
	all := make([]T, 0, len(texts))
	for _, text := range texts {
		var entry T
		if json.Unmarshal([]byte(text), &entry) != nil {
			e.badEntry(key)
			continue
		}
		all = append(all, entry)
	}
	return all
}

// replied copies the list that a script returned to the places, each a *string, *int64 or *[]any. It returns false if
// length or types differ.
func replied(reply []any, into ...any) bool {
	if len(reply) != len(into) {
		return false
	}
	for i, place := range into {
		ok := false
		switch place := place.(type) {
		case *string:
			*place, ok = reply[i].(string)
		case *int64:
			*place, ok = reply[i].(int64)
		case *[]any:
			*place, ok = reply[i].([]any)
		}
		if !ok {
			return false
		}
	}
	return true
}

// unexpected is the error about a malformed reply.
func unexpected(of string) error {
	return handoff.Fault(handoff.CodeInternal, "", "unexpected reply of the "+of)
}

// elsewhere is the error of an instance that has to write for a caller whom another instance has.
func elsewhere() error {
	return handoff.Fault(handoff.CodeShutdown, "", "another Switchboard has this caller")
}

// options sets what all our clients need.
func options(o *goredis.Options) *goredis.Options {
	o.Protocol = 2
	o.MaxRetries = -1   // a repeated command may count twice
	o.DialerRetries = 1 // callers want the error at once
	o.ContextTimeoutEnabled = true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = dialWithin, replyWithin, replyWithin
	o.PoolSize, o.PoolTimeout = poolSize, replyWithin
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o
}

// errNoURL says how to write the address of a Redis. It does not quote the wrong one, which may have a password.
var errNoURL = errors.New("the URL is not one of a Redis: " +
	"write redis://[user:password@]host:port/db, and @ : / # ? in a password as %40 %3A %2F %23 %3F")

// CheckURL returns an error if [Open] cannot parse an address. It quotes nothing of it and connects to nothing.
func CheckURL(address string) error {
	var e engine
	if e.dial(address) != nil {
		return errNoURL
	}
	return e.hangUp()
}

// hangUp closes all connections.
func (e *engine) hangUp() error {
	if e.sentinels != nil {
		e.sentinels.close()
	}
	return e.client.Close()
}

// connect connects to the Redis at an address and waits for its first answer.
func (e *engine) connect(ctx context.Context, address string) error {
	if e.dial(address) != nil { // the parse error may quote the password
		return handoff.Fault(handoff.CodeUnreachable, "Redis"+plainHost(address), errNoURL.Error())
	}
	if err := e.greet(ctx); err != nil {
		_ = e.hangUp() // nothing was written yet
		return err
	}
	return nil
}

// dial makes the client for an address, without connecting yet.
func (e *engine) dial(address string) error {
	sentinels, err := goredis.ParseFailoverURL(address)
	switch {
	case err == nil && sentinels.MasterName != "":
		e.where = "Redis " + sentinels.MasterName + " of the Sentinels at " + strings.Join(sentinels.SentinelAddrs, ", ")
		e.sentinels = newSentinels(sentinels)
		e.client = goredis.NewClient(e.sentinels.options(sentinels))
	case isCluster(address):
		o, err := clusterOptions(address)
		if err != nil {
			return err
		}
		e.where, e.together = "Redis Cluster at "+strings.Join(o.Addrs, ", "), "{"+e.prefix+"}"
		c := goredis.NewClusterClient(o)
		c.OnNewNode(func(node *goredis.Client) { node.AddHook(once{cluster: c}) })
		e.client = c
	default:
		o, err := goredis.ParseURL(address)
		if err != nil {
			return err
		}
		e.where, e.client = "Redis at "+o.Addr, goredis.NewClient(options(o))
	}
	return nil
}

// greet waits at most openWithin until the Redis answers. A refusal is final.
func (e *engine) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	var last error
	for {
		err := e.client.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // the error of the deadline itself explains nothing
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
	return handoff.Fault(handoff.CodeUnreachable, e.where, last.Error())
}

// waitable reports whether an error may pass by itself: every error except a refusal.
func waitable(err error) bool {
	reply, ok := errors.AsType[goredis.Error](err)
	return !ok || strings.HasPrefix(reply.Error(), "LOADING")
}

// passingWords match the refusals that come from the present state of a Redis: it loads its data, is a replica, is
// full, has lost its replicas or its disk, is a Cluster that lacks a node or moves a slot, or refuses us since its
// password was changed. Before version 7 these words stand within the error of the script.
var passingWords = regexp.MustCompile(`(?:^|: -)(?:LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MOVED|ASK|OOM|` +
	`MISCONF|NOREPLICAS|BUSY|NOAUTH|WRONGPASS|NOPERM|ERR max number of clients) `)

// passing reports whether a refusal may pass. Refusals about a single key or a script stay.
func passing(err error) bool {
	reply, ok := errors.AsType[goredis.Error](err)
	return ok && passingWords.MatchString(reply.Error())
}

// fullWords and closedWords match the refusals of a Redis that is full, or takes no writes.
var (
	fullWords   = regexp.MustCompile(`(?:^|: -)OOM `)
	closedWords = regexp.MustCompile(`(?:^|: -)(?:READONLY|MASTERDOWN|MISCONF|NOREPLICAS|NOAUTH|WRONGPASS|NOPERM) `)
)

// whyOf returns why a Redis cannot be used, given an error that may pass.
func whyOf(err error) string {
	switch {
	case fullWords.MatchString(err.Error()):
		return handoff.WhyStoreFull
	case closedWords.MatchString(err.Error()):
		return handoff.WhyStoreClosed
	}
	return handoff.WhyStoreAway
}

// fault translates an error of the client to a handoff.Error. Errors that may pass get code unreachable, so that
// writers try again.
func (e *engine) fault(err error) error {
	if _, ours := errors.AsType[*handoff.Error](err); ours || err == nil {
		return err
	}
	switch {
	case errors.Is(err, goredis.ErrClosed):
		return handoff.Fault(handoff.CodeShutdown, "", "the store is closed")
	case goredis.HasErrorPrefix(err, "ELSEWHERE"): // the error of fence.lua
		return handoff.Fault(handoff.CodeShutdown, "", "another Switchboard has taken over "+e.where)
	case waitable(err), passing(err):
		return handoff.StoreFault(e.where, whyOf(err), err.Error())
	default: // a refusal
		return handoff.Fault(handoff.CodeInternal, "", e.where+" refused: "+err.Error())
	}
}

// hostPort matches host and port, which may be shown of a malformed URL.
var hostPort = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?$`)

// plainHost returns " at host:port" of a malformed URL, "" when in doubt.
func plainHost(address string) string {
	_, rest, found := strings.Cut(address, "://")
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

// silence drops the client's own log lines: each of its errors also reaches the caller of a command.
type silence struct{}

// Printf implements the client's logger.
func (silence) Printf(context.Context, string, ...any) {}

// OpenRecords opens the records of a Redis for a program beside the instances, whether any of them runs or not. close
// disconnects. Its errors are those of [Open].
func OpenRecords(ctx context.Context, cfg Config) (_ sessions.Records, close func(), err error) {
	s := newStore(cfg)
	if err := s.connect(ctx, cfg.URL); err != nil {
		return nil, nil, err
	}
	return s.Keyed, func() { _ = s.hangUp() }, nil // each write has been answered
}

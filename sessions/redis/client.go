package redis

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
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
	openWithin  = 3 * time.Second        // how long a Redis may take to answer when we start
	openPause   = 100 * time.Millisecond // between two tries then
	dialWithin  = 2 * time.Second
	replyWithin = 2 * time.Second // one command or script; ours take about a millisecond
	// poolSize bounds the connections. Commands beyond it wait up to replyWithin for a free one and
	// then fail: callers have a human waiting and must not queue longer.
	poolSize = 8
)

// An engine is the Redis of a store: what all subjects share.
type engine struct {
	prefix     string                  // Set once
	together   string                  // Set once; the prefix as one hash tag on a Cluster, else as it is
	where      string                  // Set once; names the Redis in errors, without a password
	historyFor time.Duration           // Set once; how long history is kept
	threadsFor time.Duration           // Set once; how long threads are
	leaseFor   time.Duration           // Set once; how long a lease lives
	within     time.Duration           // Set once; bounds one round trip of the ledger
	log        *zap.Logger             // Set once
	client     goredis.UniversalClient // Set once
	lease      *lease                  // Set once; ticked only by who holds the store's turn
	id         string                  // Set once; of this life
	shared     bool                    // Set once; other instances use the store too
	held       held
	followers  followers
	counts     counters
}

// counters count what went wrong; anybody may add.
type counters struct {
	renewErrors atomic.Uint64 // renewals of the lease that got no answer
	leasesLost  atomic.Uint64 // leases that another process took over
	badEntries  atomic.Uint64 // entries that could not be read and were left out
}

//go:embed *.lua
var sources embed.FS

// script returns a script by the names of its files.
func script(names ...string) *goredis.Script {
	var source []byte
	for _, name := range names {
		text, err := sources.ReadFile(name + ".lua")
		if err != nil {
			panic(err) // it is part of the program
		}
		source = append(source, text...)
	}
	return goredis.NewScript(string(source))
}

// fenced returns a script that writes what belongs to a caller, by the name of its file; fence.lua comes before it.
func fenced(name string) *goredis.Script { return script("fence", name) }

// runFenced runs a script of [fenced], which writes of the caller of a name. After a newer life of the service has
// begun, or another instance has the caller, it gives [handoff.CodeShutdown].
func (e *engine) runFenced(
	ctx context.Context, name string, s *goredis.Script, keys []string, args ...any,
) *goredis.Cmd {
	newest, epoch, err := e.fence(name)
	if err != nil {
		cmd := goredis.NewCmd(ctx)
		cmd.SetErr(err)
		return cmd
	}
	return e.runBehind(ctx, newest, epoch, s, keys, args...)
}

// runBehind runs a script of [fenced] in an epoch; the newest one stands under a key.
func (e *engine) runBehind(
	ctx context.Context, newest string, epoch int64, s *goredis.Script, keys []string, args ...any,
) *goredis.Cmd {
	return s.Run(ctx, e.client, append([]string{newest}, keys...), append([]any{epoch}, args...)...)
}

// A script touches one slot of a Cluster. What begins with key is in that of the name, and what begins with together is
// in one.

// key names what is kept of a caller or a principal, whose name is escaped.
func (e *engine) key(name, kind string) string { return e.prefix + ":{" + name + "}:" + kind }

// principalKey names what is kept of a principal, and written with what is found without their name.
func (e *engine) principalKey(principal, kind string) string {
	return e.together + ":{" + url.QueryEscape(principal) + "}:" + kind
}

// epochKey names the epoch of the newest holder of the lease.
func (e *engine) epochKey() string { return e.together + ":epoch" }
func (e *engine) leaseKey() string { return e.together + ":lease" }

// badEntry counts an entry that was left out: one bad entry must not hide the others.
func (e *engine) badEntry(key string) {
	e.counts.badEntries.Add(1)
	e.log.Warn("unreadable entry of the store left out", zap.String("key", key))
}

// parse reads entries that stand under a key; those that cannot be read are left out.
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

// parseOne reads the entry of a reply; false: there is none, or none that can be read.
func parseOne[T any](e *engine, key, text string, err error) (entry T, found bool, _ error) {
	if errors.Is(err, goredis.Nil) {
		return entry, false, nil
	}
	if err != nil {
		return entry, false, e.fault(err)
	}
	all := parse[T](e, key, text)
	if len(all) > 0 {
		entry = all[0]
	}
	return entry, len(all) > 0, nil
}

// replied reads the list that a script returned into the given places, each a *string, *int64 or *[]any; false when it
// is not such a list.
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

func unexpected(of string) error {
	return handoff.Fault(handoff.CodeInternal, "", "unexpected reply of the "+of)
}

// elsewhere is the error of an instance that does not have the caller of whom it is to write.
func (e *engine) elsewhere() error {
	return handoff.Fault(handoff.CodeShutdown, "", "another Switchboard has this caller")
}

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

// failoverOptions sets the same where Sentinels say which Redis it is.
func failoverOptions(o *goredis.FailoverOptions) *goredis.FailoverOptions {
	o.Protocol = 2
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.ContextTimeoutEnabled = true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = dialWithin, replyWithin, replyWithin
	o.PoolSize, o.PoolTimeout = poolSize, replyWithin
	o.DisableIdentity = true
	return o
}

// errNoURL says how the address of a Redis is written, and quotes none.
var errNoURL = errors.New("the URL is not one of a Redis: " +
	"write redis://[user:password@]host:port/db, and @ : / # ? in a password as %40 %3A %2F %23 %3F")

// CheckURL reports what is wrong with an address as [Open] takes it, without quoting it. It connects to nothing.
func CheckURL(address string) error {
	var e engine
	if e.dial(address) != nil {
		return errNoURL
	}
	return e.client.Close()
}

// connect connects to the Redis of a URL.
func (e *engine) connect(ctx context.Context, address string) error {
	if e.dial(address) != nil { // its text may quote the password
		return handoff.Fault(handoff.CodeUnreachable, "Redis"+plainHost(address), errNoURL.Error())
	}
	if err := e.greet(ctx); err != nil {
		_ = e.client.Close() // nothing was written yet
		return err
	}
	return nil
}

// dial sets what speaks to the Redis of a URL. It sends nothing yet.
func (e *engine) dial(address string) error {
	sentinels, err := goredis.ParseFailoverURL(address)
	switch {
	case err == nil && sentinels.MasterName != "":
		e.where = "Redis " + sentinels.MasterName + " of the Sentinels at " + strings.Join(sentinels.SentinelAddrs, ", ")
		e.client = goredis.NewFailoverClient(failoverOptions(sentinels))
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

// greet waits until the Redis answers, at most openWithin. An answer that refuses is final.
func (e *engine) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	var last error
	for {
		err := e.client.Ping(ctx).Err()
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
	return handoff.Fault(handoff.CodeUnreachable, e.where, last.Error())
}

// waitable reports whether an error may go away by itself: everything but a refusal.
func waitable(err error) bool {
	reply, ok := errors.AsType[goredis.Error](err)
	return !ok || strings.HasPrefix(reply.Error(), "LOADING")
}

// passingWords begin refusals that tell how the Redis is now: it loads, is a replica, is full, has lost its
// replicas or its disk, is a Cluster that lacks a node or moves a slot, or lets nobody in since its password was
// changed. Before version 7 they stand within the error of the script.
var passingWords = regexp.MustCompile(`(?:^|: -)(?:LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MOVED|ASK|OOM|` +
	`MISCONF|NOREPLICAS|BUSY|NOAUTH|WRONGPASS|NOPERM|ERR max number of clients) `)

// passing reports whether a Redis that refuses something now may take it later. What it says of a single key
// or a script stays as it is.
func passing(err error) bool {
	reply, ok := errors.AsType[goredis.Error](err)
	return ok && passingWords.MatchString(reply.Error())
}

// fault gives an error of the client as one of the vocabulary. What may go away by itself is unreachable:
// who has to write something tries again.
func (e *engine) fault(err error) error {
	if _, ours := errors.AsType[*handoff.Error](err); ours || err == nil {
		return err
	}
	switch {
	case errors.Is(err, goredis.ErrClosed):
		return handoff.Fault(handoff.CodeShutdown, "", "the store is closed")
	case goredis.HasErrorPrefix(err, "ELSEWHERE"): // of fence.lua
		return handoff.Fault(handoff.CodeShutdown, "", "another Switchboard has taken over "+e.where)
	case waitable(err), passing(err):
		return handoff.Fault(handoff.CodeUnreachable, e.where, err.Error())
	default: // it answered, and said no
		return handoff.Fault(handoff.CodeInternal, "", e.where+" refused: "+err.Error())
	}
}

// hostPort matches what may be shown of a URL that does not parse.
var hostPort = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?$`)

// plainHost finds " at host:port" in a URL that does not parse, "" when in doubt.
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

// silence takes the client's own log lines: every error also comes back to who asked, and is told there.
type silence struct{}

// Printf implements the client's logger.
func (silence) Printf(context.Context, string, ...any) {}

// Look asks a Redis whether it answers, and who holds the lease there: "host:process", or "" for nobody. It writes
// nothing. Its errors are those of [Open].
func Look(ctx context.Context, cfg Config) (holder string, err error) {
	s := newStore(cfg)
	if err := s.connect(ctx, cfg.URL); err != nil {
		return "", err
	}
	defer func() { _ = s.client.Close() }() // nothing was written
	if err := s.needsPeers(); err != nil {
		return "", err
	}
	values, err := s.client.MGet(ctx, s.leaseKey(), s.epochKey()).Result() // both, as who takes it
	if err != nil {
		return "", fmt.Errorf("read the lease %s on %s: %w", s.leaseKey(), s.where, s.needsCluster(err))
	}
	value, _ := values[0].(string) // "" where there is none
	holder, _, _ = strings.Cut(value, " ")
	return holder, nil
}

// OpenRecords opens the records of a Redis for somebody beside the instances that use it, of whom none need run. close
// ends that. Its errors are those of [Open].
func OpenRecords(ctx context.Context, cfg Config) (_ sessions.Records, close func(), err error) {
	s := newStore(cfg)
	if err := s.connect(ctx, cfg.URL); err != nil {
		return nil, nil, err
	}
	return s.records, func() { _ = s.client.Close() }, nil // each write was answered
}

package sessions

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
)

const (
	leaseFor   = 3 * time.Second // a dead holder is replaced after this
	leaseWait  = 4 * time.Second // how long we wait for the holder: longer than a dead one can hold it
	leasePause = 200 * time.Millisecond
	renewIn    = 900 * time.Millisecond // less than tickEvery: renewals never pile up
)

// A lease makes sure that one process at a time uses the keys of a prefix.
type lease struct {
	client *redis.Client
	key    string
	value  string // the holder's name, a space, a token of this process
	where  string
	log    *zap.Logger
	counts *counters
	silent bool // the last renewal got no answer. Owned by who holds the store's turn
}

var (
	//go:embed lease.lua
	leaseSource string
	//go:embed release.lua
	releaseSource string

	leaseScript   = redis.NewScript(leaseSource)
	releaseScript = redis.NewScript(releaseSource)
)

func newLease(s *Store) *lease {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return &lease{
		client: s.client, key: s.prefix + ":lease", where: s.where, log: s.log, counts: s.counts,
		value: fmt.Sprintf("%s:%d %s", host, os.Getpid(), rand.Text()),
	}
}

// take takes or renews the lease. It returns the name of another holder, or "" when it is ours.
func (l *lease) take(ctx context.Context) (holder string, err error) {
	other, err := leaseScript.Run(ctx, l.client, []string{l.key}, l.value, leaseFor.Milliseconds()).Text()
	if err != nil {
		return "", err
	}
	holder, _, _ = strings.Cut(other, " ")
	return holder, nil
}

// acquire takes the lease, waiting for a holder that may be dead or just ending.
func (l *lease) acquire(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, leaseWait, errLeaseHeld)
	defer cancel()
	var holder string
	for {
		name, err := l.take(ctx)
		switch {
		case err == nil && name == "":
			return nil
		case err == nil:
			holder = name
		case !waitable(err):
			return fmt.Errorf("take the lease %s on %s: %w", l.key, l.where, err)
		}
		select {
		case <-time.After(leasePause):
			continue
		case <-ctx.Done():
		}
		if holder == "" || !errors.Is(context.Cause(ctx), errLeaseHeld) {
			return fmt.Errorf("take the lease %s on %s: %w", l.key, l.where, errors.Join(context.Cause(ctx), err))
		}
		return fmt.Errorf("%s is in use by another Switchboard, %s: end that one, or give this one a Redis "+
			"of its own (another database number will do)", l.where, holder)
	}
}

// errLeaseHeld ends the wait for a holder.
var errLeaseHeld = errors.New("no free lease in time")

// tick renews the lease. A Redis that does not answer cannot give the lease to another either, so that is
// waited for; so is one that came back empty. Only another holder ends us.
func (l *lease) tick(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewIn)
	defer cancel()
	holder, err := l.take(ctx)
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil
		}
		l.counts.renewErrors.Add(1)
		if !l.silent {
			l.log.Warn("redis does not answer", zap.String("redis", l.where), zap.Error(err))
		}
		l.silent = true
		return nil
	}
	if l.silent {
		l.log.Info("redis answers again", zap.String("redis", l.where))
	}
	l.silent = false
	if holder == "" {
		return nil
	}
	l.counts.leasesLost.Add(1)
	l.log.Error("lease lost", zap.String("redis", l.where), zap.String("holder", holder))
	return fmt.Errorf("another Switchboard, %s, has taken over %s while this one could not renew its lease; "+
		"this one ends", holder, l.where)
}

// end gives the lease back, if it is still ours.
func (l *lease) end(ctx context.Context) error {
	err := releaseScript.Run(ctx, l.client, []string{l.key}, l.value).Err()
	if err != nil {
		return fmt.Errorf("give back the lease %s on %s: %w", l.key, l.where, err)
	}
	return nil
}

func (l *lease) release() {}

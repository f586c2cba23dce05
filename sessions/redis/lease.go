package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"
)

const (
	leaseFor   = 3 * time.Second // a dead holder is replaced after this, unless its Config says otherwise
	leaseWait  = 4 * time.Second // how long we wait for a holder to end, and for an answer
	leasePause = 200 * time.Millisecond
)

// Together is who holds the lease that several instances share.
const Together = "several-instances"

// A lease makes sure that one process at a time uses the keys of a prefix.
type lease struct {
	key    string                                        // Set once
	value  string                                        // Set once: the holder's name, a space, a token of this process
	where  string                                        // Set once
	life   time.Duration                                 // Set once: a dead holder is replaced after this
	take   func(context.Context, int64) (holding, error) // Set once: takes it (0) or renews it in its epoch
	give   func(context.Context) error                   // Set once: gives it back if it is ours
	joint  bool                                          // Set once: several processes hold it together
	epoch  int64                                         // Set once, by acquire: newer ones are greater
	log    *zap.Logger                                   // Set once
	counts *counters                                     // Set once
	silent bool                                          // the last renewal got no answer. Owned like the lease
}

var (
	leaseScript   = script("lease")
	releaseScript = script("release")
)

func newLease(e *engine) *lease {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	l := &lease{
		key: e.leaseKey(), where: e.where, life: e.leaseFor, log: e.log, counts: &e.counts,
		value: fmt.Sprintf("%s:%d %s", host, os.Getpid(), rand.Text()),
	}
	if e.shared {
		l.joint, l.value = true, Together+" together"
	}
	l.take = func(ctx context.Context, epoch int64) (holding, error) {
		reply, err := leaseScript.Run(ctx, e.client, []string{l.key, e.epochKey()}, l.value, l.life.Milliseconds(),
			epoch).Slice()
		if err != nil {
			return holding{}, err
		}
		h := holding{}
		if !replied(reply, &h.value, &h.expires, &h.epoch) {
			return holding{}, unexpected("lease")
		}
		h.holder, _, _ = strings.Cut(h.value, " ")
		return h, nil
	}
	l.give = func(ctx context.Context) error {
		return releaseScript.Run(ctx, e.client, []string{l.key}, l.value).Err()
	}
	return l
}

// A holding is a lease as it was found.
type holding struct {
	holder  string // another one's name; "" when the lease is ours
	value   string
	expires int64 // Unix milliseconds of the Redis; -1 never
	epoch   int64 // the newest one, when nobody else holds the lease
}

// renewed reports whether a holding shows that a holder lived after an earlier one was seen. A lease that ends later by
// a tenth of its life was renewed, whatever was rounded.
func (l *lease) renewed(h, since holding) bool {
	return h.value != since.value || h.expires > since.expires+(l.life/10).Milliseconds()
}

// acquire takes the lease. A holder that may be just ending is waited for; then one that is dead, until its
// lease expires, however late this process gets to look. Only a holder that renews meanwhile is refused to.
func (l *lease) acquire(ctx context.Context) error {
	began := time.Now()
	answered := began
	var last holding // as seen when we no longer waited for an end
	for {
		h, err := l.take(ctx, 0)
		now := time.Now()
		switch {
		case err == nil && h.holder == "":
			l.epoch = h.epoch
			return nil
		case err == nil:
			answered = now
			if last.value != "" && l.renewed(h, last) || now.Sub(began) >= leaseWait && h.expires < 0 {
				return fmt.Errorf("%s is in use by another Switchboard, %s: end that one, or give this one a Redis "+
					"of its own (another database number will do)", l.where, h.holder)
			}
			if last.value == "" && now.Sub(began) >= leaseWait {
				last = h
			}
		case !waitable(err), now.Sub(answered) >= leaseWait:
			return fmt.Errorf("take the lease %s on %s: %w", l.key, l.where, err)
		}
		select {
		case <-time.After(leasePause):
		case <-ctx.Done():
			return fmt.Errorf("take the lease %s on %s: %w", l.key, l.where, errors.Join(context.Cause(ctx), err))
		}
	}
}

// every is how often the lease is renewed: three times in its life, so that one lost renewal does no harm.
func (l *lease) every() time.Duration { return l.life / 3 }

// tick renews the lease. A Redis that does not answer cannot give the lease to another either, so that is
// waited for; so is one that came back empty. Only another holder ends us, also one that has ended.
func (l *lease) tick(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.every()*9/10) // less than that: renewals never pile up
	defer cancel()
	epoch := l.epoch
	if l.joint { // which another of them may have begun anew
		epoch = 0
	}
	h, err := l.take(ctx, epoch)
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
	if h.holder == "" && (l.joint || h.epoch == l.epoch) {
		return nil
	}
	h.holder = cmp.Or(h.holder, "which has ended")
	l.counts.leasesLost.Add(1)
	l.log.Error("lease lost", zap.String("redis", l.where), zap.String("holder", h.holder))
	return fmt.Errorf("another Switchboard, %s, has taken over %s while this one could not renew its lease; "+
		"this one ends", h.holder, l.where)
}

// end gives the lease back, if it is still ours. One that others hold too ends by itself.
func (l *lease) end(ctx context.Context) error {
	if l.joint {
		return nil
	}
	if err := l.give(ctx); err != nil {
		return fmt.Errorf("give back the lease %s on %s: %w", l.key, l.where, err)
	}
	return nil
}

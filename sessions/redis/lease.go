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
	leaseFor   = 3 * time.Second // the default time after which a dead holder is replaced
	leaseWait  = 4 * time.Second // how long a start waits for a holder that is ending, or for an answer
	leasePause = 200 * time.Millisecond
)

// Together is the holder of a lease that several instances share.
const Together = "several-instances"

// A lease keeps a second process from using the keys of a prefix.
type lease struct {
	key    string                                        // Set once
	value  string                                        // Set once: the holder's name, a space, a token of this process
	where  string                                        // Set once
	life   time.Duration                                 // Set once: how long the lease lives after a renewal
	take   func(context.Context, int64) (holding, error) // Set once: takes the lease (epoch 0) or renews it
	give   func(context.Context) error                   // Set once: releases the lease if it is ours
	joint  bool                                          // Set once: whether several processes hold the lease together
	epoch  int64                                         // Set once, by acquire; a newer epoch is greater
	log    *zap.Logger                                   // Set once
	counts *counters                                     // Set once
	silent bool                                          // the last renewal got no answer. Owned by the caller of tick
}

var leaseScript = script("lease")

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
		return e.alter(ctx, l.key, 0, func(was string) (string, bool) { return "", was == l.value })
	}
	return l
}

// A holding is the state of a lease in the Redis.
type holding struct {
	holder  string // the name of another holder; "" when the lease is ours
	value   string
	expires int64 // Unix milliseconds by the clock of the Redis; -1 for never
	epoch   int64 // the newest epoch, if no other process has the lease
}

// renewed reports whether the holder of h renewed the lease after since was read. To allow for rounding, the end must
// be later by a tenth of the lease's life.
func (l *lease) renewed(h, since holding) bool {
	return h.value != since.value || h.expires > since.expires+(l.life/10).Milliseconds()
}

// acquire takes the lease. It waits for a holder that may be ending, then for the lease of a dead holder to expire,
// however late this process gets to look. It gives up when a holder renews meanwhile.
func (l *lease) acquire(ctx context.Context) error {
	began := time.Now()
	answered := began
	var last holding // as it was at the end of leaseWait
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

// every returns the interval of renewals: a third of the life, so that one lost renewal does no harm.
func (l *lease) every() time.Duration { return l.life / 3 }

// tick renews the lease. It returns an error only when another process has taken the lease, even if that one has
// ended. A Redis that does not answer cannot give the lease to another process, and one that came back empty is given
// the lease again, so neither is an error.
func (l *lease) tick(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.every()*9/10) // shorter than the interval: renewals never pile up
	defer cancel()
	epoch := l.epoch
	if l.joint { // another instance may have begun a new epoch
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

// end releases the lease if it is still ours. A lease that several hold expires after the last one.
func (l *lease) end(ctx context.Context) error {
	if l.joint {
		return nil
	}
	if err := l.give(ctx); err != nil {
		return fmt.Errorf("give back the lease %s on %s: %w", l.key, l.where, err)
	}
	return nil
}

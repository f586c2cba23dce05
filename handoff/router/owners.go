package router

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// Owners knows for whom Switchboard made a thread. Every router of the process tells it of those that it makes, before
// they are used; the store keeps that beyond the process, and what it has is read once. Until then a thread that nobody
// is known to own is hidden. It is safe for concurrent use.
type Owners struct {
	store   ledger.Owners // Set once; nil: nothing is kept
	reading chan struct{} // capacity 1; a token in it is one reading of the store

	mu     sync.Mutex
	unread bool                              // Guarded by mu: the store has more
	by     map[handoff.Target]handoff.Caller // Guarded by mu: by server and thread
	order  []handoff.Target                  // Guarded by mu: oldest first
}

// NewOwners returns what is known of a store, which is nothing before it is read. A nil store keeps nothing.
func NewOwners(store ledger.Owners) *Owners {
	return &Owners{
		store: store, reading: make(chan struct{}, 1), unread: store != nil, by: map[handoff.Target]handoff.Caller{},
	}
}

// Read reads what the store has, unless that was done. Others wait for whoever reads.
func (o *Owners) Read(ctx context.Context) error {
	select {
	case o.reading <- struct{}{}:
		defer func() { <-o.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	o.mu.Lock()
	unread := o.unread
	o.mu.Unlock()
	if !unread {
		return nil
	}
	all, err := o.store.Owned(ctx)
	if err != nil {
		return err
	}
	for _, one := range all {
		o.made(one.Caller, handoff.Target{Server: one.Server, Thread: one.Thread})
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unread = false
	return nil
}

// made notes that a thread was made for a caller. The first one keeps it.
func (o *Owners) made(c handoff.Caller, t handoff.Target) {
	key := handoff.Target{Server: t.Server, Thread: t.Thread}
	if key.Thread == "" || key.Thread == handoff.NewThread {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.by[key]; known {
		return
	}
	if len(o.order) >= ledger.MaxOwned {
		for _, old := range o.order[:ledger.MaxOwned/2] {
			delete(o.by, old)
		}
		o.order = append([]handoff.Target(nil), o.order[ledger.MaxOwned/2:]...)
	}
	o.by[key], o.order = c, append(o.order, key)
}

// Hidden reports whether a caller must not see a thread, because Switchboard made it for somebody else. It never waits.
func (o *Owners) Hidden(c handoff.Caller, server, thread string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	owner, known := o.by[handoff.Target{Server: server, Thread: thread}]
	return known && owner != c || !known && o.unread
}

const (
	// followEvery is how often it is read for whom other instances made threads: for so long a thread of theirs that
	// runs already may be taken for one that nobody made.
	followEvery = 250 * time.Millisecond
	// followBack is how far back is read each time: the clocks of instances may differ by as much.
	followBack = time.Minute
)

// OwnedNews tells for whom threads were made lately, at whichever instance.
type OwnedNews interface {
	// OwnedSince returns those that were made since a time, by the clock of whoever made them.
	OwnedSince(ctx context.Context, since time.Time) ([]ledger.Owned, error)
}

// Follow learns again and again for whom other instances made threads, until ctx ends. [Owners.Read] comes first. What
// was made while the store was away is learned when it is back.
func (o *Owners) Follow(ctx context.Context, news OwnedNews, log *zap.Logger) {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	known, away := time.Now(), false
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		all, err := news.OwnedSince(ctx, known.Add(-followBack))
		if err != nil {
			if !away && ctx.Err() == nil {
				log.Warn("it cannot be read who made sessions elsewhere", zap.Error(err))
			}
			away = true
			continue
		}
		known, away = began, false
		for _, one := range all {
			o.made(one.Caller, handoff.Target{Server: one.Server, Thread: one.Thread})
		}
	}
}

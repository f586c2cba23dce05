package router

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// Owners knows for which caller Switchboard made a thread. Every router of the process adds the threads that it makes,
// before they are used. The store keeps owners beyond the process, and is read once; until then, a thread without a
// known owner is hidden. It is safe for concurrent use.
type Owners struct {
	store   ledger.Owners // Set once; nil: there is none
	reading chan struct{} // capacity 1; holds a token while the store is read

	mu     sync.Mutex
	unread bool                              // Guarded by mu: the store was not read yet
	by     map[handoff.Target]handoff.Caller // Guarded by mu: by ownedKey
	order  []handoff.Target                  // Guarded by mu: oldest first
}

// NewOwners returns owners that are read from a store; nil: there is none. It knows none before [Owners.Read].
func NewOwners(store ledger.Owners) *Owners {
	return &Owners{
		store: store, reading: make(chan struct{}, 1), unread: store != nil, by: map[handoff.Target]handoff.Caller{},
	}
}

// Read reads the store once. Concurrent calls wait for the one that reads.
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
		o.add(one.Caller, handoff.Target{Server: one.Server, Thread: one.Thread})
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unread = false
	return nil
}

// ownedKey returns a thread as owners are found by it. Codex reads an id in any case.
func ownedKey(server, thread string) handoff.Target {
	return handoff.Target{Server: server, Thread: strings.ToLower(thread)}
}

// add notes that a thread was made for a caller. The first caller of a thread stays its owner.
func (o *Owners) add(c handoff.Caller, t handoff.Target) {
	key := ownedKey(t.Server, t.Thread)
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

// Hidden reports whether a caller must not see a thread, because Switchboard made it for somebody else, or may have. A
// copy whose owner is not known is its source's: threads are the thread, its source, and so on. It never waits.
func (o *Owners) Hidden(c handoff.Caller, server string, threads ...string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, thread := range threads {
		if owner, known := o.by[ownedKey(server, thread)]; known {
			return owner != c
		}
	}
	return o.unread
}

const (
	// followEvery is the time between two reads of the owners that other instances add. For so long, a new thread of
	// theirs may seem to have no owner.
	followEvery = 250 * time.Millisecond
	// followBack is how far back each read goes. It bounds how much the clocks of instances may differ.
	followBack = time.Minute
)

// OwnedNews reads the owners that any instance added lately.
type OwnedNews interface {
	// OwnedSince returns the threads that were made since a time, by the clock of the instance that made them.
	OwnedSince(ctx context.Context, since time.Time) ([]ledger.Owned, error)
}

// Follow adds the owners that other instances add, until ctx ends. It is called after [Owners.Read]. When a store that
// was away is back, Follow reads all that it missed.
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
				log.Warn("owners of other instances not read", zap.Error(err))
			}
			away = true
			continue
		}
		known, away = began, false
		for _, one := range all {
			o.add(one.Caller, handoff.Target{Server: one.Server, Thread: one.Thread})
		}
	}
}

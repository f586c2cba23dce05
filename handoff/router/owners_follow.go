package router

import (
	"context"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

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

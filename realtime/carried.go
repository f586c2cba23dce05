package realtime

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Carried keeps which calls the provider carries for us, for the next life of Switchboard: a call costs until it is
// hung up there. Only [Front.Run] uses it.
type Carried interface {
	// Left returns what was kept last, by this life or the one before.
	Left(ctx context.Context) (ids []string, err error)
	// Keep replaces it.
	Keep(ctx context.Context, ids []string) error
}

const (
	// carriedWithin bounds one use of the store.
	carriedWithin = 2 * time.Second
	// carriedAgain is how long after a failure it is used again.
	carriedAgain = time.Second
)

// carried are the calls that the provider may carry for us. Safe by itself.
type carried struct {
	changed chan struct{} // holds a token when ids have changed

	mu  sync.Mutex
	ids map[string]bool // Guarded by mu
}

func newCarried() *carried { return &carried{changed: make(chan struct{}, 1), ids: map[string]bool{}} }

// set notes that the provider carries a call, or does not.
func (c *carried) set(id string, on bool) {
	c.mu.Lock()
	if c.ids[id] = on; !on {
		delete(c.ids, id)
	}
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default: // it will be looked at
	}
}

func (c *carried) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.ids))
}

// keepCarried hangs up what the life before left at the provider, and keeps what this one has there, until ctx ends.
// What is in the store is not replaced before it was read. A client of such a call that is still there begins another.
func (f *Front) keepCarried(ctx context.Context) {
	var releasing sync.WaitGroup
	keep := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, carriedWithin)
		defer cancel()
		return f.config.Carried.Keep(ctx, f.carried.all())
	}
	for read := false; ; {
		var err error
		if !read {
			var left []string
			if left, err = f.leftThere(ctx); err == nil {
				read = true
			}
			for _, id := range left {
				f.carried.set(id, true)
				releasing.Go(func() { f.release(ctx, id) })
			}
		}
		if err == nil {
			err = keep(ctx)
		}
		again := (<-chan time.Time)(nil)
		if err != nil && ctx.Err() == nil {
			f.log.Warn("not kept which calls the voice model's server carries", zap.Error(err))
			again = time.After(carriedAgain)
		}
		select {
		case <-f.carried.changed:
		case <-again:
		case <-ctx.Done():
			releasing.Wait()
			if read {
				_ = keep(context.WithoutCancel(ctx)) // what is kept in vain is hung up in vain
			}
			return
		}
	}
}

// leftThere returns the calls that the life before left at the provider.
func (f *Front) leftThere(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, carriedWithin)
	defer cancel()
	return f.config.Carried.Left(ctx)
}

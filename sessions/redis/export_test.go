package redis

import (
	"context"
	"maps"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// RenewErrors counts the renewals of the lease that got no answer.
func (s *Store) RenewErrors() uint64 { return s.counts.renewErrors.Load() }

// LeasesLost counts the leases that another process took over.
func (s *Store) LeasesLost() uint64 { return s.counts.leasesLost.Load() }

// BadEntries counts the entries that could not be read and were left out.
func (s *Store) BadEntries() uint64 { return s.counts.badEntries.Load() }

// Followed reports whether replicas follow a master, as was seen last.
func (s *Store) Followed() bool {
	s.followers.mu.Lock()
	defer s.followers.mu.Unlock()
	return slices.Contains(slices.Collect(maps.Values(s.followers.of)), true)
}

// patience is how long a busy machine may take for a command of a test.
const patience = time.Minute

// Patient lets commands take as long as a busy machine needs, for tests that are not about timeouts. It is called before
// anything else uses the store.
func (s *Store) Patient() error {
	s.within = patience
	return s.masters(context.Background(), func(_ context.Context, master *goredis.Client) error {
		o := master.Options()
		o.ReadTimeout, o.WriteTimeout = patience, patience
		return nil
	})
}

// NodeOf returns the address of the master that has a key.
func (s *Store) NodeOf(ctx context.Context, key string) (string, error) {
	master, err := s.master(ctx, key)
	if err != nil {
		return "", err
	}
	return master.Options().Addr, nil
}

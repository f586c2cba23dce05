package redis

import (
	"context"
	"maps"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// RenewErrors returns how many renewals of the lease got no answer.
func (s *Store) RenewErrors() uint64 { return s.counts.renewErrors.Load() }

// LeasesLost returns how many leases another process took over.
func (s *Store) LeasesLost() uint64 { return s.counts.leasesLost.Load() }

// BadEntries returns how many unreadable entries were left out.
func (s *Store) BadEntries() uint64 { return s.counts.badEntries.Load() }

// Followed reports whether any master had replicas when that was last checked.
func (s *Store) Followed() bool {
	s.followers.mu.Lock()
	defer s.followers.mu.Unlock()
	return slices.Contains(slices.Collect(maps.Values(s.followers.hasReplicas)), true)
}

// patience is how long a busy machine may take for a command of a test.
const patience = time.Minute

// Patient lets commands take as long as a busy machine needs, for tests that are not about timeouts. It is called
// before the store is used.
func (s *Store) Patient() error {
	s.within = patience
	return s.masters(context.Background(), func(_ context.Context, master *goredis.Client) error {
		o := master.Options()
		o.ReadTimeout, o.WriteTimeout = patience, patience
		return nil
	})
}

// NodeOf returns the address of the master of a key.
func (s *Store) NodeOf(ctx context.Context, key string) (string, error) {
	master, err := s.master(ctx, key)
	if err != nil {
		return "", err
	}
	return master.Options().Addr, nil
}

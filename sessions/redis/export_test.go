package redis

import (
	"context"
	"maps"
	"slices"
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

// Patient gives the ledger the time that a command has, for tests that are not about how long one waits for it.
func (s *Store) Patient() { s.within = replyWithin }

// NodeOf returns the address of the master that has a key.
func (s *Store) NodeOf(ctx context.Context, key string) (string, error) {
	master, err := s.master(ctx, key)
	if err != nil {
		return "", err
	}
	return master.Options().Addr, nil
}

package redis

import (
	"context"
	"maps"
	"slices"

	"switchboard/handoff"
	"switchboard/sessions"
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

// Nodes returns the addresses of the masters that have a caller and the index of this life.
func (s *Store) Nodes(ctx context.Context, c handoff.Caller) (caller, index string, err error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return "", "", err
	}
	its, err := s.master(ctx, s.homeKey(name))
	if err != nil {
		return "", "", err
	}
	indexed, err := s.master(ctx, s.indexKey(s.id))
	if err != nil {
		return "", "", err
	}
	return its.Options().Addr, indexed.Options().Addr, nil
}

package redis

// RenewErrors counts the renewals of the lease that got no answer.
func (s *Store) RenewErrors() uint64 { return s.counts.renewErrors.Load() }

// LeasesLost counts the leases that another process took over.
func (s *Store) LeasesLost() uint64 { return s.counts.leasesLost.Load() }

// BadEntries counts the entries that could not be read and were left out.
func (s *Store) BadEntries() uint64 { return s.counts.badEntries.Load() }

// Followed reports whether a replica follows the Redis.
func (s *Store) Followed() bool { return s.replicas.Load() }

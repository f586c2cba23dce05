package redis

import (
	"iter"
	"slices"

	"switchboard/handoff"
)

// Metrics yields what the store counts of itself. Its round trips are counted by who waits for them.
func (s *Store) Metrics() iter.Seq[handoff.Metric] {
	n := s.counts
	return slices.Values([]handoff.Metric{
		handoff.NewMetric("switchboard_store_bad_entries_total", "Entries of the store that could not be read and were left out.", n.badEntries.Load()),
		handoff.NewMetric("switchboard_redis_renew_failures_total", "Renewals of the lease on Redis that got no answer.", n.renewErrors.Load()),
		handoff.NewMetric("switchboard_redis_leases_lost_total", "Leases on Redis that another process took over.", n.leasesLost.Load()),
	})
}

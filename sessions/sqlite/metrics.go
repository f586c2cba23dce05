package sqlite

import (
	"iter"
	"slices"

	"switchboard/handoff"
)

// Metrics yields what the store counts of itself. Its round trips are counted by who waits for them.
func (s *Store) Metrics() iter.Seq[handoff.Metric] {
	n := &s.counts
	return slices.Values([]handoff.Metric{
		handoff.NewMetric("switchboard_store_bad_entries_total", "Entries of the store that could not be read and were left out.", n.badEntries.Load()),
		handoff.NewMetric("switchboard_sqlite_refused_total", "Changes that the file did not take: a full disk, or another program's lock.", n.refused.Load()),
		handoff.NewMetric("switchboard_sqlite_copies_total", "Copies of the file that were made.", n.copies.Load()),
	})
}

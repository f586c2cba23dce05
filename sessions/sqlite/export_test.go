package sqlite

// Copies counts the copies of the file that were made.
func (s *Store) Copies() uint64 { return s.counts.copies.Load() }

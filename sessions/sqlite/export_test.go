package sqlite

// Copies returns how many copies of the file were made.
func (s *Store) Copies() uint64 { return s.counts.copies.Load() }

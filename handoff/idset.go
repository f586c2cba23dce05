package handoff

// maxIDs bounds an [IDSet].
const maxIDs = 1024

// An IDSet is a bounded set of ids, for recognising repetitions: when it is full, the oldest id is removed. The zero
// value is empty.
type IDSet struct {
	has   map[string]bool
	order []string
}

// Known reports whether the set has an id.
func (s *IDSet) Known(id string) bool { return s != nil && s.has[id] }

// Add adds an id, and reports whether it is new.
func (s *IDSet) Add(id string) bool {
	if s.has[id] {
		return false
	}
	if s.has == nil {
		s.has = map[string]bool{}
	}
	s.has[id] = true
	if s.order = append(s.order, id); len(s.order) > maxIDs {
		delete(s.has, s.order[0])
		s.order = s.order[1:]
	}
	return true
}

package call

import "time"

// A timer is a [time.Timer] that does not run until it is set.
type timer struct{ *time.Timer }

func newTimer() timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return timer{t}
}

// An idSet is a bounded set of ids: when it is full, the oldest is forgotten.
type idSet struct {
	has   map[string]bool
	order []string
}

// maxIDs bounds an [idSet].
const maxIDs = 1024

// add takes an id and tells whether it is new.
func (s *idSet) add(id string) bool {
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

package realtime

import (
	"sync"

	"switchboard/handoff"
)

// sayQueue bounds utterances that the call has not taken yet. The call never waits, so it holds a moment's worth; when
// it is full all the same, an answer would be lost, so the call ends.
const sayQueue = 256

// sayings are what the router said and the call has not taken yet, in order. They are safe for concurrent use.
type sayings struct {
	ready chan struct{} // holds one token while something waits

	mu      sync.Mutex
	waiting []handoff.Utterance // Guarded by mu
}

func newSayings() *sayings { return &sayings{ready: make(chan struct{}, 1)} }

// add enqueues an utterance; false: too much waits.
func (s *sayings) add(u handoff.Utterance) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) >= sayQueue {
		return false
	}
	s.waiting = append(s.waiting, u)
	select {
	case s.ready <- struct{}{}:
	default: // it is known
	}
	return true
}

// take takes all that wait.
func (s *sayings) take() []handoff.Utterance {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.waiting
	s.waiting = nil
	return all
}

package responses

import (
	"context"
	"maps"
	"sync"

	"switchboard/handoff"
)

type liveKey struct {
	owner handoff.Caller
	id    string
}

// liveResponses has the responses in memory.
type liveResponses struct {
	following context.Context    // Set once: the context of jobs
	leave     context.CancelFunc // Set once: ends following

	mu     sync.Mutex
	all    map[liveKey]*liveResponse // Guarded by mu
	closed bool                      // Guarded by mu: no more responses are begun
	jobs   sync.WaitGroup            // goroutines that run drive
}

// start adds a response, and follows its handoff.
func (s *liveResponses) start(l *liveResponse) *fault {
	key := liveKey{l.grant.Caller, l.id}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return faultOf(handoff.Fault(handoff.CodeShutdown, "", ""))
	case s.all[key] != nil:
		return busy("response_in_use", "Another request goes on from that response at this moment.")
	}
	maps.DeleteFunc(s.all, func(_ liveKey, l *liveResponse) bool { return l.unneeded() })
	if len(s.all) >= maxLive {
		return faultOf(handoff.Fault(handoff.CodeOverloaded, "Switchboard", "too many responses"))
	}
	s.all[key] = l
	s.jobs.Go(func() { l.drive(s.following) })
	return nil
}

// get returns a response in memory, or nil. It removes one that was handed over, which has to be read from the store.
func (s *liveResponses) get(c handoff.Caller, id string) *liveResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.all[liveKey{c, id}]
	if l != nil && l.wasHandedOver() {
		delete(s.all, liveKey{c, id})
		return nil
	}
	return l
}

// drop removes a response.
func (s *liveResponses) drop(c handoff.Caller, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, liveKey{c, id})
}

// close stops following handoffs, and waits until that has ended.
func (s *liveResponses) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.leave()
	s.jobs.Wait()
}

// count returns how many responses are in memory, and how many of them have not ended.
func (s *liveResponses) count() (held, open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		if !l.overFor(0) {
			open++
		}
	}
	return len(s.all), open
}

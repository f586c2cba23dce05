package responses

import (
	"context"
	"maps"
	"sync"
	"time"

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
	most      int                // Set once: how many there may be

	mu       sync.Mutex
	all      map[liveKey]*liveResponse // Guarded by mu
	reserved int                       // Guarded by mu: for how many more there is room
	closed   bool                      // Guarded by mu: no more responses are begun
	jobs     sync.WaitGroup            // goroutines that run drive, and reservations
}

// reserve makes room for a response before its handoff begins, which cannot be undone. release gives the room back,
// also after start.
func (s *liveResponses) reserve() (release func(), f *fault) {
	s.sweep()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, faultOf(handoff.Fault(handoff.CodeShutdown, "", ""))
	}
	if len(s.all)+s.reserved >= s.most && !s.dropOldestLocked() {
		return nil, faultOf(handoff.Fault(handoff.CodeOverloaded, "Switchboard", "too many responses"))
	}
	s.reserved++
	s.jobs.Add(1)
	return sync.OnceFunc(func() {
		s.mu.Lock()
		s.reserved--
		s.mu.Unlock()
		s.jobs.Done()
	}), nil
}

// start adds a response for which there is a reservation, and follows its handoff. If the same response is in memory,
// it returns that one.
func (s *liveResponses) start(l *liveResponse) *liveResponse {
	key := liveKey{l.grant.Caller, l.id}
	s.mu.Lock()
	defer s.mu.Unlock()
	if is := s.all[key]; is != nil {
		return is
	}
	s.all[key] = l
	s.jobs.Go(func() { l.drive(s.following) })
	return l
}

// alias gives a response another name.
func (s *liveResponses) alias(l *liveResponse, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[liveKey{l.grant.Caller, name}] = l
}

// sweep removes the responses that need not stay in memory any more.
func (s *liveResponses) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.all, func(_ liveKey, l *liveResponse) bool { return !l.needed() })
}

// dropOldestLocked removes the response that ended first, and reports whether there was one.
func (s *liveResponses) dropOldestLocked() bool {
	var oldest liveKey
	var at time.Time
	for key, l := range s.all {
		if ended := l.endedAt(); !ended.IsZero() && (at.IsZero() || ended.Before(at)) {
			oldest, at = key, ended
		}
	}
	delete(s.all, oldest)
	return !at.IsZero()
}

// get returns a response in memory, or nil. It removes one that was handed over, which has to be read from the store.
func (s *liveResponses) get(c handoff.Caller, id string) *liveResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.all[liveKey{c, id}]
	if l == nil || !l.in(phaseHandedOver) {
		return l
	}
	delete(s.all, liveKey{c, id})
	return nil
}

// drop removes a response, with all its names.
func (s *liveResponses) drop(c handoff.Caller, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.all[liveKey{c, id}]; l != nil {
		maps.DeleteFunc(s.all, func(_ liveKey, other *liveResponse) bool { return other == l })
	}
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
	for key, l := range s.all {
		if key.id != l.id {
			continue
		}
		if held++; l.endedAt().IsZero() {
			open++
		}
	}
	return held, open
}

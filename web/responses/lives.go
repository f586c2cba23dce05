package responses

import (
	"context"
	"sync"
	"time"

	"switchboard/handoff"
)

type liveKey struct {
	owner handoff.Caller
	id    string
}

// lives are the responses in memory.
type lives struct {
	following context.Context    // Set once: of jobs
	leave     context.CancelFunc // Set once: ends following

	mu     sync.Mutex
	all    map[liveKey]*live // Guarded by mu
	closed bool              // Guarded by mu: no more are begun
	jobs   sync.WaitGroup    // drivers
}

// start makes a response live and follows its run.
func (s *lives) start(l *live) *fault {
	key := liveKey{l.grant.Caller, l.id}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return faultOf(handoff.Fault(handoff.CodeShutdown, "", ""))
	case s.all[key] != nil:
		return busy("response_in_use", "Another request goes on from that response at this moment.")
	}
	if s.sweepLocked(); len(s.all) >= maxLive {
		return faultOf(handoff.Fault(handoff.CodeOverloaded, "Switchboard", "too many responses"))
	}
	s.all[key] = l
	s.jobs.Go(func() { l.drive(s.following) })
	return nil
}

// sweepLocked lets go of responses whose streams nobody reads again.
func (s *lives) sweepLocked() {
	now := time.Now()
	for key, l := range s.all {
		l.mu.Lock()
		keep := replayable
		if !l.doc.Streamed || !l.emit.resp.Background {
			keep = 0
		}
		if l.shown && now.Sub(l.ended) >= keep {
			delete(s.all, key)
		}
		l.mu.Unlock()
	}
}

// get returns a response in memory, or nil. One that ended here before its run is read from the store again.
func (s *lives) get(c handoff.Caller, id string) *live {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.all[liveKey{c, id}]
	if l != nil && l.parted() {
		delete(s.all, liveKey{c, id})
		return nil
	}
	return l
}

// drop lets go of a response.
func (s *lives) drop(c handoff.Caller, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, liveKey{c, id})
}

// close ends what follows runs, and waits for it.
func (s *lives) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.leave()
	s.jobs.Wait()
}

// count returns how many responses are in memory, and how many of them are not over.
func (s *lives) count() (held, open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		if !l.over() {
			open++
		}
	}
	return len(s.all), open
}

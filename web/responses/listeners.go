package responses

import (
	"sync"

	"switchboard/handoff"
)

// listeners hear of runs whose responses somebody reads, so that no call is told of them too. There is one for each
// grant that has such a run.
type listeners struct {
	attending Attending // Set once

	mu  sync.Mutex
	all map[listenerKey]*listener // Guarded by mu
}

type listenerKey struct {
	owner handoff.Caller
	key   string
}

// A listener is a [handoff.Listener] that needs to hear nothing: whoever reads a response follows its run.
type listener struct {
	leave func() // Set once

	mu   sync.Mutex
	runs int                    // Guarded by mu: that somebody reads
	left map[handoff.RunID]bool // Guarded by mu: runs that nobody reads any more and that go on
}

// enter returns who is to hear of a run that begins.
func (e *listeners) enter(g handoff.Grant) *listener {
	key := listenerKey{g.Caller, g.Key}
	e.mu.Lock()
	defer e.mu.Unlock()
	one := e.all[key]
	if one == nil {
		one = &listener{left: map[handoff.RunID]bool{}}
		one.leave = e.attending.Attend(g, one)
		e.all[key] = one
	}
	one.mu.Lock()
	one.runs++
	one.mu.Unlock()
	return one
}

// exit counts a run out that nobody reads any more.
func (e *listeners) exit(g handoff.Grant, one *listener, run handoff.RunID) {
	e.mu.Lock()
	one.mu.Lock()
	one.runs--
	over := one.runs == 0
	if !over && run != "" {
		one.left[run] = true
	}
	one.mu.Unlock()
	if over {
		delete(e.all, listenerKey{g.Caller, g.Key})
	}
	e.mu.Unlock()
	if over {
		one.leave()
	}
}

// Hear implements [handoff.Listener].
func (e *listener) Hear(ev handoff.RunEvent) bool {
	if _, other := ev.Kind.(handoff.RunTaken); other {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	left := e.left[ev.Run]
	if _, over := ev.Kind.(handoff.RunEnded); over {
		delete(e.left, ev.Run)
	}
	return !left
}

// Outbox implements [handoff.Listener].
func (e *listener) Outbox([]handoff.Record) bool { return false }

package responses

import (
	"sync"

	"switchboard/handoff"
)

// listeners are told of the runs whose responses a client reads, so that no call is told of them, too. There is one
// listener for each caller and key with such a run.
type listeners struct {
	attending Attending // Set once

	mu  sync.Mutex
	all map[listenerKey]*listener // Guarded by mu
}

type listenerKey struct {
	owner handoff.Caller
	key   string
}

// A listener is a [handoff.Listener] that only keeps events from other listeners: its response follows the run itself.
type listener struct {
	leave func() // Set once

	mu     sync.Mutex
	runs   int                    // Guarded by mu: how many of its runs have a reader
	unread map[handoff.RunID]bool // Guarded by mu: running runs that have no reader any more
}

// enter returns the listener for a run that begins, and counts the run.
func (e *listeners) enter(g handoff.Grant) *listener {
	key := listenerKey{g.Caller, g.Key}
	e.mu.Lock()
	defer e.mu.Unlock()
	one := e.all[key]
	if one == nil {
		one = &listener{unread: map[handoff.RunID]bool{}}
		one.leave = e.attending.Attend(g, one)
		e.all[key] = one
	}
	one.mu.Lock()
	one.runs++
	one.mu.Unlock()
	return one
}

// exit stops counting a run that has no reader any more.
func (e *listeners) exit(g handoff.Grant, one *listener, run handoff.RunID) {
	e.mu.Lock()
	one.mu.Lock()
	one.runs--
	over := one.runs == 0
	if !over && run != "" {
		one.unread[run] = true
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
	unread := e.unread[ev.Run]
	if _, over := ev.Kind.(handoff.RunEnded); over {
		delete(e.unread, ev.Run)
	}
	return !unread
}

// Outbox implements [handoff.Listener].
func (e *listener) Outbox([]handoff.Record) bool { return false }

package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

const (
	readyWithin = 2 * time.Second // for the store to answer
	knownWithin = 5 * time.Second // for what a former life left to be known, before anything is served
	readyFresh  = time.Second     // an answer this young is given again: anybody may ask
)

// readiness reports whether work can be taken: not while the process ends, not before what a former life left is known,
// and not while the store cannot be written. A voice model that is away is no reason: asking it costs money, and who
// calls is told.
type readiness struct {
	write    func(context.Context) error // Set once: writes something into the store, if that keeps it
	known    func() error                // Set once: why what a former life left is not known yet
	stopping atomic.Bool                 // safe by itself

	mu     sync.Mutex
	asking bool      // Guarded by mu: somebody asks the store; one does
	at     time.Time // Guarded by mu: when it had answered
	last   error     // Guarded by mu: what it answered
}

// A keptStore knows whether it keeps what it has taken: a full disk may take something small for a while yet.
type keptStore interface{ Kept() error }

// newReadiness returns the readiness of a store and of who reads it at the start.
func newReadiness(s sessions.Logins, known func() error) *readiness {
	return &readiness{known: known, write: func(ctx context.Context) error {
		if k, ok := s.(keptStore); ok {
			if err := k.Kept(); err != nil {
				return err
			}
		}
		_, err := s.Spend(ctx, "ready", time.Now().UTC().Format(time.DateOnly), 0)
		return err
	}}
}

// check returns why work cannot be taken, an error of the vocabulary with status 503, or nil.
func (r *readiness) check(ctx context.Context) error {
	if r.stopping.Load() {
		return handoff.Fault(handoff.CodeShutdown, "", "")
	}
	if err := r.known(); err != nil {
		return err
	}
	r.mu.Lock()
	if r.asking || time.Since(r.at) < readyFresh {
		defer r.mu.Unlock()
		return r.last
	}
	r.asking = true
	r.mu.Unlock()
	// who asked may leave; the answer is for all
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyWithin)
	defer cancel()
	var fault error
	if err := r.write(ctx); err != nil {
		fault = handoff.Because(handoff.CodeStoreDown, "", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking, r.at, r.last = false, time.Now(), fault
	return fault
}

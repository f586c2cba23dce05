package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

const (
	readyWithin   = 2 * time.Second // for the store to answer
	recoverWithin = 5 * time.Second // for the work of an earlier process to be read, before anything is served
	readyFresh    = time.Second     // how long an answer of the store is reused: anybody may ask
)

// readiness reports whether the service can take work: not while the process ends, not before the work of an earlier
// process has been read, and not while the store cannot be written. The voice model is not checked: a session costs
// money, and a caller hears of a failure anyway.
type readiness struct {
	write     func(context.Context) error // Set once: writes a small entry to the store
	recovered func() error                // Set once: nil when the work of an earlier process has been read
	stopping  atomic.Bool                 // set when the process begins to end

	mu     sync.Mutex
	asking bool      // Guarded by mu: a request is asking the store; others get the last answer
	at     time.Time // Guarded by mu: when the last answer came
	last   error     // Guarded by mu: the last answer
}

// A keptStore reports an error if it cannot persist what was written: on a full disk, a small write may still succeed.
type keptStore interface{ Kept() error }

// newReadiness returns the readiness of a store; recovered is called at each check.
func newReadiness(s sessions.Logins, recovered func() error) *readiness {
	return &readiness{recovered: recovered, write: func(ctx context.Context) error {
		if k, ok := s.(keptStore); ok {
			if err := k.Kept(); err != nil {
				return err
			}
		}
		_, err := s.Spend(ctx, "ready", time.Now().UTC().Format(time.DateOnly), "", 0)
		return err
	}}
}

// check returns why work cannot be taken, an error of the vocabulary with status 503, or nil.
func (r *readiness) check(ctx context.Context) error {
	if r.stopping.Load() {
		return handoff.Fault(handoff.CodeShutdown, "", "")
	}
	if err := r.recovered(); err != nil {
		return err
	}
	r.mu.Lock()
	if r.asking || time.Since(r.at) < readyFresh {
		defer r.mu.Unlock()
		if r.at.IsZero() {
			return handoff.StoreDown(errors.New("it has not answered yet"))
		}
		return r.last
	}
	r.asking = true
	r.mu.Unlock()
	// The answer is for other requests, too, so it does not depend on this one.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyWithin)
	defer cancel()
	var fault error
	if err := r.write(ctx); err != nil {
		fault = handoff.StoreDown(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking, r.at, r.last = false, time.Now(), fault
	return fault
}

package router

import (
	"cmp"
	"context"
	"sync"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// ackWithin bounds how long an outcome waits to be told until it is in the ledger: with the time in which
// it is the answer, two and a half seconds of silence at most.
const ackWithin = time.Second

// lastWrite bounds the last try of what is still to be written when the process ends.
const lastWrite = 500 * time.Millisecond

// A ledgerWriter tells the ledger of one handoff, in order. Only the step before a start is waited for;
// the others are written behind and repeated until the store is back. Each step has all that is known by
// then, so that a store which came back empty learns everything from the next one. A nil one writes nothing.
type ledgerWriter struct {
	caller *caller // Set once
	key    string  // Set once
	owner  string  // Set once
	args   string  // Set once

	slot chan struct{} // capacity 1; a token in it is one step on its way to the store

	mu    sync.Mutex
	facts ledger.Facts // Guarded by mu: all that was told so far
	body  ledger.Body  // Guarded by mu: likewise
	last  ledger.Step  // Guarded by mu: the newest step that is written; zero: none
	again bool         // Guarded by mu: the work is asked for once more, and nothing of it is written so far
	// Guarded by mu: the writer of the run that had the key before and never began; nil: it has nothing to write.
	former   *ledgerWriter
	known    bool           // Guarded by mu: there is an entry, or may be one
	away     bool           // Guarded by mu: the store did not answer the newest try
	turn     handoff.TurnID // Guarded by mu: as last written
	heard    bool           // Guarded by mu: that it was heard is written, or about to be
	heardAck ack            // Guarded by mu: of the step that says so; nil: nothing was to be written
	closed   bool           // Guarded by mu: the next life of the process goes on with it
	ended    *ledger.Step   // Guarded by mu: the outcome of what is not in the ledger, not written so far
	pending  []pendingStep  // Guarded by mu: not yet written, in order; bounded by the table: six at most
	writing  bool           // Guarded by mu: a job writes them
}

// An ack gives what became of a step, once: nil when it is in the ledger, else why it was refused.
type ack <-chan error

// wait waits until it is known what became of the step, for a short time. Of nothing that is written it knows at once.
func (a ack) wait(ctx context.Context) {
	if a == nil {
		return
	}
	t := time.NewTimer(ackWithin)
	defer t.Stop()
	select {
	case <-a:
	case <-t.C:
	case <-ctx.Done():
	}
}

// newLedgerWriter returns one for one handoff, or nil without a ledger. again: it may have been asked for before.
func (c *caller) newLedgerWriter(key, owner, args string, again bool) *ledgerWriter {
	if c.router.cfg.Ledger == nil {
		return nil
	}
	c.claims.take(key, owner)
	return &ledgerWriter{caller: c, key: key, owner: owner, args: args, again: again, slot: make(chan struct{}, 1)}
}

// follows takes the key over from a run that never began: what that one has to write comes first, and nothing after it.
func (l *ledgerWriter) follows(former *ledgerWriter) {
	if l == nil || former == nil {
		return
	}
	former.leave()
	former.mu.Lock()
	known, before := former.known, former.former
	former.mu.Unlock()
	if !known { // it never came to write anything
		former = before
	}
	l.mu.Lock()
	l.former, l.again = former, true
	l.mu.Unlock()
}

// Step returns the next step, with all facts so far; it may make the entry, because a store may come back
// empty. Nothing leads from there to delivered, which only tells what is said.
func (l *ledgerWriter) Step(to handoff.Status, attempt int, facts ledger.Facts) ledger.Step {
	s := ledger.Step{
		Key: l.key, Caller: l.caller.who, Owner: l.owner, Args: l.args, To: to, New: to != handoff.StatusDelivered,
		Attempt: attempt,
		At:      time.Now(), Set: facts,
	}
	if to == handoff.StatusDelivered {
		return s
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if to == handoff.StatusAccepted { // it may come late: what is known since stays
		l.facts = s.Set.Merge(ledger.Step{Set: l.facts})
	} else {
		l.facts = l.facts.Merge(s)
	}
	s.Set, s.Body, s.Again = l.facts, l.body, l.again
	return s
}

// words gives the whole words, which the steps from here on carry. A text that is "" leaves what is known.
func (l *ledgerWriter) words(b ledger.Body) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.body = ledger.Body{
		Prompt: cmp.Or(b.Prompt, l.body.Prompt), Text: cmp.Or(b.Text, l.body.Text), Did: cmp.Or(b.Did, l.body.Did),
		Request: cmp.Or(b.Request, l.body.Request),
	}
}

// note writes that words were taken which are not sent yet. An error means that the caller must not be told
// that they will be. What is written already is not written again.
func (l *ledgerWriter) note(ctx context.Context, facts ledger.Facts) error {
	if l == nil {
		return nil
	}
	return l.first(ctx, l.Step(handoff.StatusAccepted, 0, facts))
}

// dispatch writes that a start is about to be sent. An error means that it must not be. The ledger itself
// bounds how long it takes.
func (l *ledgerWriter) dispatch(ctx context.Context, attempt int, facts ledger.Facts) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	l.body.Request = "" // it does not wait any more
	l.mu.Unlock()
	return l.first(ctx, l.Step(handoff.StatusDispatching, attempt, facts))
}

// adopt becomes the owner of an entry that a former life of the router left.
func (l *ledgerWriter) adopt(ctx context.Context) (ledger.Entry, error) {
	e, err := l.caller.router.cfg.Ledger.Advance(ctx, ledger.Step{
		Key: l.key, Caller: l.caller.who, Owner: l.owner, Args: l.args, Adopt: true, At: time.Now(),
	})
	if err != nil {
		return e, err
	}
	s := l.Step(e.Status, 0, e.Facts)
	s.At = e.Accepted
	if e.Status == handoff.StatusDispatching {
		s.Attempt = e.Attempt
	}
	l.mu.Lock()
	l.known, l.last = true, s
	l.mu.Unlock()
	return e, nil
}

// started writes the turn behind.
func (l *ledgerWriter) started(turn handoff.TurnID, why string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	known := l.turn == turn
	l.turn = turn
	l.mu.Unlock()
	if !known {
		l.behind(l.Step(handoff.StatusStarted, 0, ledger.Facts{Turn: turn, Why: why}))
	}
}

// completed writes the outcome behind; the ack is nil when there is nothing to wait for: a store that
// was away a moment ago is not waited for once more. Of what was neither dispatched nor promised
// nothing is remembered, unless nobody hears it and it is kept.
func (l *ledgerWriter) completed(facts ledger.Facts) ack {
	if l == nil {
		return nil
	}
	s := l.Step(handoff.StatusCompleted, 0, facts)
	l.mu.Lock()
	known, away := l.known, l.away
	if !known {
		l.ended = &s
	}
	l.mu.Unlock()
	if !known {
		return nil
	}
	done := l.behind(s)
	if away {
		return nil
	}
	return done
}

// keep sees to it that the outcome outlives the process.
func (l *ledgerWriter) keep() {
	if l == nil {
		return
	}
	l.mu.Lock()
	s := l.ended
	l.ended = nil
	l.mu.Unlock()
	if s != nil {
		l.behind(*s)
	}
}

// delivered writes behind that the outcome was heard, and what is told of it from then on; "": what was. Said again, it
// gives the same ack, which is nil where nothing is written.
func (l *ledgerWriter) delivered(spoken string) ack {
	if l == nil {
		return nil
	}
	s := l.Step(handoff.StatusDelivered, 0, ledger.Facts{Spoken: spoken})
	begin := false
	l.mu.Lock()
	known, first := l.known, !l.heard
	if l.heard = true; first {
		l.ended, l.body = nil, ledger.Body{} // what is on its way has them
		if known {
			l.heardAck, begin = l.addLocked(s)
		}
	}
	noted := l.heardAck
	l.mu.Unlock()
	switch {
	case begin:
		l.caller.router.jobs.finally(l.write)
	case first && !known:
		l.release()
	}
	return noted
}

// leave writes no more: the entry stays as it is for the next life of the process.
func (l *ledgerWriter) leave() {
	if l != nil {
		l.mu.Lock()
		l.closed = true
		l.mu.Unlock()
	}
}

// release leaves the entry to whoever finds it.
func (l *ledgerWriter) release() {
	if l != nil {
		l.caller.claims.release(l.key, l.owner)
	}
}

// claims are the entries of the ledger that this life of the router has in hand for a caller.
type claims struct {
	mu     sync.Mutex
	owners map[string]string // Guarded by mu: their owners, by key
}

// take takes an entry in hand for an owner.
func (l *claims) take(key, owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owners[key] = owner
}

// takeLeft takes an entry in hand that a former life left. False means that it is already: there is never a second
// owner of a handoff here.
func (l *claims) takeLeft(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, had := l.owners[key]
	if !had {
		l.owners[key] = ""
	}
	return !had
}

// release lets go of an entry that needs nobody any more, unless its key has another owner by now.
func (l *claims) release(key, owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owners[key] == owner {
		delete(l.owners, key)
	}
}

func (l *claims) none() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.owners) == 0
}

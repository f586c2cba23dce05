package router

import (
	"cmp"
	"context"
	"sync"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// ackWithin bounds how long an outcome may take to be in the ledger before it is told all the same. Together with the
// 1.5 s in which it would be the answer, the caller hears nothing for 2.5 s at most.
const ackWithin = time.Second

// lastWrite bounds the last try to write a pending step when the process ends.
const lastWrite = 500 * time.Millisecond

// A ledgerWriter writes the steps of one handoff to the ledger, in order. Only a note and the step before a start are
// waited for; the others are written in the background, and repeated until the store is back. Each step has all facts
// so far, so that a store which came back empty learns everything from the next one. A nil writer writes nothing.
type ledgerWriter struct {
	caller *caller // Set once
	key    string  // Set once
	owner  string  // Set once
	args   string  // Set once

	slot chan struct{} // capacity 1; holds a token while a step is on its way to the store

	mu           sync.Mutex
	facts        ledger.Facts   // Guarded by mu: all facts so far
	body         ledger.Body    // Guarded by mu: the whole words so far
	last         ledger.Step    // Guarded by mu: the newest step in the ledger; zero: none
	again        bool           // Guarded by mu: the key may have an entry of an earlier run, and no step was written yet
	former       *ledgerWriter  // Guarded by mu: of the run that had the key before and never began; nil: nothing pending
	known        bool           // Guarded by mu: there is an entry, or may be one
	away         bool           // Guarded by mu: the store did not answer the newest try
	turn         handoff.TurnID // Guarded by mu: of the newest step
	delivering   bool           // Guarded by mu: [ledgerWriter.delivered] was called
	deliveredAck ack            // Guarded by mu: of that step; nil: nothing was to be written
	closed       bool           // Guarded by mu: no more steps are taken: the next life of the process goes on
	unwritten    *ledger.Step   // Guarded by mu: the outcome of a run without an entry, which only keep writes
	pending      []pendingStep  // Guarded by mu: to be written, in order; the table of steps allows six at most
	writing      bool           // Guarded by mu: a job writes pending
}

// An ack receives the result of a step, once: nil when the step is in the ledger, else why it was refused.
type ack <-chan error

// wait waits for the result, for [ackWithin] at most. A nil ack has nothing to wait for.
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

// newLedgerWriter returns the writer of one handoff, or nil without a ledger. again means that the key may have an
// entry of an earlier run, which the new one replaces.
func (c *caller) newLedgerWriter(key, owner, args string, again bool) *ledgerWriter {
	if c.router.cfg.Ledger == nil {
		return nil
	}
	c.claims.take(key, owner)
	return &ledgerWriter{caller: c, key: key, owner: owner, args: args, again: again, slot: make(chan struct{}, 1)}
}

// takeOver takes the key over from a run that never began: its pending steps are written first, and it takes no more.
func (l *ledgerWriter) takeOver(former *ledgerWriter) {
	if l == nil || former == nil {
		return
	}
	former.close()
	former.mu.Lock()
	known, before := former.known, former.former
	former.mu.Unlock()
	if !known { // it has nothing to write
		former = before
	}
	l.mu.Lock()
	l.former, l.again = former, true
	l.mu.Unlock()
}

// newStep returns the next step, with all facts so far. The step may make the entry, since a store may come back empty.
// A step to delivered makes none, and has only the facts that are given.
func (l *ledgerWriter) newStep(to handoff.Status, attempt int, facts ledger.Facts) ledger.Step {
	s := ledger.Step{
		Key: l.key, Caller: l.caller.who, Owner: l.owner, Args: l.args, To: to, New: to != handoff.StatusDelivered,
		Attempt: attempt, At: time.Now(), Set: facts,
	}
	if to == handoff.StatusDelivered {
		return s
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if to == handoff.StatusAccepted { // it may come late: later facts stay
		l.facts = s.Set.Merge(ledger.Step{Set: l.facts})
	} else {
		l.facts = l.facts.Merge(s)
	}
	s.Set, s.Body, s.Again = l.facts, l.body, l.again
	return s
}

// setBody sets the whole words, which all later steps carry. A field that is "" stays as it was.
func (l *ledgerWriter) setBody(b ledger.Body) {
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

// note writes that words were accepted, which are not sent yet. After an error the caller must not be promised that
// they will be. If a step was written before, note writes nothing.
func (l *ledgerWriter) note(ctx context.Context, facts ledger.Facts) error {
	if l == nil {
		return nil
	}
	return l.writeNow(ctx, l.newStep(handoff.StatusAccepted, 0, facts))
}

// dispatch writes that a start is about to be sent. After an error it must not be sent. The ledger bounds how long that
// takes.
func (l *ledgerWriter) dispatch(ctx context.Context, attempt int, facts ledger.Facts) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	l.body.Request = "" // the request does not wait any more
	l.mu.Unlock()
	return l.writeNow(ctx, l.newStep(handoff.StatusDispatching, attempt, facts))
}

// setPrint sets the print of the request, or [ledger.Answered], for all later steps.
func (l *ledgerWriter) setPrint(print string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.facts.Print = print
}

// adopt becomes the owner of an entry of an earlier life of the router.
func (l *ledgerWriter) adopt(ctx context.Context) (ledger.Entry, error) {
	e, err := l.caller.router.cfg.Ledger.Advance(ctx, ledger.Step{
		Key: l.key, Caller: l.caller.who, Owner: l.owner, Args: l.args, Adopt: true, At: time.Now(),
	})
	if err != nil {
		return e, err
	}
	s := l.newStep(e.Status, 0, e.Facts)
	s.At = e.Accepted
	if e.Status == handoff.StatusDispatching {
		s.Attempt = e.Attempt
	}
	l.mu.Lock()
	l.known, l.last = true, s
	l.mu.Unlock()
	return e, nil
}

// started writes the turn, in the background.
func (l *ledgerWriter) started(turn handoff.TurnID, why string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	known := l.turn == turn
	l.turn = turn
	l.mu.Unlock()
	if !known {
		l.enqueue(l.newStep(handoff.StatusStarted, 0, ledger.Facts{Turn: turn, Why: why}))
	}
}

// completed writes the outcome, in the background. The ack is nil if nobody should wait: nothing is written, or the
// store was away a moment ago. The outcome of a run that was neither noted nor dispatched is not written, unless
// [ledgerWriter.keep] follows because nobody heard it.
func (l *ledgerWriter) completed(facts ledger.Facts) ack {
	if l == nil {
		return nil
	}
	s := l.newStep(handoff.StatusCompleted, 0, facts)
	l.mu.Lock()
	known, away := l.known, l.away
	if !known {
		l.unwritten = &s
	}
	l.mu.Unlock()
	if !known {
		return nil
	}
	done := l.enqueue(s)
	if away {
		return nil
	}
	return done
}

// keep writes an outcome that completed did not write, so that it outlives the process.
func (l *ledgerWriter) keep() {
	if l == nil {
		return
	}
	l.mu.Lock()
	s := l.unwritten
	l.unwritten = nil
	l.mu.Unlock()
	if s != nil {
		l.enqueue(*s)
	}
}

// delivered writes, in the background, that the outcome was heard. spoken replaces the entry's sentence about the
// outcome; "": it stays. Called again it returns the same ack, which is nil if nothing is written.
func (l *ledgerWriter) delivered(spoken string) ack {
	if l == nil {
		return nil
	}
	s := l.newStep(handoff.StatusDelivered, 0, ledger.Facts{Spoken: spoken})
	begin := false
	l.mu.Lock()
	s.Set.Print = l.facts.Print
	known, first := l.known, !l.delivering
	if l.delivering = true; first {
		l.unwritten, l.body = nil, ledger.Body{} // pending steps have copies
		if known {
			l.deliveredAck, begin = l.enqueueLocked(s)
		}
	}
	noted := l.deliveredAck
	l.mu.Unlock()
	switch {
	case begin:
		l.caller.router.jobs.finally(l.write)
	case first && !known:
		l.release()
	}
	return noted
}

// close takes no more steps: the entry stays as it is for the next life of the process.
func (l *ledgerWriter) close() {
	if l != nil {
		l.mu.Lock()
		l.closed = true
		l.mu.Unlock()
	}
}

// release ends the ownership of the entry: whoever finds it may adopt it.
func (l *ledgerWriter) release() {
	if l != nil {
		l.caller.claims.release(l.key, l.owner)
	}
}

// claims holds the ledger entries of a caller that this life of the router owns.
type claims struct {
	mu     sync.Mutex
	owners map[string]string // Guarded by mu: by key of the entry
}

// take claims an entry for an owner.
func (l *claims) take(key, owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owners[key] = owner
}

// takeFormer claims an entry of an earlier life. It returns false if the entry is claimed already: a handoff never has
// two owners here.
func (l *claims) takeFormer(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, claimed := l.owners[key]
	if !claimed {
		l.owners[key] = ""
	}
	return !claimed
}

// release releases an entry, unless it has another owner by now.
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

package router

import (
	"cmp"
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// writtenWithin bounds how long an outcome waits to be told until it is in the ledger: with the time in which
// it is the answer, two and a half seconds of silence at most.
const writtenWithin = time.Second

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

	turns chan struct{} // capacity 1; a token in it is one step on its way to the store

	mu    sync.Mutex
	facts ledger.Facts // Guarded by mu: all that was told so far
	body  ledger.Body  // Guarded by mu: likewise
	last  ledger.Step  // Guarded by mu: the newest step that is written; zero: none
	again bool         // Guarded by mu: the work is asked for once more, and nothing of it is written so far
	// Guarded by mu: the writer of the run that had the key before and never began; nil: it has nothing to write.
	former  *ledgerWriter
	known   bool           // Guarded by mu: there is an entry, or may be one
	away    bool           // Guarded by mu: the store did not answer the newest try
	turn    handoff.TurnID // Guarded by mu: as last written
	heard   bool           // Guarded by mu: that it was heard is written, or about to be
	noted   receipt        // Guarded by mu: of that; nil: nothing was to be written
	closed  bool           // Guarded by mu: the next life of the process goes on with it
	ended   *ledger.Step   // Guarded by mu: the outcome of what is not in the ledger, not written so far
	pending []pendingStep  // Guarded by mu: not yet written, in order; bounded by the table: six at most
	writing bool           // Guarded by mu: a job writes them
}

// A pendingStep is a step that is written behind.
type pendingStep struct {
	ledger.Step
	done chan<- error // gets what became of it, and is closed; holds one
}

// A receipt gives what became of a step: nil when it is in the ledger, else why it was refused, which it tells once.
type receipt <-chan error

// wait waits until it is known what became of the step, for a short time. Of nothing that is written it knows at once.
func (w receipt) wait(ctx context.Context) {
	if w == nil {
		return
	}
	t := time.NewTimer(writtenWithin)
	defer t.Stop()
	select {
	case <-w:
	case <-t.C:
	case <-ctx.Done():
	}
}

// newLedgerWriter returns one for one handoff, or nil without a ledger. again: it may have been asked for before.
func (c *caller) newLedgerWriter(key, owner, args string, again bool) *ledgerWriter {
	if c.router.ledger == nil {
		return nil
	}
	c.claims.take(key, owner)
	return &ledgerWriter{caller: c, key: key, owner: owner, args: args, again: again, turns: make(chan struct{}, 1)}
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

// first writes a step that is waited for. What is still to be written of a run that had the key before comes before it:
// the ledger gives a key anew only when it knows that nothing ran.
func (l *ledgerWriter) first(ctx context.Context, s ledger.Step) error {
	l.mu.Lock()
	former := l.former
	l.mu.Unlock()
	for _, before := range former.unwritten() {
		if err := former.try(ctx, before); err != nil && retried(err) {
			return err
		}
	}
	l.mu.Lock()
	l.former, l.known = nil, true
	l.mu.Unlock()
	return l.try(ctx, s)
}

// unwritten returns the steps that are not written yet, in order.
func (l *ledgerWriter) unwritten() []ledger.Step {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	steps := make([]ledger.Step, len(l.pending))
	for i, s := range l.pending {
		steps[i] = s.Step
	}
	return steps
}

// adopt becomes the owner of an entry that a former life of the router left.
func (l *ledgerWriter) adopt(ctx context.Context) (ledger.Entry, error) {
	e, err := l.caller.router.ledger.Advance(ctx, ledger.Step{
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

// completed writes the outcome behind; the receipt is nil when there is nothing to wait for: a store that
// was away a moment ago is not waited for once more. Of what was neither dispatched nor promised
// nothing is remembered, unless nobody hears it and it is kept.
func (l *ledgerWriter) completed(facts ledger.Facts) receipt {
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
	written := l.behind(s)
	if away {
		return nil
	}
	return written
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
// gives the same receipt, which is nil where nothing is written.
func (l *ledgerWriter) delivered(spoken string) receipt {
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
			l.noted, begin = l.addLocked(s)
		}
	}
	noted := l.noted
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

// behind adds a step to what is written in the background. The receipt is nil when it will not be.
func (l *ledgerWriter) behind(s ledger.Step) receipt {
	l.mu.Lock()
	done, begin := l.addLocked(s)
	l.mu.Unlock()
	if begin {
		l.caller.router.jobs.finally(l.write)
	}
	return done
}

// addLocked is behind for who has the lock; begin: the caller begins to write, without it.
func (l *ledgerWriter) addLocked(s ledger.Step) (written receipt, begin bool) {
	if l.closed {
		return nil, false
	}
	done := make(chan error, 1)
	l.known = true
	l.pending = append(l.pending, pendingStep{s, done})
	begin, l.writing = !l.writing, true
	return done, begin
}

// write writes what is pending, until nothing is. When the process ends it tries once more and leaves the
// rest: the next life finds the entry as it was.
func (l *ledgerWriter) write(ctx context.Context) {
	for try := 0; ; {
		l.mu.Lock()
		if len(l.pending) == 0 {
			l.writing = false
			l.mu.Unlock()
			return
		}
		s := l.pending[0]
		l.mu.Unlock()
		err := l.once(ctx, s.Step)
		switch {
		case err != nil && retried(err) && ctx.Err() == nil:
			l.caller.router.pause(ctx, try)
			try++
			continue
		case err != nil && retried(err):
			l.caller.router.log.Warn("the ledger was not written to the end", zap.String("handoff", l.owner), zap.Error(err))
			s.done <- err
			close(s.done)
			return
		case err != nil:
			l.caller.router.log.Warn(
				"the ledger refused a step", zap.String("handoff", l.owner), zap.String("to", string(s.To)), zap.Error(err),
			)
		}
		try = 0
		s.done <- err
		close(s.done)
		if s.To == handoff.StatusDelivered {
			l.release()
		}
		l.mu.Lock()
		l.pending = l.pending[1:]
		l.mu.Unlock()
	}
}

func (l *ledgerWriter) once(ctx context.Context, s ledger.Step) error {
	ctx, cancel := writing(ctx)
	defer cancel()
	return l.try(ctx, s)
}

// writing bounds one write behind, which the end of the process does not cut off.
func writing(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := storeTimeout
	if ctx.Err() != nil {
		limit = lastWrite
	}
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// try writes a step and notes whether the store is there.
func (l *ledgerWriter) try(ctx context.Context, s ledger.Step) error {
	select {
	case l.turns <- struct{}{}:
		defer func() { <-l.turns }()
	case <-ctx.Done():
		return handoff.Fault(handoff.CodeUnreachable, "the store", "an earlier step is on its way")
	}
	l.mu.Lock()
	moot := s.To == handoff.StatusAccepted && l.last.To != "" // it was dispatched meanwhile, which tells more
	l.mu.Unlock()
	if moot {
		return nil
	}
	err := l.advance(ctx, s)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = err != nil && retried(err)
	if err == nil {
		l.again, s.Again = false, false
		l.last = s
	}
	return err
}

// advance writes a step. Of a store that came back empty it makes first what the step leads on from. Who
// calls it has the turn.
func (l *ledgerWriter) advance(ctx context.Context, s ledger.Step) error {
	_, err := l.caller.router.ledger.Advance(ctx, s)
	if err == nil || handoff.AsError(err).Code != handoff.CodeNotFound {
		return err
	}
	l.mu.Lock()
	before := l.last
	l.mu.Unlock()
	if s.To == handoff.StatusDispatching && s.Attempt > 1 {
		before = s
		before.Attempt = 1
	}
	if before.To == "" || before.To == handoff.StatusDelivered {
		return err
	}
	if _, err := l.caller.router.ledger.Advance(ctx, before); err != nil {
		return err
	}
	_, err = l.caller.router.ledger.Advance(ctx, s)
	return err
}

// repeat writes the newest step again, unless another is on its way or all is said: it is found written, or
// the store came back empty and learns it. That also lets the entry of long work live on.
func (l *ledgerWriter) repeat(ctx context.Context) error {
	if l == nil {
		return nil
	}
	select {
	case l.turns <- struct{}{}:
		defer func() { <-l.turns }()
	default:
		return nil
	}
	l.mu.Lock()
	s, idle := l.last, !l.closed && len(l.pending) == 0
	l.mu.Unlock()
	if !idle || s.To == "" || s.To == handoff.StatusDelivered {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := l.advance(ctx, s)
	if err != nil && !retried(err) { // somebody else has it: no more of this
		l.mu.Lock()
		l.last = ledger.Step{}
		l.mu.Unlock()
	}
	return err
}

// retried reports whether the store may take the step later.
func retried(err error) bool { return handoff.AsError(err).Code == handoff.CodeUnreachable }

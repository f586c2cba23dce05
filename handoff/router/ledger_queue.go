package router

import (
	"context"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// A pendingStep is a step in the queue of a writer.
type pendingStep struct {
	ledger.Step
	done chan<- error // gets the result, and is closed; capacity 1
}

func (s pendingStep) finish(err error) {
	s.done <- err
	close(s.done)
}

// writeNow writes a step and waits for it, after all pending steps: the ledger gives a key to a new run only when it
// knows that nothing was sent for the former run. If this run has ended, or another run has its key, writeNow writes
// nothing: that happens to a note, for which the run does not wait.
func (l *ledgerWriter) writeNow(ctx context.Context, s ledger.Step) error {
	for more := true; more; {
		var err error
		if more, err = l.writeOldest(ctx); err != nil {
			return err
		}
	}
	l.mu.Lock()
	over := l.closed || l.facts.Outcome != ""
	l.known = l.known || !over // from here on the outcome is written, too, after this step
	l.mu.Unlock()
	if over {
		return handoff.Fault(handoff.CodeWorkEnded, "", "")
	}
	if err := l.takeSlot(ctx); err != nil {
		return err
	}
	defer l.freeSlot()
	l.mu.Lock()
	moot := s.To == handoff.StatusAccepted && l.last.To != "" // a later step was written meanwhile
	l.mu.Unlock()
	if moot {
		return nil
	}
	return l.send(ctx, s)
}

// enqueue adds a step to those that are written in the background. The ack is nil if the step will not be written.
func (l *ledgerWriter) enqueue(s ledger.Step) ack {
	l.mu.Lock()
	done, begin := l.enqueueLocked(s)
	l.mu.Unlock()
	if begin {
		l.caller.router.jobs.finally(l.write)
	}
	return done
}

// enqueueLocked is enqueue with the lock held. If it returns true, whoever calls it starts [ledgerWriter.write] after
// unlocking.
func (l *ledgerWriter) enqueueLocked(s ledger.Step) (ack, bool) {
	if l.closed {
		return nil, false
	}
	done := make(chan error, 1)
	l.known = true
	l.pending = append(l.pending, pendingStep{s, done})
	begin := !l.writing
	l.writing = true
	return done, begin
}

// write writes the pending steps, until none is left. When the process ends it tries once more; after a failure the
// next life finds the entry as it was.
func (l *ledgerWriter) write(ctx context.Context) {
	for try := 0; ; {
		limited, cancel := detached(ctx)
		wrote, err := l.writeOldest(limited)
		cancel()
		switch {
		case err != nil && ctx.Err() == nil:
			l.caller.router.cfg.Pause(ctx, try)
			try++
		case err != nil:
			l.caller.router.cfg.Log.Warn("the ledger was not written to the end", zap.String("handoff", l.owner), zap.Error(err))
			l.giveUp(err)
			return
		case wrote:
			try = 0
		case l.finishJob():
			return
		}
	}
}

// detached returns the context of one write in the background: it does not end with the process, and is bounded.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := storeTimeout
	if ctx.Err() != nil {
		limit = lastWrite
	}
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// writeOldest writes the oldest pending step. The steps of the run that had the key before come first. It reports
// whether there was a step. After an error the step stays, for another try.
func (l *ledgerWriter) writeOldest(ctx context.Context) (bool, error) {
	l.mu.Lock()
	former := l.former
	l.mu.Unlock()
	if former != nil {
		if wrote, err := former.writeOldest(ctx); wrote || err != nil {
			return wrote, err
		}
		l.mu.Lock()
		l.former = nil
		l.mu.Unlock()
	}
	if err := l.takeSlot(ctx); err != nil {
		return false, err
	}
	defer l.freeSlot()
	l.mu.Lock()
	if len(l.pending) == 0 {
		l.mu.Unlock()
		return false, nil
	}
	s := l.pending[0]
	l.mu.Unlock()
	err := l.send(ctx, s.Step)
	switch {
	case err != nil && retryable(err):
		return false, err
	case err != nil:
		l.caller.router.cfg.Log.Warn(
			"the ledger refused a step", zap.String("handoff", l.owner), zap.String("to", string(s.To)), zap.Error(err),
		)
	}
	if s.To == handoff.StatusDelivered {
		l.release()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) > 0 && l.pending[0].done == s.done { // else giveUp removed it meanwhile
		s.finish(err)
		l.pending = l.pending[1:]
	}
	return true, nil
}

// finishJob reports whether nothing is pending; then the job that writes ends.
func (l *ledgerWriter) finishJob() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writing = len(l.pending) > 0
	return !l.writing
}

// giveUp removes all pending steps, with an error: the next life of the process goes on from the entry as it is.
func (l *ledgerWriter) giveUp(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.pending {
		s.finish(err)
	}
	l.pending, l.closed = nil, true
}

// takeSlot waits until no other step is on its way to the store. [ledgerWriter.freeSlot] must follow.
func (l *ledgerWriter) takeSlot(ctx context.Context) error {
	select {
	case l.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return handoff.Fault(handoff.CodeUnreachable, "the store", "an earlier step is on its way")
	}
}

func (l *ledgerWriter) freeSlot() { <-l.slot }

// send writes a step, and notes whether the store is away. Its caller has the slot.
func (l *ledgerWriter) send(ctx context.Context, s ledger.Step) error {
	err := l.advance(ctx, s)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = err != nil && retryable(err)
	if err == nil {
		l.again, s.Again = false, false
		l.last = s
	}
	return err
}

// advance writes a step. If the store came back empty, it first writes the step before again, without which the store
// would refuse this one. Its caller has the slot.
func (l *ledgerWriter) advance(ctx context.Context, s ledger.Step) error {
	_, err := l.caller.router.cfg.Ledger.Advance(ctx, s)
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
	if _, err := l.caller.router.cfg.Ledger.Advance(ctx, before); err != nil {
		return err
	}
	_, err = l.caller.router.cfg.Ledger.Advance(ctx, s)
	return err
}

// repeat writes the newest step again, unless another is on its way or pending, or the handoff is delivered. That
// changes nothing in a store that has it, except that the entry of long work does not expire; a store that came back
// empty learns it.
func (l *ledgerWriter) repeat(ctx context.Context) error {
	if l == nil {
		return nil
	}
	select {
	case l.slot <- struct{}{}:
		defer func() { <-l.slot }()
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
	if err != nil && !retryable(err) { // somebody else owns the entry: do not repeat the step any more
		l.mu.Lock()
		l.last = ledger.Step{}
		l.mu.Unlock()
	}
	return err
}

// retryable reports whether the store may take the step later.
func retryable(err error) bool { return handoff.AsError(err).Code == handoff.CodeUnreachable }

package router

import (
	"context"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// A pendingStep is a step that is written behind.
type pendingStep struct {
	ledger.Step
	done chan<- error // gets what became of it, and is closed; holds one
}

func (s pendingStep) tell(err error) {
	s.done <- err
	close(s.done)
}

// first writes a step that is waited for, after all that is pending: the ledger gives a key anew only when it knows
// that nothing ran for whoever had it before. Of a run that has ended meanwhile, or whose key another has, it writes
// nothing: a note is on its way beside the loop, and its run does not wait for it.
func (l *ledgerWriter) first(ctx context.Context, s ledger.Step) error {
	for more := true; more; {
		var err error
		if more, err = l.writeOldest(ctx); err != nil {
			return err
		}
	}
	l.mu.Lock()
	over := l.closed || l.facts.Outcome != ""
	l.known = l.known || !over // from here on the outcome is written behind it
	l.mu.Unlock()
	if over {
		return handoff.Fault(handoff.CodeWorkEnded, "", "")
	}
	if err := l.takeSlot(ctx); err != nil {
		return err
	}
	defer l.freeSlot()
	l.mu.Lock()
	moot := s.To == handoff.StatusAccepted && l.last.To != "" // it was dispatched meanwhile, which tells more
	l.mu.Unlock()
	if moot {
		return nil
	}
	return l.send(ctx, s)
}

// behind adds a step to what is written in the background. The ack is nil when it will not be.
func (l *ledgerWriter) behind(s ledger.Step) ack {
	l.mu.Lock()
	done, begin := l.addLocked(s)
	l.mu.Unlock()
	if begin {
		l.caller.router.jobs.finally(l.write)
	}
	return done
}

// addLocked is behind for a caller that has the lock. True: the caller begins to write, without the lock.
func (l *ledgerWriter) addLocked(s ledger.Step) (ack, bool) {
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

// write writes what is pending, until nothing is. When the process ends it tries once more and leaves the
// rest: the next life finds the entry as it was.
func (l *ledgerWriter) write(ctx context.Context) {
	for try := 0; ; {
		limited, cancel := detached(ctx)
		wrote, err := l.writeOldest(limited)
		cancel()
		switch {
		case err != nil && ctx.Err() == nil:
			l.caller.router.pause(ctx, try)
			try++
		case err != nil:
			l.caller.router.cfg.Log.Warn("the ledger was not written to the end", zap.String("handoff", l.owner), zap.Error(err))
			l.giveUp(err)
			return
		case wrote:
			try = 0
		case l.allWritten():
			return
		}
	}
}

// detached bounds one write behind, which the end of the process does not cut off.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := storeTimeout
	if ctx.Err() != nil {
		limit = lastWrite
	}
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// writeOldest writes the oldest step that is pending; those of the run that had the key before come first. It reports
// whether there was one. An error means that it stays, for another try.
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
	case err != nil && retried(err):
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
	if len(l.pending) > 0 && l.pending[0].done == s.done { // else it was given up meanwhile
		s.tell(err)
		l.pending = l.pending[1:]
	}
	return true, nil
}

// allWritten ends the job that writes, unless there is more to write.
func (l *ledgerWriter) allWritten() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writing = len(l.pending) > 0
	return !l.writing
}

// giveUp leaves what is pending to the next life of the process.
func (l *ledgerWriter) giveUp(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.pending {
		s.tell(err)
	}
	l.pending, l.closed = nil, true
}

// takeSlot waits until no other step is on its way to the store. Whoever has the slot frees it.
func (l *ledgerWriter) takeSlot(ctx context.Context) error {
	select {
	case l.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return handoff.Fault(handoff.CodeUnreachable, "the store", "an earlier step is on its way")
	}
}

func (l *ledgerWriter) freeSlot() { <-l.slot }

// send writes a step and notes whether the store is there. Its caller has the slot.
func (l *ledgerWriter) send(ctx context.Context, s ledger.Step) error {
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

// advance writes a step. Of a store that came back empty it makes first what the step leads on from. Its
// caller has the slot.
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

// repeat writes the newest step again, unless another is on its way or all is said: it is found written, or
// the store came back empty and learns it. That also lets the entry of long work live on.
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
	if err != nil && !retried(err) { // somebody else has it: no more of this
		l.mu.Lock()
		l.last = ledger.Step{}
		l.mu.Unlock()
	}
	return err
}

// retried reports whether the store may take the step later.
func retried(err error) bool { return handoff.AsError(err).Code == handoff.CodeUnreachable }

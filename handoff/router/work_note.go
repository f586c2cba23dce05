package router

import (
	"context"
	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/phase"
	"time"
)

// notedWithin bounds how long words wait to be noted before the caller is told that they cannot be: with the
// time in which a result is the answer, three and a half seconds of silence at most.
const notedWithin = 2 * time.Second

// note puts it into the ledger that words were taken which are not sent yet: what the caller is told of them is
// a promise, which a process that is killed must not forget.
func (w *work) note() {
	if w.line == nil {
		w.Step(phase.FactNoted)
		return
	}
	if w.noting {
		return
	}
	w.noting = true
	target := w.target
	if target == (handoff.Target{}) {
		target = handoff.Target{Server: w.req.Target.Server, Thread: w.req.Target.Thread}
	}
	w.line.words(ledger.Body{Prompt: w.prompt()})
	line, facts := w.line, ledger.Facts{
		CallID: ledger.Hash(w.req.Key), ClientID: w.ID, Target: target, Prompt: w.prompt(), Title: w.rec.Title, Why: w.rec.Why,
	}
	w.background(notedWithin, func(ctx context.Context) func() {
		err := line.note(ctx, facts)
		for try := 0; err != nil && retried(err) && w.r.pause(ctx, try); try++ {
			err = line.note(ctx, facts)
		}
		return func() {
			w.noting = false
			if err != nil {
				w.fail(phase.FactUnnoted, unwritten(ctx, err))
				return
			}
			w.Step(phase.FactNoted)
		}
	})
}

// noted tells the owner loop that the ledger has an entry. An error means that the work is over: nothing may
// be sent any more.
func (w *work) noted(ctx context.Context) error {
	if !w.report(ctx, func() { w.Step(phase.FactNoted) }) {
		return handoff.Fault(handoff.CodeShutdown, "", "the work is over")
	}
	return nil
}

// unwritten says what it means that the ledger did not take a step.
func unwritten(ctx context.Context, err error) error {
	if retried(err) || ctx.Err() != nil {
		return handoff.Fault(handoff.CodeStoreDown, "", err.Error())
	}
	return err
}

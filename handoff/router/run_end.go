package router

import (
	"context"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/phase"
	"switchboard/handoff/wording"
)

// finish closes the record with its outcome. The thread is free from here on: the caller may answer the
// outcome before it is detached.
func (r *run) finish(fault *handoff.Error) {
	r.router.cfg.Queues.leave(append(r.claim.held, r.claim.awaited), r.ID)
	fault = outcomeFault(r.state, fault, r.rec)
	if codeOf(fault) == handoff.CodeShutdown && r.state.Outcome == handoff.OutcomeCancelled && r.state.Noted {
		// They were promised, and the next life of the process asks about them: as after a kill.
		fault = handoff.Fault(handoff.CodeNotBegun, r.rec.Server, "the process ended before it began")
	}
	if r.state.Phase == phase.Writing && r.state.Outcome != handoff.OutcomeUnknown {
		for _, it := range r.rec.Items { // the turn has ended: what it did not finish saying never counts
			if it.State == itemRunning && it.Kind == handoff.ItemMessage {
				r.caller.registry.drop(r.ID, it.ID)
			}
		}
	}
	r.rec, _ = r.caller.registry.find(r.ID)
	at, tests := time.Now(), handoff.TestsOf(r.rec.Items)
	ended := func(rec *handoff.Record) {
		rec.State, rec.Outcome = handoff.StatusCompleted, r.state.Outcome
		rec.Error, rec.Fault = recordError(fault), fault
		rec.Paused = rec.NotBegun()
		rec.EndedAt, rec.Tested = &at, tests
		rec.Spoken = wording.English.OutcomeSentence(*rec)
		for i := range rec.Items {
			if rec.Items[i].State == itemRunning {
				rec.Items[i].State = itemFailed
			}
		}
	}
	ended(&r.rec)
	r.caller.registry.with(r.ID, func(rec *recordState) {
		if rec.attempt = r.attempt.number; !r.rec.Paused {
			rec.waiting = ""
		} else if rec.waiting == "" { // it waited for less time than it takes to note it
			rec.waiting = waitingOf(r.req)
		}
	})
	if codeOf(fault) == handoff.CodeShutdown && r.state.Outcome == handoff.OutcomeUnknown {
		r.writer.leave() // the next life of the process finds it and tells how it ended
	} else {
		body := ledger.Body{Text: r.rec.Text, Did: deedsOf(r.rec)}
		if !r.state.Inherited { // else the entry has only its first words
			body.Prompt = handoff.InputText(r.req.Input)
		}
		if r.rec.Paused {
			body.Request = waitingOf(r.req)
		}
		r.writer.words(body)
		facts := r.facts(r.target)
		facts.CallID, facts.Outcome, facts.Code, facts.Spoken = "", r.state.Outcome, codeOf(fault), r.rec.Spoken
		facts.Tests = tests
		r.outcomeAck = r.writer.completed(facts)
	}
	r.show(ended) // from here on it can be heard, which is written behind it
	r.caller.closeQuestions(r.ID)
}

// outcomeFault is why an outcome is no result, or one that could not be read: what is known of it, if anything went
// wrong at all.
func outcomeFault(s phase.State, known *handoff.Error, rec handoff.Record) *handoff.Error {
	switch {
	case s.Outcome == handoff.OutcomeResult && codeOf(known) == handoff.CodeUnread,
		s.Outcome == handoff.OutcomeInterrupted && codeOf(known) == handoff.CodeAgentEnded:
		return known
	case s.Outcome == handoff.OutcomeResult, s.Outcome == handoff.OutcomeInterrupted:
		return nil
	case s.Outcome == handoff.OutcomeCancelled && s.Stopping: // that is what the caller wanted
		return nil
	case known == nil && s.Outcome == handoff.OutcomeUnknown:
		known = handoff.Fault(handoff.CodeAgentGone, rec.Server, "")
	}
	if codeOf(known) == handoff.CodeAgentGone && rec.EndsWithUs {
		known = handoff.Fault(handoff.CodeAgentEnded, known.Subject, known.Detail)
	}
	return known
}

// outcome waits until an outcome is in the ledger, for a short time.
func (a ack) outcome(ctx context.Context, log *zap.Logger) phase.Fact {
	if a == nil {
		return phase.FactWritten
	}
	t := time.NewTimer(ackWithin)
	defer t.Stop()
	select {
	case err := <-a:
		switch handoff.CodeOf(err) {
		case "":
			return phase.FactWritten
		case handoff.CodeTakenOver:
			return phase.FactTakenOver
		}
	case <-t.C:
		log.Warn("an outcome is told before it is written")
	case <-ctx.Done():
	}
	return phase.FactUnwritten
}

func codeOf(e *handoff.Error) handoff.Code {
	if e == nil {
		return ""
	}
	return e.Code
}

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

// finish closes the record with its outcome. From here on other runs may use the thread, before it is detached: the
// caller may answer the outcome at once.
func (r *run) finish(fault *handoff.Error) {
	r.router.cfg.Queues.leave(append(r.claim.held, r.claim.awaited), r.ID)
	fault = outcomeFault(r.state, fault, r.rec)
	if codeOf(fault) == handoff.CodeShutdown && r.state.Outcome == handoff.OutcomeCancelled && r.state.Noted {
		// The words were promised, and the next life of the process asks the caller about them, as after a kill.
		fault = handoff.Fault(handoff.CodeNotBegun, r.rec.Server, "the process ended before it began")
	}
	if r.state.Phase == phase.Writing && r.state.Outcome != handoff.OutcomeUnknown {
		for _, it := range r.rec.Items { // the turn has ended: unfinished messages are dropped
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
		if rec.attempts = r.attempt.number; !r.rec.Paused {
			rec.request = ""
		} else if rec.request == "" { // it was paused before its words were noted
			rec.request = encodeRequest(r.req)
		}
	})
	if codeOf(fault) == handoff.CodeShutdown && r.state.Outcome == handoff.OutcomeUnknown {
		r.writer.close() // the next life of the process finds the entry and tells how the turn ended
	} else {
		body := ledger.Body{Text: r.rec.Text, Did: encodeDetails(r.rec)}
		if !r.state.Inherited { // else req has the prompt only as far as the entry does
			body.Prompt = handoff.InputText(r.req.Input)
		}
		if r.rec.Paused {
			body.Request = encodeRequest(r.req)
		}
		r.writer.setBody(body)
		facts := r.facts(r.target)
		facts.Outcome, facts.Code, facts.Spoken = r.state.Outcome, codeOf(fault), r.rec.Spoken
		facts.Tests = tests
		r.outcomeAck = r.writer.completed(facts)
	}
	r.show(ended) // from here on it can be heard; that step comes after the outcome
	r.caller.closeQuestions(r.ID)
}

// outcomeFault returns the fault that belongs to an outcome; nil if there is nothing to explain. known is the fault of
// the fact that ended the run.
func outcomeFault(s phase.State, known *handoff.Error, rec handoff.Record) *handoff.Error {
	switch {
	case s.Outcome == handoff.OutcomeResult && codeOf(known) == handoff.CodeUnread,
		s.Outcome == handoff.OutcomeInterrupted && codeOf(known) == handoff.CodeAgentEnded:
		return known
	case s.Outcome == handoff.OutcomeResult, s.Outcome == handoff.OutcomeInterrupted:
		return nil
	case s.Outcome == handoff.OutcomeCancelled && s.Stopping: // the caller wanted it
		return nil
	case known == nil && s.Outcome == handoff.OutcomeUnknown:
		known = handoff.Fault(handoff.CodeAgentGone, rec.Server, "")
	}
	if codeOf(known) == handoff.CodeAgentGone && rec.EndsWithUs {
		known = handoff.Fault(handoff.CodeAgentEnded, known.Subject, known.Detail)
	}
	return known
}

// outcome waits until the outcome is in the ledger, for [ackWithin] at most, and returns the fact of that.
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
		log.Warn("an outcome is published before it is written")
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

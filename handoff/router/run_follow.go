package router

import (
	"cmp"
	"context"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/phase"
)

// seenWithin is how long an acknowledged turn may take to show itself: until then its id is a promise, and
// servers are known that forgot it.
const seenWithin = 10 * time.Second

// A watch is the state of one attempt to follow a turn to its end.
type watch struct {
	ctx    context.Context // Set once: of the action
	unseen *time.Timer     // Set once: runs until the acknowledged turn shows itself
	silent *time.Timer     // Set once: runs while the turn reports nothing
}

// follow watches the turn to its end, and tells the runs that wait for the thread that this one runs. When ctx ends,
// the turn goes on.
func (r *run) follow(ctx context.Context) (phase.Fact, *handoff.Error) {
	r.advance(handoff.StatusStarted)
	r.writer.started(r.turn, r.rec.Why)
	agent, turn, server := r.attached.Agent, r.turn, r.target.Server
	controls, _ := agent.(handoff.Controls)
	if r.state.Merged { // a turn of somebody else takes no more words of ours
		controls = nil
	}
	r.router.queues.running(r.claims, r.ID, runningTurn{turn, controls, r.target, r.rec.Title})
	w := r.watch(ctx)
	defer w.silent.Stop()
	defer w.unseen.Stop()
	fact, fault := phase.FactNothing, (*handoff.Error)(nil)
	current := r.outside(ctx, func() {
		for u, err := range agent.Follow(ctx, turn) {
			if err != nil {
				fault = handoff.AsError(err)
				return
			}
			if fact, fault = r.reported(w, u); fact != phase.FactNothing || ctx.Err() != nil {
				return
			}
		}
		fault = handoff.Fault(handoff.CodeAgentGone, server, "the updates ended before the turn")
	})
	if !current {
		return phase.FactNothing, nil
	}
	if fact == phase.FactNothing { // the questions that were open come again when the agent is back, and are asked anew
		if fact = phase.FactAgentGone; fault.Code == handoff.CodeTurnGone {
			fact = phase.FactTurnGone
		}
		r.closeQuestions()
		r.router.queues.running(r.claims, r.ID, runningTurn{})
	}
	return fact, fault
}

// watch begins the timers of a following.
func (r *run) watch(ctx context.Context) *watch {
	w := &watch{ctx: ctx}
	w.unseen = time.AfterFunc(seenWithin, func() { r.lapsed(w, phase.FactUnseen) })
	if r.state.Seen {
		w.unseen.Stop()
	}
	w.silent = time.AfterFunc(r.router.silence, func() { r.lapsed(w, phase.FactSilent) })
	return w
}

// lapsed: a time has passed in which something should have been reported. A turn that waits for the caller has a
// reason to report nothing.
func (r *run) lapsed(w *watch, f phase.Fact) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case w.ctx.Err() != nil:
		return
	case f == phase.FactSilent && len(r.caller.questions.of(r.ID)) > 0:
		w.silent.Reset(r.router.silence)
		return
	case f == phase.FactUnseen:
		r.router.queues.running(r.claims, r.ID, runningTurn{})
	}
	r.step(f, nil)
}

// reported takes one report of the agent: to the page as it is, to who listens as remarks. It returns how the turn
// ended, if it did.
func (r *run) reported(w *watch, u handoff.Update) (phase.Fact, *handoff.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.ctx.Err() != nil {
		return phase.FactNothing, nil
	}
	r.lost, r.rejoins = time.Time{}, 0
	w.silent.Reset(r.router.silence)
	if !r.state.Seen {
		w.unseen.Stop()
		r.step(phase.FactSeen, nil)
	}
	switch u := u.(type) {
	case handoff.ItemStarted:
		r.flushRemark()
		r.publish(handoff.RunDoing{ID: u.Item.ID, Item: u.Item.Kind, Text: u.Item.Text})
		r.caller.registry.item(r.ID, shownItem(u.Item, itemRunning))
	case handoff.Delta:
		r.caller.registry.delta(r.ID, u)
	case handoff.ItemDone:
		r.itemDone(u.Item)
	case handoff.ItemDropped:
		r.caller.registry.drop(r.ID, u.ItemID)
		r.caller.registry.record(r.ID, handoff.RunDropped(u))
	case handoff.Usage:
		r.caller.registry.record(r.ID, handoff.RunUsage{Usage: u})
	case handoff.Question:
		r.question(u)
	case handoff.QuestionClosed:
		r.caller.withdrawn(u.ID)
	case handoff.TurnEnded:
		return r.turnEnded(u)
	}
	return phase.FactNothing, nil
}

// itemDone shows a finished item. One that is reported again after a loss is no news.
func (r *run) itemDone(it handoff.Item) {
	r.flushRemark()
	news := r.finished.Add(it.ID)
	if news && it.Kind == handoff.ItemMessage {
		r.held = it.Text
	}
	state := itemDone
	if it.Failed || (it.Exit != nil && *it.Exit != 0) {
		state = itemFailed
	}
	r.caller.registry.item(r.ID, shownItem(it, state))
	if news {
		r.caller.registry.record(r.ID, handoff.RunItem{Item: it})
	}
}

// flushRemark reports the message that was held back: something came after it, so it was not the final one.
func (r *run) flushRemark() {
	if r.held != "" {
		r.publish(handoff.RunRemark{Text: r.held})
	}
	r.held = ""
}

func (r *run) turnEnded(u handoff.TurnEnded) (phase.Fact, *handoff.Error) {
	text := cmp.Or(u.Text, r.held)
	r.show(func(rec *handoff.Record) { rec.Text, rec.Undelivered = text, u.Undelivered })
	switch u.Status {
	case handoff.TurnCompleted:
		if u.Code == handoff.CodeUnread {
			return phase.FactTurnCompleted, handoff.Fault(u.Code, r.rec.Server, u.Detail)
		}
		return phase.FactTurnCompleted, nil
	case handoff.TurnInterrupted:
		if u.Code == handoff.CodeAgentEnded { // else somebody stopped it
			return phase.FactTurnInterrupted, handoff.Fault(u.Code, r.rec.Server, u.Detail)
		}
		return phase.FactTurnInterrupted, nil
	}
	return phase.FactTurnFailed, handoff.Fault(cmp.Or(u.Code, handoff.CodeAgentFailed), r.rec.Server, u.Detail)
}

func shownItem(it handoff.Item, state string) handoff.RecordItem {
	return handoff.RecordItem{ID: it.ID, Kind: it.Kind, Text: it.Text, Output: it.Output, Exit: it.Exit, Changes: it.Changes, State: state}
}

package router

import (
	"cmp"
	"context"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/phase"
)

// seenWithin is how long an acknowledged turn may take until its first update: a server may acknowledge a turn, and
// forget it before it begins.
const seenWithin = 10 * time.Second

// A turnWatcher follows the turn of a run to its end, and reconnects when the agent is lost. Guarded by the mu of the
// run.
type turnWatcher struct {
	run         *run          // Set once
	unseen      *time.Timer   // of the current follow: fires unless an update of the turn comes
	silent      *time.Timer   // of the current follow: fires when the turn reports nothing for a time
	lastMessage string        // the newest message, not published while it may be the final one
	reported    handoff.IDSet // finished items, to recognise those that are reported again
	reconnects  int           // tries to reconnect since the last update
	lostAt      time.Time     // when the agent was lost; zero while it is there
}

// follow watches the turn to its end. Runs that wait for the thread may give it more words meanwhile. When ctx ends,
// the turn goes on.
func (w *turnWatcher) follow(ctx context.Context) (phase.Fact, *handoff.Error) {
	r := w.run
	r.advance(handoff.StatusStarted)
	r.writer.started(r.turn, r.rec.Why)
	agent, turn, server := r.attached.Agent, r.turn, r.target.Server
	controls, _ := agent.(handoff.Controls)
	if r.state.Merged { // no more words go into a turn of somebody else
		controls = nil
	}
	r.router.cfg.Queues.running(r.claim.held, r.ID, runningTurn{turn, controls, r.target, r.rec.Title})
	unseen := time.AfterFunc(seenWithin, func() { w.lapsed(ctx, phase.FactUnseen) })
	defer unseen.Stop()
	if r.state.Seen {
		unseen.Stop()
	}
	silent := time.AfterFunc(r.router.cfg.Silence, func() { w.lapsed(ctx, phase.FactSilent) })
	defer silent.Stop()
	w.unseen, w.silent = unseen, silent
	fact, fault := phase.FactNothing, (*handoff.Error)(nil)
	current := r.unlocked(ctx, func() {
		for u, err := range agent.Follow(ctx, turn) {
			if err != nil {
				fault = handoff.AsError(err)
				return
			}
			if fact, fault = w.update(ctx, u); fact != phase.FactNothing || ctx.Err() != nil {
				return
			}
		}
		fault = handoff.Fault(handoff.CodeAgentGone, server, "the updates ended before the turn")
	})
	if !current {
		return phase.FactNothing, nil
	}
	if fact == phase.FactNothing { // the agent sends its open questions again when it is back
		if fact = phase.FactAgentGone; fault.Code == handoff.CodeTurnGone {
			fact = phase.FactTurnGone
		}
		r.caller.closeQuestions(r.ID)
		r.router.cfg.Queues.running(r.claim.held, r.ID, runningTurn{})
	}
	return fact, fault
}

// lapsed applies the fact that the turn reported nothing for a time, f; a turn that waits for the caller's answer is
// not silent.
func (w *turnWatcher) lapsed(ctx context.Context, f phase.Fact) {
	r := w.run
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return
	case f == phase.FactSilent && len(r.caller.questions.of(r.ID)) > 0:
		w.silent.Reset(r.router.cfg.Silence)
		return
	case f == phase.FactUnseen:
		r.router.cfg.Queues.running(r.claim.held, r.ID, runningTurn{})
	}
	r.step(f, nil)
}

// update handles one update of the agent: pages get it as it is, listeners get remarks. It returns how the turn ended,
// or [phase.FactNothing].
func (w *turnWatcher) update(ctx context.Context, u handoff.Update) (phase.Fact, *handoff.Error) {
	r := w.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil {
		return phase.FactNothing, nil
	}
	w.lostAt, w.reconnects = time.Time{}, 0
	w.silent.Reset(r.router.cfg.Silence)
	if !r.state.Seen {
		w.unseen.Stop()
		r.step(phase.FactSeen, nil)
	}
	switch u := u.(type) {
	case handoff.ItemStarted:
		w.flushRemark()
		r.publish(handoff.RunDoing{ID: u.Item.ID, Item: u.Item.Kind, Text: u.Item.Text})
		r.caller.registry.item(r.ID, shownItem(u.Item, itemRunning))
	case handoff.Delta:
		r.caller.registry.delta(r.ID, u)
	case handoff.ItemDone:
		w.itemDone(u.Item)
	case handoff.ItemDropped:
		r.caller.registry.drop(r.ID, u.ItemID)
		r.caller.registry.record(r.ID, handoff.RunDropped(u))
	case handoff.Usage:
		r.caller.registry.record(r.ID, handoff.RunUsage{Usage: u})
	case handoff.Question:
		w.question(u)
	case handoff.QuestionClosed:
		r.caller.withdrawn(u.ID)
	case handoff.TurnEnded:
		return w.turnEnded(u)
	}
	return phase.FactNothing, nil
}

// itemDone shows a finished item. An item that the agent reports again after a loss is shown, and not published again.
func (w *turnWatcher) itemDone(it handoff.Item) {
	r := w.run
	w.flushRemark()
	first := w.reported.Add(it.ID)
	if first && it.Kind == handoff.ItemMessage {
		w.lastMessage = it.Text
	}
	state := itemDone
	if it.Failed || (it.Exit != nil && *it.Exit != 0) {
		state = itemFailed
	}
	r.caller.registry.item(r.ID, shownItem(it, state))
	if first {
		r.caller.registry.record(r.ID, handoff.RunItem{Item: it})
	}
}

// flushRemark publishes the last message: an item came after it, so it was not the final one.
func (w *turnWatcher) flushRemark() {
	if w.lastMessage != "" {
		w.run.publish(handoff.RunRemark{Text: w.lastMessage})
	}
	w.lastMessage = ""
}

func (w *turnWatcher) turnEnded(u handoff.TurnEnded) (phase.Fact, *handoff.Error) {
	r := w.run
	text := cmp.Or(u.Text, w.lastMessage)
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
	return handoff.RecordItem{
		ID: it.ID, Kind: it.Kind, Text: it.Text, Output: it.Output, Exit: it.Exit, Changes: it.Changes, State: state,
	}
}

// question asks the caller what the agent asks.
func (w *turnWatcher) question(q handoff.Question) {
	r := w.run
	controls, ok := r.attached.Agent.(handoff.Controls)
	if !ok || r.state.Merged { // whoever started the turn answers its questions
		return
	}
	_, replies := r.attached.Agent.(handoff.Replier)
	r.caller.ask(r, &question{
		OpenQuestion: handoff.OpenQuestion{
			Question: q, Workspace: r.attached.Workspace, Level: r.attached.VoiceApprovals,
		},
		replies: replies, controls: controls,
	})
}

// reconnect tries to attach the thread until it succeeds or Patience is over. Then the same turn is followed again;
// reconnect never starts one.
func (w *turnWatcher) reconnect(ctx context.Context) (phase.Fact, *handoff.Error) {
	r := w.run
	if w.lostAt.IsZero() {
		w.lostAt = time.Now()
		r.publish(handoff.RunLost{})
	}
	target, until, first := r.target, w.lostAt.Add(r.router.cfg.Patience), w.reconnects
	w.reconnects++
	var at handoff.Attached
	var err error
	if !r.unlocked(ctx, func() {
		for try := first; r.router.cfg.Pause(ctx, try); try++ {
			at, err = r.agents.again(ctx, target)
			late := !time.Now().Before(until)
			if err == nil && late {
				err = handoff.Fault(handoff.CodeAgentGone, target.Server, "the turn cannot be followed any more")
			}
			if err == nil || late || permanent(err) {
				return
			}
			r.log.Debug("agent not reached", zap.Int("try", try), zap.Error(err))
		}
	}) {
		return phase.FactNothing, nil
	}
	if err != nil {
		return phase.FactReconnectFailed, handoff.Because(handoff.CodeAgentGone, target.Server, err)
	}
	r.setAttached(at)
	return phase.FactReconnected, nil
}

// reconcile finds out whether a turn began after a start whose acknowledgement was lost, or which had no updates.
func (r *run) reconcile(ctx context.Context) (phase.Fact, *handoff.Error) {
	target, after, until := r.target, r.attempt.before, time.Now().Add(r.router.cfg.Patience)
	var at handoff.Attached
	var turn handoff.TurnID
	var err error
	joined := func() bool { return err != nil && handoff.AsError(err).Code == handoff.CodeJoined && turn != "" }
	if !r.unlocked(ctx, func() {
		for try := 0; r.router.cfg.Pause(ctx, try); try++ {
			at, turn, err = r.agents.lookFor(ctx, target, after, r.ID)
			if err == nil || joined() || permanent(err) || time.Now().After(until) {
				return
			}
			r.log.Debug("start not reconciled", zap.Int("try", try), zap.Error(err))
		}
	}) {
		return phase.FactNothing, nil
	}
	if err != nil && !joined() {
		return phase.FactNotReconciled, handoff.Because(handoff.CodeUnknownStart, target.Server, err)
	}
	r.setAttached(at)
	if joined() {
		return r.merged(turn)
	}
	if r.state.Merged { // it was not a turn of somebody else
		r.show(func(rec *handoff.Record) { rec.Why = handoff.WhyContinued })
	}
	switch {
	case turn == "" && r.state.Inherited:
		return phase.FactNeverRan, handoff.Fault(
			handoff.CodeUnknownStart, target.Server, "a former life of this process was about to start it")
	case turn == "": // the fault counts if the words are not sent again
		return phase.FactNeverRan, handoff.Fault(
			handoff.CodeUnreachable, target.Server, "the start was lost twice; nothing runs")
	}
	r.turn = turn
	return phase.FactAdopted, nil
}

// permanent reports whether trying again cannot help.
func permanent(err error) bool {
	switch handoff.AsError(err).Code {
	case handoff.CodeSessionGone, handoff.CodeSessionArchived, handoff.CodeSessionMismatch, handoff.CodeSessionElsewhere,
		handoff.CodeUnknownServer, handoff.CodeUnknownSession, handoff.CodeRefused, handoff.CodeUnsupported,
		handoff.CodeUnknownStart, handoff.CodeMalformed:
		return true
	}
	return false
}

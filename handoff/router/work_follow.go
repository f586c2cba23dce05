package router

import (
	"cmp"
	"context"
	"slices"
	"switchboard/handoff"
	"switchboard/handoff/phase"
	"switchboard/handoff/risk"
	"time"

	"go.uber.org/zap"
)

// follow begins to watch the turn and tells those who wait that it runs.
func (w *work) follow() {
	w.unfollow()
	ctx, stop := context.WithCancel(w.ioCtx)
	w.watch = watch{number: w.watch.number + 1, stop: stop}
	number, agent, turn, server := w.watch.number, w.attached.Agent, w.turn, w.target.Server
	controls, _ := agent.(handoff.Controls)
	if w.state.Merged { // a turn of somebody else takes no more words of ours
		controls = nil
	}
	w.r.lanes.running(w.claims, w.ID, turn, controls, w.target, w.rec.Title)
	if !w.state.Seen {
		w.unseen.Reset(seenWithin)
	}
	w.silent.Reset(w.r.silence)
	w.io.Go(func() {
		defer stop()
		w.watchTurn(ctx, number, agent, turn, server)
	})
}

// unfollow leaves the turn, which is not touched by it.
func (w *work) unfollow() {
	if w.watch.stop != nil {
		w.watch.stop()
		w.watch = watch{number: w.watch.number + 1}
	}
	w.unseen.Stop()
	w.silent.Stop()
	w.r.lanes.running(w.claims, w.ID, "", nil, handoff.Target{}, "")
}

// watchTurn hands every update to the owner loop, in order.
func (w *work) watchTurn(ctx context.Context, number int, agent handoff.Agent, turn handoff.TurnID, server string) {
	hand := func(fn func()) bool {
		return w.report(ctx, func() {
			if number == w.watch.number {
				fn()
			}
		})
	}
	for u, err := range agent.Follow(ctx, turn) {
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			hand(func() { w.gone(err) })
			return
		}
		if !hand(func() { w.update(u) }) {
			return
		}
		if _, last := u.(handoff.TurnEnded); last {
			return
		}
	}
	hand(func() { w.gone(handoff.Fault(handoff.CodeAgentGone, server, "the updates ended before the turn")) })
}

// gone: the questions that were open come again when the agent is back, and are asked anew.
func (w *work) gone(err error) {
	for _, q := range w.book.questionsOf(w.ID) {
		w.questionClosed(q.shown.ID)
	}
	w.fail(phase.FactAgentGone, err)
}

// update takes one report of the agent: to the page as it is, to the voice model as remarks.
func (w *work) update(u handoff.Update) {
	w.alive()
	switch u := u.(type) {
	case handoff.ItemStarted:
		w.flushRemark()
		w.publish(handoff.RunDoing{Item: u.Item.Kind, Text: u.Item.Text})
		w.book.item(w.ID, shownItem(u.Item, itemRunning))
	case handoff.Delta:
		w.book.delta(w.ID, u.ItemID, u.Text)
	case handoff.ItemDone:
		w.itemDone(u.Item)
	case handoff.ItemDropped:
		w.book.drop(w.ID, u.ItemID)
	case handoff.Question:
		w.question(u)
	case handoff.QuestionClosed:
		w.questionClosed(u.ID)
	case handoff.TurnEnded:
		w.turnEnded(u)
	}
}

// alive notes that the turn reported something: it runs, and the agent is there.
func (w *work) alive() {
	w.lost, w.rejoins, w.fault = time.Time{}, 0, nil
	w.silent.Reset(w.r.silence)
	if !w.state.Seen {
		w.unseen.Stop()
		w.Step(phase.FactSeen)
	}
}

// fellSilent: a turn that waits for the caller has a reason to report nothing.
func (w *work) fellSilent() {
	if len(w.book.questionsOf(w.ID)) > 0 {
		w.silent.Reset(w.r.silence)
		return
	}
	w.Step(phase.FactSilent)
}

// itemDone shows a finished item. One that is reported again after a loss is no news.
func (w *work) itemDone(it handoff.Item) {
	w.flushRemark()
	if w.reported.add(it.ID) && it.Kind == handoff.ItemMessage {
		w.held = it.Text
	}
	state := itemDone
	if it.Failed || (it.Exit != nil && *it.Exit != 0) {
		state = itemFailed
	}
	w.book.item(w.ID, shownItem(it, state))
}

// flushRemark reports the message that was held back: something came after it, so it was not the final one.
func (w *work) flushRemark() {
	if w.held != "" {
		w.publish(handoff.RunRemark{Text: w.held})
	}
	w.held = ""
}

func (w *work) question(q handoff.Question) {
	controls, ok := w.attached.Agent.(handoff.Controls)
	if !ok || w.state.Merged { // others answer what others are asked
		return
	}
	_, replies := w.attached.Agent.(handoff.Replier)
	w.askCaller(askedQ{question: q, workspace: w.attached.Workspace, level: w.attached.VoiceApprovals, replies: replies}, controls)
}

// askCaller asks in the call, on the page, and later outside; when nobody answers for long it is a no.
func (w *work) askCaller(a askedQ, controls handoff.Controls) {
	q := a.question
	a.shown = handoff.RecordQuestion{
		ID: q.ID, Handoff: w.ID, Server: w.rec.Server, Title: w.rec.Title, Kind: q.Kind, Text: q.Text, Command: q.Command,
		Cwd: q.Cwd, Reason: q.Reason, Changes: q.Changes, Decisions: q.Decisions,
		Words: q.Words && a.replies, Asks: q.Asks, Beyond: q.Beyond, Asked: q.Asked,
	}
	a.shown.Tap = a.tapReason()
	a.shown.Voice = a.mayBeSaid()
	a.names = slices.Clone(w.r.registered(a.shown.Server).Names)
	if w.rec.Project != "" {
		a.names = append(a.names, w.rec.Project)
	}
	asked := w.book.ask(a, controls)
	if !w.publish(handoff.RunAsked{Question: asked.open()}) {
		w.r.notifyQuestion(w.caller, w.book, asked.shown.ID)
	}
	w.background(0, func(ctx context.Context) func() { return w.giveUpOn(ctx, asked) })
}

// giveUpOn declines a question that nobody answers in time. Where that does not go, because an answer is on
// its way or the agent takes none, it is tried again while the question is open: nobody else ends it.
func (w *work) giveUpOn(ctx context.Context, q askedQ) func() {
	t := time.NewTimer(w.r.giveUp)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
		if now := w.book.question(q.shown.ID); now == nil || now.shown.Label != q.shown.Label { // asked anew, it has its own time
			return nil
		}
		err := w.declineFor(ctx, q)
		if err == nil {
			return func() { w.publish(handoff.RunGaveUp{Question: q.shown}) }
		}
		w.log.Info("question not declined", zap.Error(err))
		t.Reset(w.r.askAgain)
	}
}

// declineFor declines a question for a caller who does not answer.
func (w *work) declineFor(ctx context.Context, q askedQ) error {
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	return w.r.decide(ctx, w.caller, q.shown.ID, decided{decision: handoff.DecisionDecline, by: ByNobody, tier: risk.Of(q.question, q.workspace)})
}

// questionClosed takes a question away that was answered elsewhere or withdrawn: from every call, as it
// may have been asked in another one, too.
func (w *work) questionClosed(id handoff.QuestionID) { w.r.closed(w.book, id) }

func (w *work) turnEnded(u handoff.TurnEnded) {
	text := u.Text
	if text == "" {
		text = w.held
	}
	w.rec = w.book.change(w.ID, func(r *handoff.Record) { r.Text = text })
	switch u.Status {
	case handoff.TurnCompleted:
		w.Step(phase.FactTurnCompleted)
	case handoff.TurnInterrupted:
		w.Step(phase.FactTurnInterrupted)
	default:
		w.fail(phase.FactTurnFailed, handoff.Fault(cmp.Or(u.Code, handoff.CodeAgentFailed), w.rec.Server, u.Detail))
	}
}

func shownItem(it handoff.Item, state string) handoff.RecordItem {
	return handoff.RecordItem{ID: it.ID, Kind: it.Kind, Text: it.Text, Output: it.Output, Exit: it.Exit, State: state}
}

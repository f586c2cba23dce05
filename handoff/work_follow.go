package handoff

import (
	"cmp"
	"context"
	"time"

	"go.uber.org/zap"
)

// follow begins to watch the turn and tells those who wait that it runs.
func (w *work) follow() {
	w.unfollow()
	ctx, stop := context.WithCancel(w.ioCtx)
	w.watch = watch{number: w.watch.number + 1, stop: stop}
	number, agent, turn, server := w.watch.number, w.attached.Agent, w.turn, w.target.Server
	controls, _ := agent.(Controls)
	if w.state.Merged { // a turn of somebody else takes no more words of ours
		controls = nil
	}
	w.r.lanes.running(w.claims, w.id, turn, controls, w.target, w.rec.Title)
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
	w.r.lanes.running(w.claims, w.id, "", nil, Target{}, "")
}

// watchTurn hands every update to the owner loop, in order.
func (w *work) watchTurn(ctx context.Context, number int, agent Agent, turn TurnID, server string) {
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
		if _, last := u.(TurnEnded); last {
			return
		}
	}
	hand(func() { w.gone(Fault(CodeAgentGone, server, "the updates ended before the turn")) })
}

// gone: the questions that were open come again when the agent is back, under other ids.
func (w *work) gone(err error) {
	for _, q := range w.book.questionsOf(w.id) {
		w.questionClosed(q.shown.ID)
	}
	w.fail(FactAgentGone, err)
}

// update takes one report of the agent: to the page as it is, to the voice model as remarks.
func (w *work) update(u Update) {
	w.alive()
	switch u := u.(type) {
	case ItemStarted:
		w.flushRemark()
		w.call.progress(doingEvent{id: w.id, kind: u.Item.Kind, text: u.Item.Text})
		w.book.item(w.id, shownItem(u.Item, itemRunning))
	case Delta:
		w.book.delta(w.id, u.ItemID, u.Text)
	case ItemDone:
		w.itemDone(u.Item)
	case ItemDropped:
		w.book.drop(w.id, u.ItemID)
	case Question:
		w.question(u)
	case QuestionClosed:
		w.questionClosed(u.ID)
	case TurnEnded:
		w.turnEnded(u)
	}
}

// alive notes that the turn reported something: it runs, and the agent is there.
func (w *work) alive() {
	w.lost, w.rejoins, w.fault = time.Time{}, 0, nil
	w.silent.Reset(w.r.silence)
	if !w.state.Seen {
		w.unseen.Stop()
		w.step(FactSeen)
	}
}

// fellSilent: a turn that waits for the caller has a reason to report nothing.
func (w *work) fellSilent() {
	if len(w.book.questionsOf(w.id)) > 0 {
		w.silent.Reset(w.r.silence)
		return
	}
	w.step(FactSilent)
}

// itemDone shows a finished item. One that is reported again after a loss is no news.
func (w *work) itemDone(it Item) {
	w.flushRemark()
	if w.reported.add(it.ID) && it.Kind == ItemMessage {
		w.held = it.Text
	}
	state := itemDone
	if it.Failed || (it.Exit != nil && *it.Exit != 0) {
		state = itemFailed
	}
	w.book.item(w.id, shownItem(it, state))
}

// flushRemark reports the message that was held back: something came after it, so it was not the final one.
func (w *work) flushRemark() {
	if w.held != "" {
		w.call.progress(remarkEvent{id: w.id, text: w.held})
	}
	w.held = ""
}

func (w *work) question(q Question) {
	controls, ok := w.attached.Agent.(Controls)
	if !ok || w.state.Merged { // others answer what others are asked
		return
	}
	_, replies := w.attached.Agent.(Replier)
	w.askCaller(askedQ{question: q, workspace: w.attached.Workspace, level: w.attached.VoiceApprovals, replies: replies}, controls)
}

// askCaller asks in the call, on the page, and later outside; when nobody answers for long it is a no.
func (w *work) askCaller(a askedQ, controls Controls) {
	q := a.question
	a.shown = RecordQuestion{
		ID: q.ID, Handoff: w.id, Server: w.rec.Server, Title: w.rec.Title, Kind: q.Kind, Text: q.Text, Command: q.Command,
		Cwd: q.Cwd, Reason: q.Reason, Changes: q.Changes, Decisions: q.Decisions,
		Words: q.Words && a.replies, Asks: q.Asks, Beyond: q.Beyond, Asked: q.Asked,
	}
	a.shown.Tap = a.tapReason()
	a.shown.Voice = a.mayBeSaid()
	asked := w.book.ask(a, controls)
	if !w.call.post(func(s *serving) { s.opened(asked) }) {
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
		if w.book.question(q.shown.ID) == nil {
			return nil
		}
		err := w.declineFor(ctx, q)
		if err == nil {
			return func() {
				w.call.say(Utterance{ID: w.id + "-g" + q.shown.Label, Text: gaveUpMessage(q.shown), Floor: FloorAsk})
			}
		}
		w.log.Info("question not declined", zap.Error(err))
		t.Reset(w.r.askAgain)
	}
}

// declineFor declines a question for a caller who does not answer.
func (w *work) declineFor(ctx context.Context, q askedQ) error {
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	return w.r.decide(ctx, w.caller, q.shown.ID, decided{decision: DecisionDecline, by: ByNobody, tier: RiskOf(q.question, q.workspace)})
}

// questionClosed takes a question away that was answered elsewhere or withdrawn: from every call, as it
// may have been asked in another one, too.
func (w *work) questionClosed(id QuestionID) { w.r.closed(w.book, id) }

func (w *work) turnEnded(u TurnEnded) {
	text := u.Text
	if text == "" {
		text = w.held
	}
	w.rec = w.book.change(w.id, func(r *Record) { r.Text = text })
	switch u.Status {
	case TurnCompleted:
		w.step(FactTurnCompleted)
	case TurnInterrupted:
		w.step(FactTurnInterrupted)
	default:
		w.fail(FactTurnFailed, Fault(cmp.Or(u.Code, CodeAgentFailed), w.rec.Server, u.Detail))
	}
}

func shownItem(it Item, state string) RecordItem {
	return RecordItem{ID: it.ID, Kind: it.Kind, Text: it.Text, Output: it.Output, Exit: it.Exit, State: state}
}

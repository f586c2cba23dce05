package handoff

import "context"

// maxNotes bounds the silent notes of one handoff: a long turn must not flood the voice model's context.
const maxNotes = 40

// follow watches the turn and hands every update to the owner loop, in order.
func (w *work) follow(ctx context.Context) func() {
	for u, err := range w.attached.Agent.Follow(ctx, w.turn) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return func() { w.fail(FactAgentGone, err) }
		}
		select {
		case w.facts <- func() { w.update(u) }:
		case <-ctx.Done():
			return nil
		}
		if _, last := u.(TurnEnded); last {
			return nil
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return func() {
		w.fail(FactAgentGone, Fault(CodeAgentGone, w.target.Server, "the updates ended before the turn"))
	}
}

// update takes one report of the agent: to the page as it is, to the voice model as remarks.
func (w *work) update(u Update) {
	switch u := u.(type) {
	case ItemStarted:
		w.flushRemark()
		w.book.item(w.id, shownItem(u.Item, itemRunning))
	case Delta:
		w.book.delta(w.id, u.ItemID, u.Text)
	case ItemDone:
		w.flushRemark()
		if u.Item.Kind == ItemMessage {
			w.held = u.Item.Text
		}
		state := itemDone
		if u.Item.Failed || (u.Item.Exit != nil && *u.Item.Exit != 0) {
			state = itemFailed
		}
		w.book.item(w.id, shownItem(u.Item, state))
	case ItemDropped:
		w.book.drop(w.id, u.ItemID)
	case Question:
		w.question(u)
	case QuestionClosed:
		w.book.closeQuestion(u.ID)
	case TurnEnded:
		w.turnEnded(u)
	}
}

// flushRemark gives the message that was held back as a note: something came after it, so it was not the
// final one. Before the request is answered nothing is noted, the answer comes first.
func (w *work) flushRemark() {
	words := w.held
	w.held = ""
	if words == "" || !w.state.Answered || w.notes >= maxNotes {
		return
	}
	w.notes++
	w.call.say(Utterance{ID: w.id + "-n" + itoa(w.notes), Text: remarkNote(w.rec, words)}, "")
}

func (w *work) question(q Question) {
	controls, ok := w.attached.Agent.(Controls)
	if !ok {
		return
	}
	shown := RecordQuestion{
		ID: q.ID, Handoff: w.id, Server: w.rec.Server, Title: w.rec.Title, Kind: q.Kind, Text: q.Text, Command: q.Command,
		Cwd: q.Cwd, Reason: q.Reason, Changes: q.Changes, Decisions: q.Decisions, Asked: q.Asked,
	}
	w.book.ask(shown, controls)
	w.notes++
	w.call.say(Utterance{ID: w.id + "-q" + itoa(w.notes), Text: questionMessage(w.rec, q), Floor: FloorAsk}, "")
}

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
		w.fail(FactTurnFailed, Fault(CodeAgentFailed, w.rec.Server, u.Detail))
	}
}

func shownItem(it Item, state string) RecordItem {
	return RecordItem{ID: it.ID, Kind: it.Kind, Text: it.Text, Output: it.Output, Exit: it.Exit, State: state}
}

package work

import (
	"cmp"
	"time"
	"unicode/utf8"

	"switchboard/handoff"
	"switchboard/handoff/phase"
)

// seenWithin is how long an acknowledged turn may take until its first update: a server may acknowledge a turn, and
// forget it before it begins.
const seenWithin = 10 * time.Second

// update handles one update of the agent: pages get it as it is, listeners get remarks. It returns how the turn ended,
// or [phase.FactNothing].
func (s *State) update(h *Handoff, u handoff.Update) (phase.Fact, *handoff.Error) {
	h.run.Lost, h.run.Tries = time.Time{}, 0
	h.watch.silent = s.now.Add(s.cfg.Silence)
	if !h.state.Seen {
		h.watch.unseen = time.Time{}
		s.apply(h, phase.FactSeen, nil)
	}
	switch u := h.plain(u).(type) {
	case handoff.ItemStarted:
		s.flushRemark(h)
		s.publish(h, handoff.EventDoing{ID: u.Item.ID, Item: u.Item.Kind, Text: u.Item.Text})
		s.item(h, shownItem(u.Item, itemRunning))
	case handoff.Delta:
		s.delta(h, u)
	case handoff.ItemDone:
		s.itemDone(h, u.Item)
	case handoff.ItemDropped:
		s.drop(h, u.ItemID)
		h.logEvent(handoff.EventDropped(u))
	case handoff.Usage:
		h.logEvent(handoff.EventUsage{Usage: u})
	case handoff.Question:
		s.asks(h, u)
	case handoff.GoesOn:
		s.flushRemark(h)
		if !h.watch.goesOn {
			h.watch.goesOn = true
			s.publish(h, handoff.EventGoesOn{})
		}
	case handoff.QuestionClosed:
		s.withdrawn(u.ID)
	case handoff.TurnEnded:
		return s.turnEnded(h, u)
	}
	return phase.FactNothing, nil
}

// plain returns an update without the control sequences of terminals: what is kept, shown and said has none.
func (h *Handoff) plain(u handoff.Update) handoff.Update {
	item := func(it handoff.Item) handoff.Item {
		it.Cut = it.Cut || len(it.Output) > maxOutput-utf8.UTFMax // as agents' servers cut it
		it.Text, it.Output = handoff.Plain(it.Text), handoff.Plain(it.Output)
		return it
	}
	switch u := u.(type) {
	case handoff.ItemStarted:
		return handoff.ItemStarted{Item: item(u.Item)}
	case handoff.ItemDone:
		return handoff.ItemDone{Item: item(u.Item)}
	case handoff.Delta:
		if h.watch.piece.item != u.ItemID {
			h.watch.piece = piece{item: u.ItemID}
		}
		u.Text = h.watch.piece.text.Next(u.Text)
		return u
	case handoff.TurnEnded:
		u.Text, u.Detail = handoff.Plain(u.Text), handoff.Plain(u.Detail)
		return u
	}
	return u
}

// itemDone shows a finished item. An item that the agent reports again after a loss is shown, and not published again.
func (s *State) itemDone(h *Handoff, it handoff.Item) {
	s.flushRemark(h)
	first := h.watch.reported.Add(it.ID)
	if first && it.Kind == handoff.ItemMessage {
		h.watch.lastMessage = it.Text
	}
	state := itemDone
	if it.Failed || (it.Exit != nil && *it.Exit != 0) {
		state = itemFailed
	}
	s.item(h, shownItem(it, state))
	if first {
		h.logEvent(handoff.EventItem{Item: it})
	}
}

// flushRemark publishes the last message: an item came after it, so it was not the final one.
func (s *State) flushRemark(h *Handoff) {
	if h.watch.lastMessage != "" {
		s.publish(h, handoff.EventRemark{Text: h.watch.lastMessage})
	}
	h.watch.lastMessage = ""
}

func (s *State) turnEnded(h *Handoff, u handoff.TurnEnded) (phase.Fact, *handoff.Error) {
	h.watch.unseen, h.watch.silent = time.Time{}, time.Time{}
	text := cmp.Or(u.Text, h.watch.lastMessage)
	if h.run.Request.Goal && u.Status == handoff.TurnCompleted {
		u.Goal = cmp.Or(u.Goal, handoff.GoalLeft)
	}
	s.show(h, func() { h.Text, h.Undelivered, h.Goal = text, u.Undelivered, u.Goal })
	switch u.Status {
	case handoff.TurnCompleted:
		if u.Code == handoff.CodeUnread {
			return phase.FactTurnCompleted, handoff.Fault(u.Code, h.Server, u.Detail)
		}
		return phase.FactTurnCompleted, nil
	case handoff.TurnInterrupted:
		if u.Code == handoff.CodeAgentEnded { // else somebody stopped it
			return phase.FactTurnInterrupted, handoff.Fault(u.Code, h.Server, u.Detail)
		}
		return phase.FactTurnInterrupted, nil
	}
	return phase.FactTurnFailed, handoff.Fault(cmp.Or(u.Code, handoff.CodeAgentFailed), h.Server, u.Detail)
}

func shownItem(it handoff.Item, state string) handoff.RecordItem {
	return handoff.RecordItem{
		ID: it.ID, Kind: it.Kind, Text: it.Text, Output: it.Output, Cut: it.Cut, Exit: it.Exit, Changes: it.Changes,
		State: state, By: it.By,
	}
}

// asks asks the caller what the agent asks.
func (s *State) asks(h *Handoff, q handoff.Question) {
	at := h.run.Attached
	controls, ok := at.Agent.(handoff.Controls)
	if !ok || h.state.Merged { // whoever started the turn answers its questions
		return
	}
	_, replies := at.Agent.(handoff.Replier)
	s.ask(h, &Question{
		OpenQuestion: handoff.OpenQuestion{Question: q, Workspace: at.Workspace, Level: at.VoiceApprovals},
		Replies:      replies, Controls: controls,
	})
}

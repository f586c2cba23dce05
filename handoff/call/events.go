package call

import (
	"context"

	"switchboard/handoff"
	"switchboard/handoff/speech"
	"switchboard/handoff/wording"
)

// handoffEvent answers, tells and asks what follows from an event of a handoff.
func (s *serving) handoffEvent(e handoff.Event) {
	id := string(e.ID)
	o := s.open[id]
	if o == nil {
		o = &openHandoff{answered: true} // an earlier call began it, or its outcome was told
	}
	o.rec, o.noted = e.Record, e.Noted
	if s.open[id] == o {
		s.pace(speech.Waits{ID: id, On: e.Record.Waits != ""})
	}
	switch k := e.Kind.(type) {
	case handoff.EventPlaced:
		s.pace(speech.Began{ID: id, Server: e.Record.Server, Asked: e.Record.Prompt, Answered: o.answered})
	case handoff.EventPromised:
		s.promised(id, o, k.Waits)
	case handoff.EventWaiting:
		s.promised(id, o, k.Waits)
	case handoff.EventJoined:
		if o.answered {
			s.tell(s.language.MergedMessage(e.Record))
		}
	case handoff.EventDoing:
		s.pace(speech.Doing{ID: id, Kind: k.Item, Text: k.Text})
	case handoff.EventRemark:
		s.pace(speech.Remark{ID: id, Text: k.Text})
	case handoff.EventAsked:
		if e.Noted && !o.answered { // nothing else comes until the caller has answered
			s.early(id, o, handoff.WaitsNot, handoff.FloorNone)
		}
		s.openQuestion(k.Question)
	case handoff.EventAnswered:
		o.overtake()
		s.closeQuestion(k.Question)
	case handoff.EventGaveUp:
		s.tell(s.language.GaveUpMessage(k.Question))
	case handoff.EventSteered:
		if into := s.open[string(k.Into)]; into != nil {
			into.overtaken = into.overtaken || !sameWords(into.req, o.req)
			into.lastAdded = o.req
		}
		s.pace(speech.Concerned{ID: string(k.Into)})
	case handoff.EventSilent:
		s.tell(s.language.SilentMessage(e.Record))
	case handoff.EventGoesOn:
		s.tell(s.language.GoesOnMessage(e.Record))
	case handoff.EventLost:
		s.box.say(handoff.Utterance{ID: id + "-l", Text: wording.LostNote(e.Record).Encode()})
	case handoff.EventTaken:
		s.open[id] = o // an earlier call began it
		s.pace(speech.Began{ID: id, Server: o.rec.Server, Asked: o.rec.Prompt, Since: o.rec.Since(), Answered: true})
		s.pace(speech.Waits{ID: id, On: o.rec.Waits != ""})
		for _, q := range k.Questions {
			s.openQuestion(q)
		}
	case handoff.EventEnded:
		s.ended(id, o)
	case handoff.EventHeard:
		s.pace(speech.Told{ID: id})
	case handoff.EventByHand:
		o.overtake()
		if _, here := s.stops.LoadAndDelete(id); !here || k.Deed == handoff.DeedAnswer {
			s.pace(speech.Context{Message: wording.ByHandNote(e.Record, k)})
		}
	case handoff.EventYielded:
		s.promised(id, o, handoff.WaitsNot)
		s.pace(speech.Yielded{ID: id})
		delete(s.open, id)
		s.spans.end(id, false)
	}
}

// tell has the voice model tell something, when no question is being asked.
func (s *serving) tell(message wording.Answer) { s.pace(speech.News{Message: message}) }

// promised answers a function call early: its work is promised. If the call was answered before, a message says what
// the work waits for.
func (s *serving) promised(id string, o *openHandoff, waits handoff.Wait) {
	switch {
	case o.answered && waits != handoff.WaitsNot:
		s.tell(s.language.WaitingMessage(o.rec, waits))
		return
	case o.answered:
		return
	}
	floor := handoff.FloorUnlessSpoke
	if waits == handoff.WaitsYes { // the question follows at once, and shall be heard instead
		floor = handoff.FloorNone
	}
	s.early(id, o, waits, floor)
}

// early answers a function call before its handoff has ended.
func (s *serving) early(id string, o *openHandoff, waits handoff.Wait, floor handoff.Floor) {
	o.answered = true
	s.box.say(handoff.Utterance{ID: id + "-a", CallID: o.call.CallID, Floor: floor, Plain: true,
		Text: s.language.EarlyAnswer(o.rec, waits).Encode()})
	s.pace(speech.AnsweredEvent{ID: id})
}

// ended tells the outcome of a handoff: as the answer of its function call, or as a message.
func (s *serving) ended(id string, o *openHandoff) {
	delete(s.open, id)
	if o.answered && o.rec.Added() {
		s.spans.end(id, false) // the outcome of the turn that took the words is told instead
		s.pace(speech.Context{Message: wording.AddedNote(o.rec)})
		_ = s.cfg.Handoffs.Heard(context.Background(), s.grant, handoff.ID(id)) // an error: the record was removed
		s.pace(speech.Yielded{ID: id})
		return
	}
	s.spans.say(id)
	if o.answered {
		s.pace(speech.Ended{Rec: o.rec})
		return
	}
	o.answered = true
	u := handoff.Utterance{ID: id + "-a", CallID: o.call.CallID, Text: s.language.OutcomeAnswer(o.rec).Encode(),
		Floor: handoff.FloorAsk, Tells: []string{id},
		Plain: o.rec.Fault != nil && o.rec.Fault.Code.Unbegun()} // then no agent had it
	s.box.say(u)
	s.pace(speech.Gave{Utterance: u.ID, Work: id, Message: s.language.OutcomeMessage(o.rec)})
}

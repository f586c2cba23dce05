package call

import (
	"context"

	"switchboard/handoff"
	"switchboard/handoff/speech"
	"switchboard/handoff/wording"
)

// runEvent answers, tells and asks what follows from an event of a run.
func (s *serving) runEvent(e handoff.RunEvent) {
	id := string(e.Run)
	o := s.runs[id]
	if o == nil {
		o = &callRun{answered: true} // an earlier call began it, or its outcome was told
	}
	o.rec, o.noted = e.Record, e.Noted
	if s.runs[id] == o {
		s.pace(speech.Waits{ID: id, On: e.Record.Waits != ""})
	}
	switch k := e.Kind.(type) {
	case handoff.RunPlaced:
		s.pace(speech.Began{ID: id, Server: e.Record.Server, Title: e.Record.Title, Answered: o.answered})
	case handoff.RunPromised:
		s.promised(id, o, k.Waits)
	case handoff.RunWaiting:
		s.promised(id, o, k.Waits)
	case handoff.RunJoined:
		if o.answered {
			s.tell(id+"-j", s.language.MergedMessage(e.Record))
		}
	case handoff.RunDoing:
		s.pace(speech.Doing{ID: id, Kind: k.Item, Text: k.Text})
	case handoff.RunRemark:
		s.pace(speech.Remark{ID: id, Text: k.Text})
	case handoff.RunAsked:
		if e.Noted && !o.answered { // nothing else comes until the caller has answered
			s.early(id, o, handoff.WaitsNot, handoff.FloorNone)
		}
		s.openQuestion(k.Question)
	case handoff.RunAnswered:
		o.overtake()
		s.closeQuestion(k.Question)
	case handoff.RunGaveUp:
		s.tell(id+"-g"+k.Question.Label, s.language.GaveUpMessage(k.Question))
	case handoff.RunSteered:
		if into := s.runs[string(k.Into)]; into != nil {
			into.overtaken = into.overtaken || !sameWords(into.req, o.req)
			into.lastAdded = o.req
		}
		s.pace(speech.Concerned{ID: string(k.Into)})
	case handoff.RunSilent:
		s.tell(id+"-s", s.language.SilentMessage(e.Record))
	case handoff.RunLost:
		s.box.say(handoff.Utterance{ID: id + "-l", Text: wording.LostNote(e.Record)})
	case handoff.RunTaken:
		s.runs[id] = o // an earlier call began it
		s.pace(speech.Began{ID: id, Server: o.rec.Server, Title: o.rec.Title, Answered: true})
		for _, q := range k.Questions {
			s.openQuestion(q)
		}
	case handoff.RunEnded:
		s.ended(id, o)
	case handoff.RunHeard:
		s.pace(speech.Told{ID: id})
	case handoff.RunByHand:
		o.overtake()
		if _, here := s.stops.LoadAndDelete(id); !here || k.Deed == handoff.DeedAnswer {
			s.pace(speech.Context{Text: wording.ByHandNote(e.Record, k)})
		}
	case handoff.RunYielded:
		s.promised(id, o, handoff.WaitsNot)
		s.pace(speech.Yielded{ID: id})
		delete(s.runs, id)
		s.spans.end(id, false)
	}
}

// tell gives the voice model a message, and asks for the floor.
func (s *serving) tell(id, text string) {
	s.box.say(handoff.Utterance{ID: id, Text: text, Floor: handoff.FloorAsk})
}

// promised answers a function call early: its work is promised. If the call was answered before, a message says what
// the work waits for.
func (s *serving) promised(id string, o *callRun, waits handoff.Wait) {
	switch {
	case o.answered && waits != handoff.WaitsNot:
		s.tell(id+"-b", s.language.WaitingMessage(o.rec, waits))
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

// early answers a function call before its run has ended.
func (s *serving) early(id string, o *callRun, waits handoff.Wait, floor handoff.Floor) {
	o.answered = true
	s.box.say(handoff.Utterance{ID: id + "-a", CallID: o.call.CallID, Floor: floor, Plain: true,
		Text: s.language.EarlyAnswer(o.rec, waits).Encode()})
	s.pace(speech.AnsweredEvent{ID: id})
}

// ended tells the outcome of a run: as the answer of its function call, or as a message.
func (s *serving) ended(id string, o *callRun) {
	delete(s.runs, id)
	if o.answered && o.rec.Added() {
		s.spans.end(id, false) // the outcome of the turn that took the words is told instead
		s.pace(speech.Context{Text: wording.AddedNote(o.rec)})
		_ = s.cfg.Runs.Heard(context.Background(), s.grant, handoff.RunID(id)) // an error: the record was removed
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
	s.pace(speech.Gave{Utterance: u.ID, Text: s.language.OutcomeMessage(o.rec), Works: []string{id}, Answer: true})
}

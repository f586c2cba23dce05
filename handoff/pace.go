package handoff

import "time"

// pace gives the schedule an event and does what it says.
func (s *serving) pace(e scheduleEvent) {
	was := s.schedule.counts
	effects := s.schedule.step(time.Now(), e)
	s.r.counts.paced(was, s.schedule.counts)
	for _, x := range effects {
		s.effect(x)
	}
}

func (s *serving) effect(x scheduleEffect) {
	switch x.act {
	case doNote:
		s.call.say(Utterance{ID: x.id, Text: x.text})
	case doSay:
		if x.question != "" {
			s.evidence.Announced(x.question, x.id, time.Now())
		}
		s.call.say(Utterance{ID: x.id, Text: x.text, Floor: FloorAsk, Tells: x.works})
	case doTakeBack:
		s.call.say(Utterance{ID: x.id})
	case doAnswer:
		for _, id := range x.works {
			if w := s.works[id]; w != nil {
				w.order(order{fact: FactAnswerDue})
			}
		}
	case doGiven:
		s.r.delivered(s.book, x.works...)
	case doKeep:
		for _, id := range x.works {
			s.r.keep(s.caller, s.book, id)
		}
	case doNotify:
		s.r.notifyQuestion(s.caller, s.book, x.question)
	case doDrop:
		s.r.counts.remarks.Add(uint64(x.count))
	case doWake:
		s.wake.Reset(time.Until(x.at))
	}
}

// delivered marks records whose outcome was heard.
func (r *Router) delivered(b *book, ids ...string) {
	for _, id := range ids {
		if b.delivered(id) {
			b.lineOf(id).delivered()
		}
	}
}

// keep holds an outcome that nobody heard for the next call; if another call of the caller is open, that
// is now.
func (r *Router) keep(c Caller, b *book, id string) {
	b.keep(id)
	b.lineOf(id).keep()
	if live := b.live(); live != nil && live.post(func(s *serving) { s.welcomeBack() }) {
		return
	}
	r.notifyOutcome(c, b, id)
}

package router

import (
	"switchboard/handoff"
	"switchboard/handoff/phase"
	"switchboard/handoff/speech"
	"time"
)

// pace gives the schedule an event and does what it says.
func (s *serving) pace(e speech.Event) {
	was := s.schedule.Counts
	effects := s.schedule.Step(time.Now(), e)
	s.r.counts.paced(was, s.schedule.Counts)
	for _, x := range effects {
		s.effect(x)
	}
}

func (s *serving) effect(x speech.Effect) {
	switch x.Act {
	case speech.DoNote:
		s.call.say(handoff.Utterance{ID: x.ID, Text: x.Text})
	case speech.DoSay:
		if x.Question != "" {
			s.evidence.Announced(x.Question, x.ID, time.Now())
		}
		s.call.say(handoff.Utterance{ID: x.ID, Text: x.Text, Floor: handoff.FloorAsk, Tells: x.Works})
	case speech.DoTakeBack:
		s.call.say(handoff.Utterance{ID: x.ID})
	case speech.DoAnswer:
		for _, id := range x.Works {
			if w := s.works[id]; w != nil {
				w.order(order{fact: phase.FactAnswerDue})
			}
		}
	case speech.DoGiven:
		s.r.delivered(s.book, x.Works...)
	case speech.DoKeep:
		for _, id := range x.Works {
			s.r.keep(s.caller, s.book, id)
		}
	case speech.DoNotify:
		s.r.notifyQuestion(s.caller, s.book, x.Question)
	case speech.DoDrop:
		s.r.counts.remarks.Add(uint64(x.Count))
	case speech.DoWake:
		s.wake.Reset(time.Until(x.At))
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
func (r *Router) keep(c handoff.Caller, b *book, id string) {
	b.keep(id)
	b.lineOf(id).keep()
	if live := b.live(); live != nil && live.post(func(s *serving) { s.welcomeBack() }) {
		return
	}
	r.notifyOutcome(c, b, id)
}

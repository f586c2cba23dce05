package call

import (
	"time"

	"switchboard/handoff"
	"switchboard/handoff/speech"
)

// pace gives the schedule an event and does what it says.
func (s *serving) pace(e speech.Event) {
	was := s.schedule.Counts
	effects := s.schedule.Step(time.Now(), e)
	s.calls.counts.paced(was, s.schedule.Counts)
	for _, x := range effects {
		s.effect(x)
	}
}

func (s *serving) effect(x speech.Effect) {
	switch x.Act {
	case speech.DoNote:
		s.box.say(handoff.Utterance{ID: x.ID, Text: x.Text})
	case speech.DoSay:
		if x.Question != "" {
			s.evidence.Announced(x.Question, x.ID, time.Now())
		}
		s.box.say(handoff.Utterance{ID: x.ID, Text: x.Text, Floor: handoff.FloorAsk, Tells: x.Works})
	case speech.DoTakeBack:
		s.box.say(handoff.Utterance{ID: x.ID})
	case speech.DoGiven:
		s.given(x.Works)
	case speech.DoNotify:
		s.cfg.Questions.Unanswered(s.grant, x.Question)
	case speech.DoDrop:
		s.calls.counts.remarks.Add(uint64(x.Count))
	case speech.DoWake:
		s.wake.Reset(time.Until(x.At))
	}
}

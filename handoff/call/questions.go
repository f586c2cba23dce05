package call

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/evidence"
	"switchboard/handoff/speech"
	"switchboard/handoff/tools"
)

// A claim is the voice model's claim that the caller answered a question, which is not judged yet.
type claim struct {
	ID       string
	call     handoff.FunctionCall
	question handoff.RecordQuestion
	evidence evidence.Claim
}

// openQuestion asks an agent's question in the call. From here on, the caller's words may be evidence for an answer.
func (s *serving) openQuestion(q handoff.OpenQuestion) {
	if !s.grant.Approve.InCall() { // a yes in the call would not count
		q.Level, q.Shown.Tap = "none", cmp.Or(q.Shown.Tap, handoff.WhyNoApprove)
	}
	s.evidence.Open(q, s.language.QuestionLead(q.Shown))
	s.pace(speech.Question{ID: q.Shown.ID, Work: q.Shown.Handoff, Message: s.language.QuestionMessage(q.Shown)})
}

// closeQuestion removes a question from the call.
func (s *serving) closeQuestion(id handoff.QuestionID) {
	delete(s.filled, id)
	s.evidence.Closed(id, time.Now())
	s.pace(speech.QuestionClosed{ID: id})
	s.judgeAll()
}

// Answer implements [tools.Front]. The answer that the voice model reports is only a claim; the question is decided
// once the caller's own words are evidence for it.
func (f *functionCall) Answer(
	_ context.Context, _ handoff.Grant, q handoff.OpenQuestion, args tools.AnswerArguments,
) (tools.Result, error) {
	s := f.s
	id := s.cfg.Attending.NextID()
	if !s.evidence.Knows(q.Shown.ID) { // it was asked in another call, or an earlier answer failed
		s.openQuestion(q)
	}
	s.pace(speech.Claimed{ID: q.Shown.ID})
	now := time.Now()
	s.claims = append(s.claims, &claim{ID: id, call: f.call, question: q.Shown, evidence: evidence.Claim{
		Question: q.Shown.ID, Hash: handoff.CommandHash(q.Question, q.Shown.Server),
		Wants: args.Decision, Words: args.Text, Came: now,
	}})
	s.judge(now)
	return nil, nil
}

// judgeAll judges the open claims, if there are any.
func (s *serving) judgeAll() {
	if len(s.claims) > 0 {
		s.judge(time.Now())
	}
}

// judge judges the open claims with all that was heard, and sets the timer for those that still wait.
func (s *serving) judge(now time.Time) {
	var until time.Time
	s.claims = slices.DeleteFunc(s.claims, func(c *claim) bool {
		v := s.evidence.Judge(c.evidence, now)
		if v.Ruling == evidence.RulingWait {
			if until.IsZero() || v.Until.Before(until) {
				until = v.Until
			}
			return false
		}
		s.applyRuling(c, v)
		return true
	})
	if !until.IsZero() {
		s.judgeTimer.Reset(time.Until(until))
	}
}

// judgeLast judges the open claims of a call that has ended with what was heard, and gives agents each no. A yes can no
// longer be taken back: its question stays open for the page.
func (s *serving) judgeLast() {
	for _, c := range s.claims {
		c.evidence.Came = time.Time{} // nothing is waited for
		if v := s.evidence.Judge(c.evidence, time.Now()); v.Ruling == evidence.RulingDecline {
			s.applyRuling(c, v)
		}
	}
	s.claims = nil
}

// applyRuling carries out the ruling on a claim, and answers its function call.
func (s *serving) applyRuling(c *claim, v evidence.Judgment) {
	s.log().Info("answer judged", zap.String("server", c.question.Server), zap.String("handoff", c.question.Handoff),
		zap.Stringer("ruling", v.Ruling), zap.Stringer("tier", v.Tier))
	switch v.Ruling {
	case evidence.RulingWords:
		s.worded(c, v)
	case evidence.RulingAccept, evidence.RulingDecline:
		s.give(c, v.Decided)
	case evidence.RulingAskAgain:
		s.evidence.Announced(c.question.ID, c.ID+"-a", time.Now())
		s.pace(speech.Asked{ID: c.question.ID, Utterance: c.ID + "-a"})
		answer := s.language.AskAgainAnswer(c.question, v.Fault, v.Again)
		if given := len(s.filled[c.question.ID]); given > 0 && v.Again == "" {
			answer = s.language.FieldAnswer(c.question, given, v.Fault)
		}
		s.answer(c.ID, c.call, answer.Encode(), handoff.FloorAsk)
	case evidence.RulingReword:
		s.answer(c.ID, c.call, s.language.RewordAnswer(c.question, v.Fault).Encode(), handoff.FloorAsk)
	case evidence.RulingLater:
		s.answerPlainly(c.ID, c.call, s.language.LaterAnswer(c.question).Encode(), handoff.FloorUnlessSpoke)
	default:
		s.refuse(c.ID, c.call, v.Fault)
	}
}

// give gives a decision beside the loop, unless the caller says more meanwhile.
func (s *serving) give(c *claim, d handoff.Decided) {
	words := s.utterances.Load()
	d.Call = s.ID
	d.More = func() bool { return s.utterances.Load() != words }
	s.background.Go(func() { s.decide(c, d) })
}

// worded takes an answer in words. The fields of a question are asked one after another, and the agent gets the answers
// together. An answer that does not fit is asked for again.
func (s *serving) worded(c *claim, v evidence.Judgment) {
	q, given := c.question, s.filled[c.question.ID]
	words := cmp.Or(v.Reply.Words, c.evidence.Words)
	fields := handoff.Question{Text: q.Text, Asks: q.Asks}.Fields()
	lines := []string{words}
	if left := len(fields) - len(given); left > 1 && strings.Count(words, "\n") == left-1 {
		lines = strings.Split(words, "\n")
	}
	var unfit *handoff.Error
	for _, line := range lines {
		answers, err := fields[len(given)].Read(line)
		if err != nil {
			unfit = handoff.AsError(err)
			break
		}
		given = append(given, answers)
	}
	if unfit == nil && len(given) == len(fields) {
		delete(s.filled, q.ID)
		v.Reply = handoff.Reply{Answers: given}
		s.give(c, v.Decided)
		return
	}
	s.filled[q.ID] = given
	s.evidence.Next(q.ID, len(given))
	s.evidence.Announced(q.ID, c.ID+"-a", time.Now())
	s.pace(speech.Asked{ID: q.ID, Utterance: c.ID + "-a"})
	s.answer(c.ID, c.call, s.language.FieldAnswer(q, len(given), unfit).Encode(), handoff.FloorAsk)
}

// decideWithin bounds how long a decision may take to reach its agent.
const decideWithin = 30 * time.Second

// decide gives the decision to the agent, and answers the function call. It is finished also if the call ends.
func (s *serving) decide(c *claim, a handoff.Decided) {
	ctx, cancel := context.WithTimeout(s.lasting, decideWithin)
	defer cancel()
	if err := s.cfg.Questions.Answer(ctx, s.grant, c.question.ID, a); err != nil {
		s.box.post(func(s *serving) { // ask it again: while it is open, a yes may be meant for it
			if q, err := s.cfg.Tools.Questions.Question(s.grant, string(c.question.ID)); err == nil {
				s.openQuestion(q)
			}
		})
		s.refuse(c.ID, c.call, handoff.AsError(err))
		return
	}
	s.answerPlainly(c.ID, c.call, s.language.DecidedAnswer(c.question, a.Decision).Encode(), handoff.FloorUnlessSpoke)
}

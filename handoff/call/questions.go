package call

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/evidence"
	"switchboard/handoff/speech"
	"switchboard/handoff/tools"
)

// A claim is an answer to a question that the voice model brought and that is not decided yet.
type claim struct {
	ID       string
	req      handoff.FunctionCall
	question handoff.RecordQuestion
	claim    evidence.Claim
}

// opened takes a question of a work into the call: it is announced, and what the caller says is evidence.
func (s *serving) opened(q handoff.OpenQuestion) {
	if !s.grant.Approve.InCall() { // nobody is asked for a yes that does not count
		q.Level, q.Shown.Tap = "none", cmp.Or(q.Shown.Tap, handoff.WhyNoApprove)
	}
	s.evidence.Open(q, s.language.QuestionLead(q.Shown))
	s.pace(speech.Question{ID: q.Shown.ID, Work: q.Shown.Handoff, Text: s.language.QuestionMessage(q.Shown)})
}

// questionClosed takes a question out of the call.
func (s *serving) questionClosed(id handoff.QuestionID) {
	s.evidence.Closed(id, time.Now())
	s.pace(speech.QuestionClosed{ID: id})
	s.judgeAll()
}

// Answer implements [tools.Front] with what the voice model says that the caller answered. It decides nothing by
// itself: the answer is a claim until what the caller said is evidence for it.
func (f *functionCall) Answer(
	_ context.Context, _ handoff.Grant, q handoff.OpenQuestion, args tools.AnswerArguments,
) (tools.Result, error) {
	s := f.s
	id := s.cfg.Attending.NextID()
	if !s.evidence.Knows(q.Shown.ID) { // it was asked in another call, or an answer could not be given
		s.opened(q)
	}
	s.pace(speech.Claimed{ID: q.Shown.ID})
	now := time.Now()
	s.claims = append(s.claims, &claim{ID: id, req: f.req, question: q.Shown, claim: evidence.Claim{
		Question: q.Shown.ID, Hash: handoff.CommandHash(q.Question, q.Shown.Server),
		Wants: args.Decision, Words: args.Text, Came: now,
	}})
	s.judge(now)
	return nil, nil
}

// judgeAll rules on the claims that wait, if any do.
func (s *serving) judgeAll() {
	if len(s.claims) > 0 {
		s.judge(time.Now())
	}
}

// judge rules on the claims that wait, again with everything that is heard.
func (s *serving) judge(now time.Time) {
	var until time.Time
	s.claims = slices.DeleteFunc(s.claims, func(c *claim) bool {
		v := s.evidence.Judge(c.claim, now)
		if v.Ruling == evidence.RulingWait {
			if until.IsZero() || v.Until.Before(until) {
				until = v.Until
			}
			return false
		}
		s.ruled(c, v)
		return true
	})
	if !until.IsZero() {
		s.rule.Reset(time.Until(until))
	}
}

// ruled carries a ruling out and answers the request.
func (s *serving) ruled(c *claim, v evidence.Judgment) {
	s.log().Info("answer judged", zap.String("server", c.question.Server), zap.String("handoff", c.question.Handoff),
		zap.Stringer("ruling", v.Ruling), zap.Stringer("tier", v.Tier))
	switch v.Ruling {
	case evidence.RulingAccept, evidence.RulingDecline, evidence.RulingWords:
		words := s.words.Load()
		given := v.Decided
		given.Words, given.Call = c.claim.Words, s.ID
		given.More = func() bool { return s.words.Load() != words }
		s.besides.Go(func() { s.decide(c, given) })
	case evidence.RulingAskAgain:
		s.evidence.Announced(c.question.ID, c.ID+"-a", time.Now())
		s.pace(speech.Asked{ID: c.question.ID, Utterance: c.ID + "-a"})
		s.answer(c.ID, c.req, s.language.AskAgainAnswer(c.question, v.Fault, v.Again).Encode(), handoff.FloorAsk)
	case evidence.RulingReword:
		s.answer(c.ID, c.req, s.language.RewordAnswer(c.question, v.Fault).Encode(), handoff.FloorAsk)
	case evidence.RulingLater:
		s.answer(c.ID, c.req, s.language.LaterAnswer(c.question).Encode(), handoff.FloorUnlessSpoke)
	default:
		s.refuse(c.ID, c.req, v.Fault)
	}
}

// decideWithin bounds how long a decision may take to reach its agent.
const decideWithin = 30 * time.Second

// decide gives the decision to the agent and tells the voice model. It is done also when the call ends meanwhile.
func (s *serving) decide(c *claim, a handoff.Decided) {
	ctx, cancel := context.WithTimeout(s.lasting, decideWithin)
	defer cancel()
	if err := s.cfg.Questions.Answer(ctx, s.grant, c.question.ID, a); err != nil {
		s.box.post(func(s *serving) { // it is asked again by itself, and until it is closed a yes may be for it
			if q, err := s.cfg.Tools.Questions.Question(s.grant, string(c.question.ID)); err == nil {
				s.opened(q)
			}
		})
		s.refuse(c.ID, c.req, handoff.AsError(err))
		return
	}
	s.answer(c.ID, c.req, s.language.DecidedAnswer(c.question, a.Decision).Encode(), handoff.FloorUnlessSpoke)
}

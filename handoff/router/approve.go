package router

import (
	"context"
	"slices"
	"switchboard/handoff"
	"switchboard/handoff/evidence"
	"switchboard/handoff/speech"
	"switchboard/handoff/tools"
	"switchboard/handoff/wording"
	"time"

	"go.uber.org/zap"
)

// A claim is an answer to a question that the voice model brought and that is not decided yet.
type claim struct {
	ID       string
	req      handoff.Request
	question handoff.RecordQuestion
	claim    evidence.Claim
}

// opened takes a question of a work into the call: it is announced, and what the caller says is evidence.
func (s *serving) opened(q askedQ) {
	s.evidence.Open(evidence.OpenQuestion{
		Question: q.question, Server: q.shown.Server, Workspace: q.workspace, Level: q.level, Words: q.shown.Words && q.shown.Tap == "",
		About: evidence.AskedAbout(q.question, s.machines(q.shown), wording.QuestionLead(q.shown)),
	})
	s.pace(speech.Question{ID: q.shown.ID, Work: q.shown.Handoff, Text: wording.QuestionMessage(q.shown)})
}

// questionClosed takes a question out of the call.
func (s *serving) questionClosed(id handoff.QuestionID) {
	s.evidence.Closed(id, time.Now())
	s.pace(speech.QuestionClosed{ID: id})
	if len(s.claims) > 0 {
		s.judge(time.Now())
	}
}

// machines are the names by which a reply may mean the machine of a question.
func (s *serving) machines(q handoff.RecordQuestion) []string {
	names := slices.Clone(s.r.registered(q.Server).Names)
	if rec, _ := s.book.find(q.Handoff); rec.Project != "" {
		names = append(names, rec.Project)
	}
	return names
}

// answerAgent takes what the voice model says the caller answered. It decides nothing by itself.
func (s *serving) answerAgent(id string, req handoff.Request, args tools.AnswerArguments) {
	q, err := s.book.questionNamed(args.Question)
	if err != nil {
		s.refuse(id, req, handoff.AsError(err))
		return
	}
	if !s.evidence.Knows(q.shown.ID) { // it was asked in another call, or an answer could not be given
		s.opened(q.askedQ)
	}
	s.pace(speech.Claimed{ID: q.shown.ID})
	now := time.Now()
	s.claims = append(s.claims, &claim{ID: id, req: req, question: q.shown, claim: evidence.Claim{
		Question: q.shown.ID, Hash: handoff.CommandHash(q.question, q.shown.Server), Wants: args.Decision, Words: args.Text, Came: now,
	}})
	s.judge(now)
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
func (s *serving) ruled(c *claim, v evidence.Verdict) {
	s.log.Info("answer judged", zap.String("server", c.question.Server), zap.String("handoff", c.question.Handoff),
		zap.Stringer("ruling", v.Ruling), zap.Stringer("tier", v.Tier))
	switch v.Ruling {
	case evidence.RulingAccept, evidence.RulingDecline, evidence.RulingWords:
		words := s.words.Load()
		decided := decided{
			decision: v.Decision, words: c.claim.Words, by: v.By, tier: v.Tier, transcript: v.Transcript, call: s.ID, said: v.Began,
			more: func() bool { return s.words.Load() != words },
		}
		if !s.r.start(func(ctx context.Context) { s.decide(ctx, c, decided) }) {
			s.refuse(c.ID, c.req, handoff.Fault(handoff.CodeShutdown, "", ""))
		}
	case evidence.RulingAskAgain:
		s.evidence.Announced(c.question.ID, c.ID+"-a", time.Now())
		s.pace(speech.Asked{ID: c.question.ID, Utterance: c.ID + "-a"})
		s.answer(c.ID, c.req, wording.AskAgainAnswer(c.question, v.Fault), handoff.FloorAsk)
	case evidence.RulingReword:
		s.answer(c.ID, c.req, wording.RewordAnswer(c.question, v.Fault), handoff.FloorAsk)
	case evidence.RulingLater:
		s.answer(c.ID, c.req, handoff.Encode(wording.Answer{Status: "open", Server: c.question.Server, Say: "It waits.", Note: "The caller asked for time; nothing was decided. Say nothing more of it until they answer."}), handoff.FloorUnlessSpoke)
	default:
		s.refuse(c.ID, c.req, v.Fault)
	}
}

// undecided takes a question back into the call whose answer could not be given: it is asked again by itself, and
// until it is closed a yes may be for it.
func (s *serving) undecided(id handoff.QuestionID) {
	if q := s.book.question(id); q != nil {
		s.opened(q.askedQ)
	}
}

// decide gives the decision to the agent and tells the voice model.
func (s *serving) decide(ctx context.Context, c *claim, d decided) {
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	if err := s.r.decide(ctx, s.caller, c.question.ID, d); err != nil {
		s.call.post(func(s *serving) { s.undecided(c.question.ID) })
		s.refuse(c.ID, c.req, handoff.AsError(err))
		return
	}
	s.answer(c.ID, c.req, wording.DecidedAnswer(c.question, d.decision), handoff.FloorUnlessSpoke)
}

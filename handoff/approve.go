package handoff

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
)

// A claim is an answer to a question that the voice model brought and that is not decided yet.
type claim struct {
	id       string
	req      Request
	question RecordQuestion
	claim    Claim
}

// answerArguments are the arguments of [ToolAnswerAgent].
type answerArguments struct {
	Question string `json:"question"`
	Decision string `json:"decision"`
	Text     string `json:"text"`
}

func parseAnswer(raw string) (answerArguments, error) {
	var a answerArguments
	if err := parse(raw, &a, "question", "decision", "text"); err != nil {
		return a, err
	}
	a.Question, a.Text = strings.TrimSpace(a.Question), strings.TrimSpace(a.Text)
	switch Decision(a.Decision) {
	case "", DecisionAccept, DecisionDecline, DecisionStop:
	default:
		return a, Fault(CodeMalformed, "decision must be accept, decline or stop", "")
	}
	if (a.Decision == "") == (a.Text == "") {
		return a, Fault(CodeMalformed, "there must be either a decision or a text", "")
	}
	if len(a.Text) > maxWordSize {
		return a, Fault(CodeTooLarge, "the text", "")
	}
	return a, nil
}

// opened takes a question of a work into the call: it is announced, and what the caller says is evidence.
func (s *serving) opened(q askedQ) {
	s.evidence.Open(OpenQuestion{
		Question: q.question, Server: q.shown.Server, Workspace: q.workspace, Level: q.level, Words: q.shown.Words && q.shown.Tap == "",
		About: AskedAbout(q.question, s.machines(q.shown), questionLead(q.shown)),
	})
	s.pace(questionEvent{id: q.shown.ID, work: q.shown.Handoff, text: questionMessage(q.shown)})
}

// questionClosed takes a question out of the call.
func (s *serving) questionClosed(id QuestionID) {
	s.evidence.Closed(id, time.Now())
	s.pace(questionClosedEvent{id: id})
	if len(s.claims) > 0 {
		s.judge(time.Now())
	}
}

// machines are the names by which a reply may mean the machine of a question.
func (s *serving) machines(q RecordQuestion) []string {
	names := slices.Clone(s.r.registered(q.Server).Names)
	if rec, _ := s.book.find(q.Handoff); rec.Project != "" {
		names = append(names, rec.Project)
	}
	return names
}

// answerAgent takes what the voice model says the caller answered. It decides nothing by itself.
func (s *serving) answerAgent(id string, req Request) {
	args, err := parseAnswer(req.Arguments)
	if err != nil {
		s.refuse(id, req, AsError(err))
		return
	}
	q, err := s.book.questionNamed(args.Question)
	if err != nil {
		s.refuse(id, req, AsError(err))
		return
	}
	if !s.evidence.Knows(q.shown.ID) { // it was asked in another call, or an answer could not be given
		s.opened(q.askedQ)
	}
	s.pace(claimedEvent{id: q.shown.ID})
	now := time.Now()
	s.claims = append(s.claims, &claim{id: id, req: req, question: q.shown, claim: Claim{
		Question: q.shown.ID, Hash: CommandHash(q.question, q.shown.Server), Wants: Decision(args.Decision), Words: args.Text, Came: now,
	}})
	s.judge(now)
}

// judge rules on the claims that wait, again with everything that is heard.
func (s *serving) judge(now time.Time) {
	var until time.Time
	s.claims = slices.DeleteFunc(s.claims, func(c *claim) bool {
		v := s.evidence.Judge(c.claim, now)
		if v.Ruling == RulingWait {
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
func (s *serving) ruled(c *claim, v Verdict) {
	s.log.Info("answer judged", zap.String("server", c.question.Server), zap.String("handoff", c.question.Handoff),
		zap.Stringer("ruling", v.Ruling), zap.Stringer("tier", v.Tier))
	switch v.Ruling {
	case RulingAccept, RulingDecline, RulingWords:
		words := s.words.Load()
		decided := decided{
			decision: v.Decision, words: c.claim.Words, by: v.By, tier: v.Tier, transcript: v.Transcript, call: s.id, said: v.Began,
			more: func() bool { return s.words.Load() != words },
		}
		if !s.r.start(func(ctx context.Context) { s.decide(ctx, c, decided) }) {
			s.refuse(c.id, c.req, Fault(CodeShutdown, "", ""))
		}
	case RulingAskAgain:
		s.evidence.Announced(c.question.ID, c.id+"-a", time.Now())
		s.pace(askedEvent{id: c.question.ID, utterance: c.id + "-a"})
		s.answer(c.id, c.req, askAgainAnswer(c.question, v.Fault), FloorAsk)
	case RulingReword:
		s.answer(c.id, c.req, rewordAnswer(c.question, v.Fault), FloorAsk)
	case RulingLater:
		s.answer(c.id, c.req, encode(answer{Status: "open", Server: c.question.Server, Say: "It waits.", Note: "The caller asked for time; nothing was decided. Say nothing more of it until they answer."}), FloorUnlessSpoke)
	default:
		s.refuse(c.id, c.req, v.Fault)
	}
}

// undecided takes a question back into the call whose answer could not be given: it is asked again by itself, and
// until it is closed a yes may be for it.
func (s *serving) undecided(id QuestionID) {
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
		s.refuse(c.id, c.req, AsError(err))
		return
	}
	s.answer(c.id, c.req, decidedAnswer(c.question, d.decision), FloorUnlessSpoke)
}

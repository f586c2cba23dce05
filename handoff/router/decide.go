package router

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/risk"
)

// auditWithin bounds the write of an audit record: the agent waits for it.
const auditWithin = 5 * time.Second

// byNobody stands in [handoff.Decided] for a question that was given up.
const byNobody = "nobody"

// Decide answers a question outside of a call: by a tap on the page, or through the API. It returns
// [handoff.CodeNotPending], and the answer reaches nobody, if the question was answered or withdrawn, or is somebody
// else's; [handoff.CodeNeedsTap] if the grant may not give this answer.
func (v Service) Decide(ctx context.Context, g handoff.Grant, id handoff.QuestionID, d handoff.Decision) error {
	return v.decideOffCall(ctx, g, id, handoff.Decided{Decision: d})
}

// maxReply bounds a typed answer, in bytes: a key fits, a file does not.
const maxReply = 4 << 10

// Reply answers a question in typed words, and is like [Service.Decide] otherwise. The audit keeps nothing of the
// words, which may be a secret.
func (v Service) Reply(ctx context.Context, g handoff.Grant, id handoff.QuestionID, words string) error {
	if strings.TrimSpace(words) == "" {
		return handoff.Fault(handoff.CodeMalformed, "there are no words", "")
	}
	if len(words) > maxReply {
		return handoff.Fault(handoff.CodeTooLarge, "the text", "")
	}
	return v.decideOffCall(ctx, g, id, handoff.Decided{Decision: handoff.DecisionWords, Words: words})
}

func (v Service) decideOffCall(ctx context.Context, g handoff.Grant, id handoff.QuestionID, d handoff.Decided) error {
	if err := mayDecide(g, d.Decision, handoff.ActAllow); err != nil {
		return err
	}
	c := v.of(g.Caller)
	q := c.questions.get(id)
	if q == nil {
		if err := c.router.Recovered(context.Background(), 0); err != nil { // after a restart it may be asked again
			return err
		}
		return handoff.Fault(handoff.CodeNotPending, "", "")
	}
	if !c.asks(g, q.Shown) {
		return handoff.Fault(handoff.CodeNotPending, "", "")
	}
	if err := q.mayDecide(g, d.Decision); err != nil {
		return err
	}
	d.By = handoff.ByAPI
	switch {
	case g.Page:
		d.By = handoff.ByPage
	case g.Terminal && d.Decision == handoff.DecisionAccept:
		d.By = handoff.ByTerminal
	}
	return c.decide(ctx, id, d)
}

// mayDecide returns why a grant may not give this answer outside of a call, or nil.
func (q *question) mayDecide(g handoff.Grant, d handoff.Decision) error {
	if err := mayDecide(g, d, handoff.ActAllow); err != nil {
		return err
	}
	elsewhere := q.Shown.Elsewhere()
	switch {
	case elsewhere != nil && (handoff.Decided{Decision: d}).Allows():
		return elsewhere
	case g.Page, g.Terminal && d == handoff.DecisionAccept:
	case d == handoff.DecisionAcceptForSession:
		return handoff.Fault(handoff.CodeNeedsTap, whyForSession, "")
	case d == handoff.DecisionAccept && q.tier() == risk.High:
		return handoff.Fault(handoff.CodeNeedsTap, whyRisk, "")
	}
	return nil
}

// offered returns the question as a grant sees it: with the answers that it may give outside of calls, and no others.
func (q *question) offered(g handoff.Grant) handoff.RecordQuestion {
	shown := q.Shown
	shown.Decisions = slices.DeleteFunc(slices.Clone(shown.Decisions), func(d handoff.Decision) bool {
		return q.mayDecide(g, d) != nil
	})
	shown.Words = shown.Words && q.mayDecide(g, handoff.DecisionWords) == nil
	shown.Voice = shown.Voice && g.May(handoff.ActAllowSaid) == nil
	if g.May(handoff.ActAllow) != nil {
		shown.Tap = cmp.Or(shown.Tap, handoff.WhyNoApprove)
	}
	return shown
}

// mayDecide returns why a grant does not allow a decision, or nil; allow is the act if it is a yes.
func mayDecide(g handoff.Grant, d handoff.Decision, allow handoff.Act) error {
	act := handoff.ActDecline
	if (handoff.Decided{Decision: d}).Allows() {
		act = allow
	}
	err := g.May(act)
	if err == nil && d == handoff.DecisionStop {
		err = g.May(handoff.ActStop)
	}
	return err
}

// Why an answer that came through the API needs a tap instead.
const (
	whyForSession = "it would allow it for the whole session"
	whyRisk       = "it is risky"
)

// Question finds an open question by name: by its label or its id; "" finds the only one.
func (v Service) Question(g handoff.Grant, name string) (handoff.OpenQuestion, error) {
	c := v.of(g.Caller)
	q, err := c.questions.named(name, func(q handoff.RecordQuestion) bool { return c.asks(g, q) })
	if err != nil {
		if unread := c.router.Recovered(context.Background(), 0); unread != nil &&
			handoff.AsError(err).Code == handoff.CodeNotPending {
			return handoff.OpenQuestion{}, unread
		}
		return handoff.OpenQuestion{}, err
	}
	return q.OpenQuestion, nil
}

// Answer answers a question in a call. Its errors are those of [Service.Decide]; [handoff.CodeNoConsent] means that the
// yes was said too long ago, or that the caller has said more since, and [handoff.CodeNeedsTap] that the grant allows
// no approval in a call.
func (v Service) Answer(ctx context.Context, g handoff.Grant, id handoff.QuestionID, d handoff.Decided) error {
	c := v.of(g.Caller)
	q := c.questions.get(id)
	if q == nil || !c.asks(g, q.Shown) {
		return handoff.Fault(handoff.CodeNotPending, "", "")
	}
	if err := mayDecide(g, d.Decision, handoff.ActAllowSaid); err != nil {
		return err
	}
	return c.decide(ctx, id, d)
}

// Unanswered sends a notice of a question outside of calls, because nobody answers it in the call.
func (v Service) Unanswered(g handoff.Grant, id handoff.QuestionID) {
	v.of(g.Caller).notifyQuestion(id)
}

// decide gives a decision to the agent that asked. The first decision of a question counts, others are refused. A
// decision that allows something is written to the audit first; if that fails or takes too long, it is not given.
func (c *caller) decide(ctx context.Context, id handoff.QuestionID, d handoff.Decided) error {
	q, err := c.questions.claim(id, d.Decision)
	if err != nil {
		return err
	}
	c.router.cfg.Log.Info("question decided", zap.String("principal", c.who.Principal),
		zap.String("server", q.Shown.Server), zap.String("handoff", q.Shown.Handoff),
		zap.String("decision", string(d.Decision)), zap.String("by", d.By))
	if d.Allows() && !d.Said.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, d.Said.Add(handoff.YesFor))
		defer cancel()
	}
	written := false
	if err = c.checkStill(q, d); err == nil {
		written, err = c.audit(ctx, q, d)
	}
	if now := c.checkStill(q, d); now != nil { // it explains more than an error of the audit does
		err = now
	}
	switch {
	case err != nil:
	case d.Decision == handoff.DecisionStop:
		// Work that waits for the turn is paused, unless the agent certainly did not take the decision: then the turn
		// goes on, and the work waits on.
		give := func() error { return c.router.act(func() error { return q.give(ctx, d) }) }
		err = c.router.cfg.Queues.stop(q.Shown.Handoff, give, func(err error, waiting []string) {
			if err == nil || !notTaken(handoff.AsError(err).Code) {
				c.pause(waiting)
			}
		})
	default:
		err = c.router.act(func() error { return q.give(ctx, d) })
	}
	if err == nil {
		c.router.cfg.Counts.answered.Add(d.By)
		c.answered(q, d.Decision, d.By)
		c.closeQuestion(id)
		if d.Call == "" && d.By != byNobody {
			c.feed.byHand(q.Shown.Handoff,
				handoff.RunByHand{Deed: handoff.DeedAnswer, Question: q.Shown, Decision: d.Decision})
		}
		return nil
	}
	e := handoff.AsError(err)
	if written && d.Allows() && notTaken(e.Code) {
		withheld := d
		withheld.Decision = handoff.DecisionWithheld
		_, _ = c.audit(context.WithoutCancel(ctx), q, withheld)
	}
	if e.Code == handoff.CodeNotPending {
		c.closeQuestion(id)
	} else {
		c.questions.release(q)
	}
	return e
}

// notTaken reports whether an error proves that the agent did not take the decision.
func notTaken(c handoff.Code) bool {
	switch c {
	case handoff.CodeNotPending, handoff.CodeNoConsent, handoff.CodeMalformed, handoff.CodeUnsupported,
		handoff.CodeStoreDown:
		return true
	}
	return false
}

// checkStill returns an error if a decision that allows something may not be given any more: the agent was lost or has
// withdrawn the question, the caller's yes is too old, or the caller went on to say something like "wait". decide calls
// it a second time right before the decision is given.
func (c *caller) checkStill(q *question, d handoff.Decided) error {
	switch {
	case !d.Allows():
		return nil
	case c.questions.get(q.Shown.ID) != q:
		return handoff.Fault(handoff.CodeNotPending, "", "it was withdrawn, or its connection was replaced")
	case !d.Said.IsZero() && time.Since(d.Said) > handoff.YesFor:
		return handoff.Fault(handoff.CodeNoConsent, handoff.WhyOld, "")
	case d.More != nil && d.More():
		return handoff.Fault(handoff.CodeNoConsent, handoff.WhyMore, "")
	}
	return nil
}

// give sends a decision to the agent.
func (q *question) give(ctx context.Context, d handoff.Decided) error {
	if d.Decision != handoff.DecisionWords {
		return q.controls.Decide(ctx, q.Shown.ID, d.Decision)
	}
	replier, ok := q.controls.(handoff.Replier)
	if !ok {
		return handoff.Fault(handoff.CodeUnsupported, q.Shown.Server, "this question is not answered in words")
	}
	return replier.Reply(ctx, q.Shown.ID, d.Words)
}

// audit writes a decision to the audit. It fails only for decisions that allow something: a no can do no harm.
func (c *caller) audit(ctx context.Context, q *question, d handoff.Decided) (written bool, err error) {
	if c.router.cfg.Auditor == nil {
		return false, nil
	}
	rec, _ := c.registry.find(q.Shown.Handoff)
	ctx, cancel := context.WithTimeout(ctx, auditWithin)
	defer cancel()
	err = c.router.cfg.Auditor.Audit(ctx, handoff.AuditRecord{
		Who: c.who.String(), Call: d.Call, Client: rec.Client, At: time.Now(),
		Server: q.Shown.Server, Thread: rec.ThreadID, Turn: q.Question.Turn, Question: q.Shown.ID,
		Decision: d.Decision, Tier: q.tier().String(), By: d.By,
		CommandHash: handoff.CommandHash(q.Question, q.Shown.Server), Transcript: handoff.TranscriptHash(d.Transcript),
		Said: d.Said, Asked: handoff.TranscriptHash(d.Asked), Heard: d.Heard,
	})
	if err == nil {
		return true, nil
	}
	c.router.cfg.Counts.audits.Add(1)
	c.router.cfg.Log.Warn("decision not written down", zap.String("handoff", q.Shown.Handoff), zap.Error(err))
	if d.Allows() {
		return false, handoff.Fault(handoff.CodeStoreDown, handoff.WhyStoreAudit, err.Error())
	}
	return false, nil
}

// closeQuestion closes a question here, on the pages and in the calls.
func (c *caller) closeQuestion(id handoff.QuestionID) {
	if q := c.questions.close(id); q != nil {
		c.feed.publish(q.Shown.Handoff, handoff.RunAnswered{Question: id})
	}
}

// Bounds of the answers that a record keeps.
const (
	maxAnswers  = 50      // the newest
	maxAnswered = 1 << 10 // bytes of the text and of the command of a question
)

// byElsewhere stands in [handoff.RecordAnswer] for a question that the agent withdrew, or that another client answered.
const byElsewhere = "elsewhere"

// answered adds an answer to the record of the run that asked.
func (c *caller) answered(q *question, d handoff.Decision, by string) {
	a := handoff.RecordAnswer{
		Kind: q.Shown.Kind, Decision: d, By: by, At: time.Now(),
		Text: handoff.Clip(q.Shown.Text, maxAnswered), Command: handoff.Clip(q.Shown.Command, maxAnswered),
	}
	c.registry.change(q.Shown.Handoff, func(rec *handoff.Record) {
		rec.Answers = append(rec.Answers, a)
		rec.Answers = rec.Answers[max(0, len(rec.Answers)-maxAnswers):]
	})
}

// withdrawn closes a question that the agent withdrew, or that another client answered. If an answer of ours is on its
// way, decide adds that to the record instead.
func (c *caller) withdrawn(id handoff.QuestionID) {
	if q := c.questions.get(id); q != nil && c.questions.unclaimed(q) {
		c.answered(q, "", byElsewhere)
	}
	c.closeQuestion(id)
}

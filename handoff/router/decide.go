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
	"switchboard/handoff/work"
)

// auditWithin bounds the write of an audit record: the agent waits for it.
const auditWithin = 5 * time.Second

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
func (v Service) Reply(ctx context.Context, g handoff.Grant, id handoff.QuestionID, reply handoff.Reply) error {
	if reply.Answers == nil && strings.TrimSpace(reply.Words) == "" {
		return handoff.Fault(handoff.CodeMalformed, "there are no words", "")
	}
	size := len(reply.Words)
	for _, answers := range reply.Answers {
		size += len(strings.Join(answers, "\n"))
	}
	if size > maxReply {
		return handoff.Fault(handoff.CodeTooLarge, "the text", "")
	}
	return v.decideOffCall(ctx, g, id, handoff.Decided{Decision: handoff.DecisionWords, Reply: reply})
}

func (v Service) decideOffCall(ctx context.Context, g handoff.Grant, id handoff.QuestionID, d handoff.Decided) error {
	if err := mayDecide(g, d.Decision, handoff.ActAllow); err != nil {
		return err
	}
	r := v.of(g.Caller)
	q := r.question(g, id)
	if q == nil { // after a restart it may be asked again
		return r.orUnread(handoff.Fault(handoff.CodeNotPending, "", ""))
	}
	if err := mayDecideOffCall(q, g, d.Decision); err != nil {
		return err
	}
	if d.Decision == handoff.DecisionWords { // before the audit has that it was given
		answers, err := q.Question.Read(d.Reply)
		if err != nil {
			return err
		}
		d.Reply = handoff.Reply{Answers: answers}
	}
	d.By = handoff.ByAPI
	switch {
	case g.Page:
		d.By = handoff.ByPage
	case g.Terminal && d.Decision == handoff.DecisionAccept:
		d.By = handoff.ByTerminal
	}
	return r.decide(ctx, id, d)
}

// mayDecideOffCall returns why a grant may not give this answer outside of a call, or nil.
func mayDecideOffCall(q *work.Question, g handoff.Grant, d handoff.Decision) error {
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
	case (d == handoff.DecisionAccept || d == handoff.DecisionWords && q.Question.Picks()) && q.Tier() == risk.High:
		return handoff.Fault(handoff.CodeNeedsTap, whyRisk, "")
	}
	return nil
}

// offered returns the question as a grant sees it: with the answers that it may give outside of calls, and no others.
func offered(q *work.Question, g handoff.Grant) handoff.RecordQuestion {
	shown := q.Shown
	shown.Decisions = slices.DeleteFunc(slices.Clone(shown.Decisions), func(d handoff.Decision) bool {
		return mayDecideOffCall(q, g, d) != nil
	})
	shown.Words = shown.Words && mayDecideOffCall(q, g, handoff.DecisionWords) == nil
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

// Questions returns the open questions of agents, oldest first, each with the answers that the grant may give outside
// of calls.
func (v Service) Questions(g handoff.Grant) []handoff.RecordQuestion {
	shown := []handoff.RecordQuestion{}
	for _, q := range ask(v.of(g.Caller), &work.Asking{Grant: g}).Questions {
		shown = append(shown, offered(q, g))
	}
	return shown
}

// question returns an open question that a grant may see, or nil.
func (r *Router) question(g handoff.Grant, id handoff.QuestionID) *work.Question {
	for _, q := range ask(r, &work.Asking{Grant: g}).Questions {
		if q.Shown.ID == id {
			return q
		}
	}
	return nil
}

// Question finds an open question by name: by its label or its id; "" finds the only one.
func (v Service) Question(g handoff.Grant, name string) (handoff.OpenQuestion, error) {
	r := v.of(g.Caller)
	q, err := work.Named(ask(r, &work.Asking{Grant: g}).Questions, name)
	if err != nil {
		return handoff.OpenQuestion{}, r.orUnread(err)
	}
	return q.OpenQuestion, nil
}

// Answer answers a question in a call. Its errors are those of [Service.Decide]; [handoff.CodeNoConsent] means that the
// yes was said too long ago, or that the caller has said more since, and [handoff.CodeNeedsTap] that the grant allows
// no approval in a call.
func (v Service) Answer(ctx context.Context, g handoff.Grant, id handoff.QuestionID, d handoff.Decided) error {
	r := v.of(g.Caller)
	if r.question(g, id) == nil {
		return handoff.Fault(handoff.CodeNotPending, "", "")
	}
	if err := mayDecide(g, d.Decision, handoff.ActAllowSaid); err != nil {
		return err
	}
	return r.decide(ctx, id, d)
}

// Unanswered sends a notice of a question outside of calls, because nobody answers it in the call.
func (v Service) Unanswered(g handoff.Grant, id handoff.QuestionID) {
	ask(v.of(g.Caller), &work.Unheard{ID: id})
}

// decline declines a question that nobody answered in time. If that fails, because another answer is on its way or the
// agent is away, it is declined later.
func (r *Router) decline(ctx context.Context, q *work.Question) {
	ctx, cancel := context.WithTimeout(ctx, work.SendTakes)
	defer cancel()
	if !ask(r, &work.Still{Question: q}).Open { // if the agent asked it again, that is another question
		return
	}
	err := r.decide(ctx, q.Shown.ID, handoff.Decided{Decision: handoff.DecisionDecline, By: work.ByNobody})
	if err != nil {
		r.cfg.Log.Info("question not declined", zap.String("handoff", q.Shown.Handoff), zap.Error(err))
		ask(r, &work.Unanswered{Question: q})
	}
}

// decide gives a decision to the agent that asked. The first decision of a question counts, others are refused. A
// decision that allows something is written to the audit first; if that fails or takes too long, it is not given. A
// decision to stop stops the work at once, as [Service.Stop] does, whatever becomes of the question.
func (r *Router) decide(ctx context.Context, id handoff.QuestionID, d handoff.Decided) error {
	claim := ask(r, &work.Claim{ID: id, Decision: d.Decision})
	if claim.Err != nil {
		return claim.Err
	}
	q := claim.Question
	r.cfg.Log.Info("question decided", zap.String("principal", r.cfg.Caller.Principal),
		zap.String("server", q.Shown.Server), zap.String("handoff", q.Shown.Handoff),
		zap.String("decision", string(d.Decision)), zap.String("by", d.By))
	if d.Allows() && !d.Said.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, d.Said.Add(handoff.YesFor))
		defer cancel()
	}
	written := false
	err := r.checkStill(q, d)
	if err == nil {
		written, err = r.audit(ctx, claim, d)
	}
	if now := r.checkStill(q, d); now != nil { // it explains more than an error of the audit does
		err = now
	}
	if err == nil {
		err = r.act(func() error { return r.give(ctx, q, d) })
	}
	if d.Decision == handoff.DecisionStop && handoff.CodeOf(err) == handoff.CodeNotPending {
		err = nil // the interrupt was there first
	}
	ask(r, &work.Decided{Question: q, Decided: d, Err: err})
	if err == nil {
		return nil
	}
	e := handoff.AsError(err)
	if written && d.Allows() && notTaken(e.Code) {
		withheld := d
		withheld.Decision = handoff.DecisionWithheld
		_, _ = r.audit(context.WithoutCancel(ctx), claim, withheld)
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
func (r *Router) checkStill(q *work.Question, d handoff.Decided) error {
	switch {
	case !d.Allows():
		return nil
	case !ask(r, &work.Still{Question: q}).Open:
		return handoff.Fault(handoff.CodeNotPending, "", "it was withdrawn, or its connection was replaced")
	case !d.Said.IsZero() && time.Since(d.Said) >= handoff.YesFor:
		return handoff.Fault(handoff.CodeNoConsent, handoff.WhyOld, "")
	case d.More != nil && d.More():
		return handoff.Fault(handoff.CodeNoConsent, handoff.WhyMore, "")
	}
	return nil
}

// give sends a decision to the agent, or to the state if that asks itself, about a copy.
func (r *Router) give(ctx context.Context, q *work.Question, d handoff.Decided) error {
	if q.Controls == nil {
		ask(r, &work.Copied{ID: q.Shown.Handoff, Decision: d.Decision})
		return nil
	}
	if d.Decision != handoff.DecisionWords {
		return q.Controls.Decide(ctx, q.Shown.ID, d.Decision)
	}
	replier, ok := q.Controls.(handoff.Replier)
	if !ok {
		return handoff.Fault(handoff.CodeUnsupported, q.Shown.Server, "this question is not answered in words")
	}
	answers, err := q.Question.Read(d.Reply)
	if err != nil {
		return err
	}
	return replier.Reply(ctx, q.Shown.ID, answers)
}

// audit writes a decision to the audit. It fails only for decisions that allow something: a no can do no harm, and does
// not wait for a disk that hangs. written: it is in the audit, or may still get there.
func (r *Router) audit(ctx context.Context, claim *work.Claim, d handoff.Decided) (written bool, err error) {
	if r.cfg.Auditor == nil {
		return false, nil
	}
	q, rec := claim.Question, claim.Record
	ctx, cancel := context.WithTimeout(ctx, auditWithin)
	defer cancel()
	result := make(chan error, 1)
	go func() {
		result <- r.cfg.Auditor.Audit(ctx, handoff.AuditRecord{
			Who: r.cfg.Caller.String(), Call: d.Call, Client: rec.Client, At: time.Now(),
			Server: q.Shown.Server, Thread: rec.ThreadID, Turn: q.Question.Turn, Question: q.Shown.ID,
			Decision: d.Decision, Tier: q.Tier().String(), By: d.By,
			CommandHash: handoff.CommandHash(q.Question, q.Shown.Server), Transcript: handoff.TranscriptHash(d.Transcript),
			Said: d.Said, Asked: handoff.TranscriptHash(d.Asked), Heard: d.Heard,
		})
	}()
	select {
	case err = <-result:
	case <-ctx.Done():
	}
	written = err == nil
	if err = cmp.Or(err, ctx.Err()); err == nil {
		return true, nil
	}
	r.cfg.Counts.audits.Add(1)
	r.cfg.Log.Warn("decision not written down", zap.String("handoff", q.Shown.Handoff), zap.Error(err))
	if d.Allows() {
		return written, handoff.Fault(handoff.CodeStoreDown, handoff.WhyStoreAudit, err.Error())
	}
	return written, nil
}

package handoff

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// auditWithin bounds the write of an audit record: the agent waits for it.
const auditWithin = 5 * time.Second

// registered returns what is configured of a server; a fleet that does not tell knows it by its name.
func (r *Router) registered(server string) Registered {
	if fleet, ok := r.fleet.(Registrar); ok {
		return fleet.Registered(server)
	}
	return Registered{Names: []string{server}}
}

// ByNobody is how a decision came that nobody made: the question was given up.
const ByNobody = "nobody"

// decided is a decision with what its audit record needs.
type decided struct {
	decision   Decision
	by         string
	tier       Risk
	transcript string
	call       string
}

// Decide answers a question by a tap. A second answer, and one to a question that was withdrawn or is
// somebody else's, gives [CodeNotPending] and reaches nobody.
func (r *Router) Decide(ctx context.Context, c Caller, id QuestionID, d Decision) error {
	q := r.book(c).question(id)
	if q == nil {
		return Fault(CodeNotPending, "", "")
	}
	return r.decide(ctx, c, id, decided{decision: d, by: ByTap, tier: RiskOf(q.question, q.workspace)})
}

// decide gives a decision to the agent that asked. An accept that cannot be written down is not given.
func (r *Router) decide(ctx context.Context, c Caller, id QuestionID, d decided) error {
	b := r.book(c)
	q, err := b.claimQuestion(id, d.decision)
	if err != nil {
		return err
	}
	r.log.Info("question decided", zap.String("principal", c.Principal), zap.String("server", q.shown.Server),
		zap.String("handoff", q.shown.Handoff), zap.String("decision", string(d.decision)), zap.String("by", d.by))
	if err := r.audit(ctx, c, q, d); err != nil {
		b.releaseQuestion(q)
		return err
	}
	if err := q.controls.Decide(ctx, id, d.decision); err != nil {
		e := AsError(err)
		if e.Code == CodeNotPending {
			r.closed(b, id)
		} else {
			b.releaseQuestion(q)
		}
		return e
	}
	r.closed(b, id)
	return nil
}

// audit writes a decision down. Only an accept depends on it: a no can do no harm.
func (r *Router) audit(ctx context.Context, c Caller, q *openQuestion, d decided) error {
	if r.auditor == nil {
		return nil
	}
	rec, _ := r.book(c).find(q.shown.Handoff)
	ctx, cancel := context.WithTimeout(ctx, auditWithin)
	defer cancel()
	err := r.auditor.Audit(ctx, AuditRecord{
		Who: c.String(), Call: d.call, Server: q.shown.Server, Thread: rec.ThreadID, Turn: q.question.Turn, Question: q.shown.ID,
		CommandHash: CommandHash(q.question, q.shown.Server), Decision: d.decision, Tier: d.tier.String(), By: d.by,
		Transcript: TranscriptHash(d.transcript), At: time.Now(),
	})
	if err == nil {
		return nil
	}
	r.log.Warn("decision not written down", zap.String("handoff", q.shown.Handoff), zap.Error(err))
	if d.decision == DecisionAccept || d.decision == DecisionAcceptForSession {
		return Fault(CodeStoreDown, "", err.Error())
	}
	return nil
}

// closed takes a question away everywhere.
func (r *Router) closed(b *book, id QuestionID) {
	b.closeQuestion(id)
	for _, c := range b.openCalls() {
		c.post(func(s *serving) { s.questionClosed(id) })
	}
}

// reply answers a question in words.
func (r *Router) reply(ctx context.Context, b *book, q *openQuestion, words string) error {
	replier, ok := q.controls.(Replier)
	if !ok || q.question.Kind != QuestionInput {
		return Fault(CodeUnsupported, q.shown.Server, "this question is not answered in words")
	}
	if !b.reserveQuestion(q) {
		return Fault(CodeNotPending, "", "")
	}
	if err := replier.Reply(ctx, q.shown.ID, words); err != nil {
		e := AsError(err)
		if e.Code == CodeNotPending {
			r.closed(b, q.shown.ID)
		} else {
			b.releaseQuestion(q)
		}
		return e
	}
	r.closed(b, q.shown.ID)
	return nil
}

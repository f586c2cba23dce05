package router

import (
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

// byNobody is how a decision came that nobody made: the question was given up.
const byNobody = "nobody"

// registered returns what is configured of a server; a fleet that does not tell knows it by its name.
func (r *Router) registered(server string) handoff.Registered {
	if fleet, ok := r.fleet.(handoff.Registrar); ok {
		return fleet.Registered(server)
	}
	return handoff.Registered{Names: []string{server}}
}

// decided is a decision with what its audit record needs.
type decided struct {
	decision   handoff.Decision
	words      string // with [handoff.DecisionWords]
	by         string
	tier       risk.Tier
	transcript string
	call       string
	said       time.Time   // when the reply began that decided by voice; zero: it does not age
	more       func() bool // reports whether the caller has said more since; nil: it does not matter
}

// allows reports whether a decision lets the agent do something: it is written down first, or not given.
func (d decided) allows() bool {
	return d.decision == handoff.DecisionAccept || d.decision == handoff.DecisionAcceptForSession || d.decision == handoff.DecisionWords
}

// tooOld reports whether what the caller said has waited too long to be given.
func (d decided) tooOld(now time.Time) bool {
	return d.allows() && !d.said.IsZero() && now.Sub(d.said) > handoff.YesFor
}

// Decide answers a question elsewhere than in a call: by a tap on the page, or through the API by a grant that
// may. A second answer, and one to a question that was withdrawn or is somebody else's, gives
// [handoff.CodeNotPending] and reaches nobody; what the grant may not answer gives [handoff.CodeNeedsTap].
func (r *Router) Decide(ctx context.Context, g handoff.Grant, id handoff.QuestionID, d handoff.Decision) error {
	return r.written(ctx, g, id, decided{decision: d})
}

// notPending says that a question is open no more, once that can be known: after a restart it may be asked again.
func (r *Router) notPending() error {
	if err := r.Recovered(context.Background(), 0); err != nil {
		return err
	}
	return handoff.Fault(handoff.CodeNotPending, "", "")
}

// maxWritten bounds an answer in words that was written on the page, in bytes: a key fits, a file does not.
const maxWritten = 4 << 10

// Reply answers a question in words that were written on the page, else like [Router.Decide]. Of words that
// may be a secret the audit keeps nothing.
func (r *Router) Reply(ctx context.Context, g handoff.Grant, id handoff.QuestionID, words string) error {
	if strings.TrimSpace(words) == "" {
		return handoff.Fault(handoff.CodeMalformed, "there are no words", "")
	}
	if len(words) > maxWritten {
		return handoff.Fault(handoff.CodeTooLarge, "the text", "")
	}
	return r.written(ctx, g, id, decided{decision: handoff.DecisionWords, words: words})
}

func (r *Router) written(ctx context.Context, g handoff.Grant, id handoff.QuestionID, d decided) error {
	if d.allows() && g.Approve < handoff.ApproveAll {
		return handoff.Fault(handoff.CodeNeedsTap, handoff.WhyNoApprove, "the key does not say approve: all")
	}
	q := r.caller(g.Caller).question(id)
	if q == nil {
		return r.notPending()
	}
	if !g.AllowsServer(q.shown.Server) {
		return handoff.Fault(handoff.CodeNotPending, "", "")
	}
	d.by, d.tier = handoff.ByAPI, risk.Of(q.asked, q.workspace)
	switch {
	case g.Page:
		d.by = handoff.ByPage
	case d.decision == handoff.DecisionAcceptForSession:
		return handoff.Fault(handoff.CodeNeedsTap, whyForSession, "")
	case d.decision == handoff.DecisionAccept && d.tier == risk.High:
		return handoff.Fault(handoff.CodeNeedsTap, whyRisk, "")
	}
	return r.decide(ctx, g.Caller, id, d)
}

// Why an answer that came through the API needs a tap instead.
const (
	whyForSession = "it would allow it for the whole session"
	whyRisk       = "it is risky"
)

// Question finds the open question that a name means: its label, its id, or "" where only one is open.
func (r *Router) Question(g handoff.Grant, name string) (handoff.OpenQuestion, error) {
	q, err := r.caller(g.Caller).questionNamed(g, name)
	if err != nil {
		if unread := r.Recovered(context.Background(), 0); unread != nil && handoff.AsError(err).Code == handoff.CodeNotPending {
			return handoff.OpenQuestion{}, unread
		}
		return handoff.OpenQuestion{}, err
	}
	return q.open(), nil
}

// Answer gives what the caller answered in a call; see [Router.Decide] for the errors.
// [handoff.CodeNoConsent] means that it was said too long ago, or that they have said more since, and
// [handoff.CodeNeedsTap] that no yes of the grant counts.
func (r *Router) Answer(ctx context.Context, g handoff.Grant, id handoff.QuestionID, a handoff.SpokenAnswer) error {
	q := r.caller(g.Caller).question(id)
	if q == nil || !g.AllowsServer(q.shown.Server) {
		return handoff.Fault(handoff.CodeNotPending, "", "")
	}
	d := decided{
		decision: a.Decision, words: a.Words, by: a.By, tier: risk.Of(q.asked, q.workspace),
		transcript: a.Transcript, call: a.Call, said: a.Said, more: a.More,
	}
	if d.allows() && !g.Approve.InCall() {
		return handoff.Fault(handoff.CodeNeedsTap, handoff.WhyNoApprove, "the key says approve: none")
	}
	return r.decide(ctx, g.Caller, id, d)
}

// Unanswered tells a question outside of calls, because nobody answers it in the call where it was asked.
func (r *Router) Unanswered(g handoff.Grant, id handoff.QuestionID) {
	r.notifyQuestion(g.Caller, r.caller(g.Caller), id)
}

// decide gives a decision to the agent that asked: one, whoever comes first. What allows something is
// written down before; when that fails, or took too long, it is not given.
func (r *Router) decide(ctx context.Context, c handoff.Caller, id handoff.QuestionID, d decided) error {
	b := r.caller(c)
	q, err := b.claimQuestion(id, d.decision)
	if err != nil {
		return err
	}
	r.log.Info("question decided", zap.String("principal", c.Principal), zap.String("server", q.shown.Server),
		zap.String("handoff", q.shown.Handoff), zap.String("decision", string(d.decision)), zap.String("by", d.by))
	if d.allows() && !d.said.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, d.said.Add(handoff.YesFor))
		defer cancel()
	}
	written := false
	if err = r.stillFor(b, q, d); err == nil {
		written, err = r.writeDown(ctx, c, q, d)
	}
	if now := r.stillFor(b, q, d); now != nil { // it says more than what came of it
		err = now
	}
	switch {
	case err != nil:
	case d.decision == handoff.DecisionStop:
		err = r.giveStop(ctx, b, q, d)
	default:
		err = q.give(ctx, d)
	}
	if err == nil {
		r.counts.answered.Add(d.by)
		b.answered(q, d.decision, d.by)
		r.closed(b, id)
		return nil
	}
	e := handoff.AsError(err)
	if written && d.allows() && certainlyNot(e.Code) {
		withheld := d
		withheld.decision = handoff.DecisionWithheld
		_, _ = r.writeDown(context.WithoutCancel(ctx), c, q, withheld)
	}
	if e.Code == handoff.CodeNotPending {
		r.closed(b, id)
	} else {
		b.releaseQuestion(q)
	}
	return e
}

// certainlyNot reports whether an error proves that the agent did not take the decision: else it may have gone out.
func certainlyNot(c handoff.Code) bool {
	switch c {
	case handoff.CodeNotPending, handoff.CodeNoConsent, handoff.CodeMalformed, handoff.CodeUnsupported:
		return true
	}
	return false
}

// stillFor looks whether something may still be allowed, also just before it is: the agent may have been lost or have
// taken its question back, what the caller said may be too old, and they may have gone on to say "wait".
func (r *Router) stillFor(b *callerState, q *question, d decided) error {
	switch {
	case !d.allows():
		return nil
	case b.question(q.shown.ID) != q:
		return handoff.Fault(handoff.CodeNotPending, "", "it was withdrawn, or its connection was replaced")
	case d.tooOld(time.Now()):
		return handoff.Fault(handoff.CodeNoConsent, handoff.WhyOld, "")
	case d.more != nil && d.more():
		return handoff.Fault(handoff.CodeNoConsent, handoff.WhyMore, "")
	}
	return nil
}

// give sends a decision to the agent.
func (q *question) give(ctx context.Context, d decided) error {
	if d.decision != handoff.DecisionWords {
		return q.controls.Decide(ctx, q.shown.ID, d.decision)
	}
	replier, ok := q.controls.(handoff.Replier)
	if !ok {
		return handoff.Fault(handoff.CodeUnsupported, q.shown.Server, "this question is not answered in words")
	}
	return replier.Reply(ctx, q.shown.ID, d.words)
}

// writeDown writes a decision to the audit. Only what allows something depends on it: a no can do no harm.
func (r *Router) writeDown(ctx context.Context, c handoff.Caller, q *question, d decided) (written bool, err error) {
	if r.auditor == nil {
		return false, nil
	}
	rec, _ := r.caller(c).find(q.shown.Handoff)
	ctx, cancel := context.WithTimeout(ctx, auditWithin)
	defer cancel()
	err = r.auditor.Audit(ctx, handoff.AuditRecord{
		Who: c.String(), Call: d.call, Server: q.shown.Server, Thread: rec.ThreadID, Turn: q.asked.Turn, Question: q.shown.ID,
		CommandHash: handoff.CommandHash(q.asked, q.shown.Server), Decision: d.decision, Tier: d.tier.String(), By: d.by,
		Transcript: handoff.TranscriptHash(d.transcript), At: time.Now(),
	})
	if err == nil {
		return true, nil
	}
	r.counts.audits.Add(1)
	r.log.Warn("decision not written down", zap.String("handoff", q.shown.Handoff), zap.Error(err))
	if d.allows() {
		return false, handoff.Because(handoff.CodeStoreDown, "", err)
	}
	return false, nil
}

// closed takes a question away everywhere.
func (r *Router) closed(b *callerState, id handoff.QuestionID) {
	if q := b.closeQuestion(id); q != nil {
		b.publish(q.shown.Handoff, handoff.RunAnswered{Question: id})
	}
}

// mayAnswer reports whether a question can be answered so.
func (q *question) mayAnswer(d handoff.Decision) error {
	if d == handoff.DecisionWords && (!q.asked.Words || !q.replies) || d != handoff.DecisionWords && !slices.Contains(q.shown.Decisions, d) {
		return handoff.Fault(handoff.CodeMalformed, "this question cannot be answered with "+handoff.Clip(string(d), 40), "")
	}
	return nil
}

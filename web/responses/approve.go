package responses

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"switchboard/handoff"
)

// openQuestions returns the questions of a response that nobody has answered.
func openQuestions(all Questions, g handoff.Grant, doc document) []handoff.RecordQuestion {
	if len(doc.Asked) == 0 {
		return nil
	}
	return slices.DeleteFunc(all.Questions(g), func(q handoff.RecordQuestion) bool {
		return !slices.Contains(doc.Asked, approvalID(doc.Response.ID, q.ID))
	})
}

// decided answers the questions that a response ended with, and goes on with its run in another response. What was
// answered elsewhere meanwhile, as by a tap, counts.
func (a *API) decided(ctx context.Context, g handoff.Grant, req *request, p *attempt) (*live, *fault) {
	if req.Previous == nil {
		return nil, bad(
			"", "input", "No approval request found with id '"+handoff.Clip(req.said.approvals[0].Request, 80)+"'.",
		)
	}
	doc, _, f := a.find(ctx, g, *req.Previous)
	switch {
	case f != nil && f.Status == http.StatusNotFound:
		return nil, noPrevious(*req.Previous)
	case f != nil:
		return nil, f
	case serverOf(req.Model) != doc.Server:
		return nil, bad("model_mismatch", "model", "The previous response is of the model '"+doc.Response.Model+"'.")
	}
	open := openQuestions(a.cfg.Questions, g, doc)
	if f := matched(req.said.approvals, doc, open); f != nil {
		return nil, f
	}
	next := doc
	next.Part++
	name := responsePrefix + string(doc.Run) + "_" + strconv.Itoa(next.Part)
	switch l, f := a.same(ctx, g, name); {
	case l != nil:
		return nil, busy("response_in_use", "That response was gone on from already, by "+name+".")
	case f != nil:
		return nil, f
	}
	p.lasts = true
	a.attempts.makes(g.Caller, p, name)
	for _, q := range open {
		if f := decide(ctx, a.cfg.Questions, g, q, *answerTo(req.said.approvals, doc, q)); f != nil {
			return nil, f
		}
	}
	next.Response, next.Input, next.Asked = fresh(name, req, time.Now()), req.said.kept(name), nil
	next.Streamed, next.Exact = req.Stream, doc.Exact
	if doc.Life != a.life { // the log of the run began anew with the process
		next.Seq = 0
	}
	l := a.newLive(g, next, doc.Response.Store)
	if !req.Background {
		by := a.listeners.enter(g)
		l.tells, l.leave = true, func() { a.listeners.exit(g, by, doc.Run) }
	}
	return a.place(ctx, l, next, p)
}

// matched reports whether approvals fit the questions: each answers one that was asked, and none stays open.
func matched(given []approval, doc document, open []handoff.RecordQuestion) *fault {
	for _, p := range given {
		if !slices.Contains(doc.Asked, p.Request) {
			return bad(
				"", "input", "No approval request found with id '"+handoff.Clip(p.Request, 80)+"' in the previous response.",
			)
		}
	}
	for _, q := range open {
		id, answer := approvalID(doc.Response.ID, q.ID), answerTo(given, doc, q)
		if answer == nil {
			return bad("approval_required", "input", "Approval required for "+id+" too.")
		}
		if q.Words && *answer.Approve && answer.Reason == "" {
			return bad(
				"", "input", "The question "+id+" is answered in words: they are the 'reason' of the approval.",
			)
		}
	}
	return nil
}

// answerTo returns the answer to a question of a response, or nil.
func answerTo(given []approval, doc document, q handoff.RecordQuestion) *approval {
	id := approvalID(doc.Response.ID, q.ID)
	if i := slices.IndexFunc(given, func(p approval) bool { return p.Request == id }); i >= 0 {
		return &given[i]
	}
	return nil
}

func decide(
	ctx context.Context, all Questions, g handoff.Grant, q handoff.RecordQuestion, answer approval,
) *fault {
	var err error
	switch {
	case *answer.Approve && q.Words:
		err = all.Reply(ctx, g, q.ID, answer.Reason)
	case *answer.Approve:
		err = all.Decide(ctx, g, q.ID, handoff.DecisionAccept)
	default:
		err = all.Decide(ctx, g, q.ID, handoff.DecisionDecline)
	}
	if err == nil || handoff.AsError(err).Code == handoff.CodeNotPending {
		return nil
	}
	return faultOf(err)
}

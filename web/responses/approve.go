package responses

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"switchboard/handoff"
)

// openQuestions returns the questions that a response ended with and that are still open.
func openQuestions(all Questions, g handoff.Grant, doc document) []handoff.RecordQuestion {
	if len(doc.Asked) == 0 {
		return nil
	}
	return slices.DeleteFunc(all.Questions(g), func(q handoff.RecordQuestion) bool {
		return !slices.Contains(doc.Asked, approvalID(doc.Response.ID, q.ID))
	})
}

// answerApprovals answers the questions that a response ended with, and continues its run in another response.
// Questions that were answered elsewhere meanwhile, such as on the page, keep those answers.
func (a *API) answerApprovals(ctx context.Context, g handoff.Grant, req *request, p *attempt) (*liveResponse, *fault) {
	if req.Previous == nil {
		return nil, bad(
			"", "input", "No approval request found with id '"+handoff.Clip(req.input.approvals[0].Request, 80)+"'.",
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
	if f := matched(req.input.approvals, doc, open); f != nil {
		return nil, f
	}
	next := doc
	next.Part++
	name := responsePrefix + string(doc.Run) + "_" + strconv.Itoa(next.Part)
	switch l, f := a.existing(ctx, g, name); {
	case l != nil:
		return nil, busy("response_in_use", "That response was gone on from already, by "+name+".")
	case f != nil:
		return nil, f
	}
	p.keepLong = true
	a.attempts.setResponse(g.Caller, p, name)
	for _, q := range open {
		if f := decide(ctx, a.cfg.Questions, g, q, *answerTo(req.input.approvals, doc, q)); f != nil {
			return nil, f
		}
	}
	next.Response, next.Input, next.Asked = fresh(name, req, time.Now()), req.input.kept(name), nil
	next.Streamed, next.Exact = req.Stream, doc.Exact
	if doc.Life != a.life { // the log of the run started again with this process
		next.Seq = 0
	}
	l := a.newLive(g, next, doc.Response.Store)
	if !req.Background {
		by := a.listeners.enter(g)
		l.expected, l.unfollow = true, sync.OnceFunc(func() { a.listeners.exit(g, by, doc.Run) })
	}
	return a.place(ctx, l, next, p)
}

// matched checks that each approval answers a question of the response, and that no question stays open.
func matched(approvals []approval, doc document, open []handoff.RecordQuestion) *fault {
	for _, p := range approvals {
		if !slices.Contains(doc.Asked, p.Request) {
			return bad(
				"", "input", "No approval request found with id '"+handoff.Clip(p.Request, 80)+"' in the previous response.",
			)
		}
	}
	for _, q := range open {
		id, answer := approvalID(doc.Response.ID, q.ID), answerTo(approvals, doc, q)
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
func answerTo(approvals []approval, doc document, q handoff.RecordQuestion) *approval {
	id := approvalID(doc.Response.ID, q.ID)
	if i := slices.IndexFunc(approvals, func(p approval) bool { return p.Request == id }); i >= 0 {
		return &approvals[i]
	}
	return nil
}

// decide answers a question. It is no error if the question was answered elsewhere meanwhile.
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

package responses

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/handoff"
)

// approvalPrefix is the prefix of the ids of questions.
const approvalPrefix = "mcpr_"

// approvalID returns the id of a question in a response. Like the id of every item, it contains that of the response.
func approvalID(response string, q handoff.QuestionID) string {
	sum := sha256.Sum256([]byte(q))
	return approvalPrefix + strings.TrimPrefix(response, responsePrefix) + "_" + hex.EncodeToString(sum[:8])
}

// answerable reports whether a yes by the API, or its words, would be taken. Other questions wait for a person.
func answerable(q handoff.RecordQuestion) bool { return q.Words || q.Risk != "high" && q.There == "" }

// approvalItem returns a question as an item of a response: a tool of the machine needs approval.
func approvalItem(response, machine string, q handoff.RecordQuestion) item {
	name := string(q.Kind)
	switch q.Kind {
	case handoff.QuestionCommand:
		name = "shell"
	case handoff.QuestionFileChange:
		name = "apply_patch"
	}
	args := handoff.Encode(struct {
		Text    string        `json:"text"`
		Command string        `json:"command,omitempty"`
		Cwd     string        `json:"cwd,omitempty"`
		Reason  string        `json:"reason,omitempty"`
		Changes []string      `json:"changes,omitempty"`
		Words   bool          `json:"answer_in_reason,omitempty"` // the answer is the reason of the approval
		Asks    []handoff.Ask `json:"asks,omitempty"`
		Beyond  string        `json:"beyond,omitempty"`
		Person  bool          `json:"person,omitempty"` // only a person can answer it, on the page
	}{q.Text, q.Command, q.Cwd, q.Reason, q.Changes, q.Words, q.Asks, q.Beyond, q.Person})
	return item{
		ID: approvalID(response, q.ID), Type: typeApproval, ServerLabel: machine, Name: name, Arguments: &args,
	}
}

// openQuestions returns the questions that a response ended with and that are still open.
func (a *API) openQuestions(g handoff.Grant, doc document) []handoff.RecordQuestion {
	return slices.DeleteFunc(a.cfg.Questions.Questions(g), func(q handoff.RecordQuestion) bool {
		return !slices.Contains(doc.Asked, approvalID(doc.Response.ID, q.ID))
	})
}

// answerApprovals answers the questions that a response ended with, and continues its handoff in another response.
// Questions that were answered elsewhere meanwhile, such as on the page, keep those answers.
func (a *API) answerApprovals(ctx context.Context, g handoff.Grant, req *request) (*liveResponse, *fault) {
	if req.Previous == nil {
		return nil, noApproval(req.input.approvals[0], "")
	}
	doc, f := a.previous(ctx, g, req)
	if f != nil {
		return nil, f
	}
	open := a.openQuestions(g, doc)
	if f := matched(req.input.approvals, doc, open); f != nil {
		return nil, f
	}
	name := responsePrefix + string(doc.Run) + "_" + strconv.Itoa(doc.Part+1)
	l, f := a.existing(ctx, g, name)
	if l == nil && f == nil {
		l, f = a.goOn(ctx, g, req, doc, name, open)
	}
	if f == nil && l.now().Sum != req.sum {
		return nil, busy("response_in_use", "That response was gone on from already, by "+name+".")
	}
	return l, f
}

// goOn answers the open questions that a response ended with, and continues its handoff in the next response.
func (a *API) goOn(
	ctx context.Context, g handoff.Grant, req *request, doc document, name string, open []handoff.RecordQuestion,
) (*liveResponse, *fault) {
	for _, q := range open {
		if f := a.decide(ctx, g, q, *answerTo(req.input.approvals, doc, q)); f != nil {
			return nil, f
		}
	}
	next := doc
	next.Part++
	next.Response, next.Input, next.Asked = fresh(name, req, time.Now()), req.input.kept(name), nil
	next.Streamed, next.Sum = req.Stream, req.sum
	if doc.Life != a.life { // the log of the handoff started again with this process
		next.Seq = 0
	}
	return a.place(ctx, a.newLive(g, next, doc.Response.Store), next, req)
}

func noApproval(p inputItem, where string) *fault {
	return bad("", "input", "No approval request found with id '"+handoff.Clip(p.Request, 80)+"'"+where+".")
}

// matched checks that each approval answers a question of the response, and that no question stays open.
func matched(approvals []inputItem, doc document, open []handoff.RecordQuestion) *fault {
	for _, p := range approvals {
		if !slices.Contains(doc.Asked, p.Request) {
			return noApproval(p, " in the previous response")
		}
	}
	for _, q := range open {
		id, answer := approvalID(doc.Response.ID, q.ID), answerTo(approvals, doc, q)
		if answer == nil {
			return bad("approval_required", "input", "Approval required for "+id+" too.")
		}
		if q.Words && *answer.Approve && answer.Reason == "" {
			return bad("", "input", "The question "+id+" is answered in words: they are the 'reason' of the approval.")
		}
	}
	return nil
}

// answerTo returns the answer to a question of a response, or nil.
func answerTo(approvals []inputItem, doc document, q handoff.RecordQuestion) *inputItem {
	id := approvalID(doc.Response.ID, q.ID)
	if i := slices.IndexFunc(approvals, func(p inputItem) bool { return p.Request == id }); i >= 0 {
		return &approvals[i]
	}
	return nil
}

// decide answers a question. It is no error if the question was answered elsewhere meanwhile.
func (a *API) decide(ctx context.Context, g handoff.Grant, q handoff.RecordQuestion, answer inputItem) *fault {
	var err error
	switch {
	case !*answer.Approve:
		err = a.cfg.Questions.Decide(ctx, g, q.ID, handoff.DecisionDecline)
	case q.Words:
		err = a.cfg.Questions.Reply(ctx, g, q.ID, handoff.Reply{Words: answer.Reason})
	default:
		err = a.cfg.Questions.Decide(ctx, g, q.ID, handoff.DecisionAccept)
	}
	if err == nil || handoff.CodeOf(err) == handoff.CodeNotPending {
		return nil
	}
	return faultOf(err)
}

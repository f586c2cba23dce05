package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/handoff"
)

// An agent's question can be shown to the client's user as a form (elicitation). The answer counts as an answer by the
// API, because some clients answer by themselves, without a person. So the form is used only for a grant whose yes by
// the API counts, and only for questions that do not need the page: a secret is typed there. Declining the form
// declines the question; a form that is put away leaves it open.

// mayAsk reports whether this call shows a question to the client's user. A call does so once.
func (c *call) mayAsk(q handoff.RecordQuestion) bool {
	p := c.req.Session.InitializeParams()
	if p == nil || p.Capabilities == nil || p.Capabilities.Elicitation == nil {
		return false
	}
	forms := p.Capabilities.Elicitation
	return (forms.Form != nil || forms.URL == nil) && // before 2025-11-25 all were forms
		len(c.req.Params.InputResponses) == 0 && c.grant.May(handoff.ActAllow) == nil &&
		q.Tap == "" && q.Risk != "high" &&
		!slices.ContainsFunc(q.Asks, func(a handoff.Ask) bool { return a.Secret })
}

// ask returns the result that shows the form. The client repeats the call with the answer and the id of the work in it;
// for clients that cannot, the library shows the form and repeats the call.
func (c *call) ask() *mcp.CallToolResult {
	q := c.asked
	message := fmt.Sprintf("%s asks: %s", q.Server, strings.TrimSpace(q.Text))
	if q.Command != "" {
		message = fmt.Sprintf("%s asks to run:\n%s", q.Server, q.Command)
	}
	if q.Risk != "" {
		message += "\nRisk: " + q.Risk
	}
	return &mcp.CallToolResult{
		RequestState: q.Handoff,
		InputRequests: mcp.InputRequestMap{
			string(q.ID): &mcp.ElicitParams{
				Mode: "form", Message: handoff.Clip(message, maxAsked),
				RequestedSchema: formOf(*q, c.grant.May(handoff.ActStop) == nil),
			},
		},
	}
}

// formOf returns the schema of the form: a decision, or a field of words for each of the question's Asks. The protocol
// before 2025-11-25 has no lists: several options are words with commas between them.
func formOf(q handoff.RecordQuestion, mayStop bool) map[string]any {
	fields, required := map[string]any{}, []string{}
	if !q.Words {
		may := []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline}
		if mayStop {
			may = append(may, handoff.DecisionStop)
		}
		fields[answerField(0)] = map[string]any{"type": "string", "title": "Decision", "enum": may}
		required = append(required, answerField(0))
	}
	for i, a := range asksOf(q) {
		field := map[string]any{"type": "string", "title": cmp.Or(handoff.Clip(a.Text, maxAsked), "Answer")}
		switch {
		case a.Only && !a.Many:
			field["enum"] = a.Options
		case len(a.Options) > 0:
			field["description"] = handoff.Clip(strings.Join(a.Options, ", "), maxAsked)
		}
		fields[answerField(i)] = field
		if !a.Optional {
			required = append(required, answerField(i))
		}
	}
	return map[string]any{"type": "object", "properties": fields, "required": required}
}

// asksOf returns what a question asks in words, one by one; none: it asks for a decision.
func asksOf(q handoff.RecordQuestion) []handoff.Ask {
	if q.Words && len(q.Asks) == 0 {
		return []handoff.Ask{{}}
	}
	return q.Asks
}

// replyOf returns the answers in a form.
func replyOf(q handoff.RecordQuestion, content map[string]any) (handoff.Reply, error) {
	var r handoff.Reply
	for i, a := range asksOf(q) {
		words, _ := content[answerField(i)].(string)
		if len(q.Asks) == 0 {
			return handoff.Reply{Words: words}, nil
		}
		answers, err := a.Read(words)
		if err != nil {
			return r, err
		}
		r.Answers = append(r.Answers, answers)
	}
	return r, nil
}

// answerField returns the name of a field of the form: "answer", "answer2", "answer3", ….
func answerField(i int) string {
	if i == 0 {
		return "answer"
	}
	return fmt.Sprint("answer", i+1)
}

// maxAsked bounds the text of a form, in bytes.
const maxAsked = 2000

// takeAnswer passes on the answers of the client's user, and returns the work that asked. Each answer names its
// question, which the grant must allow.
func (c *call) takeAnswer(ctx context.Context) (handoff.ID, error) {
	work := handoff.ID(c.req.Params.RequestState)
	for id, response := range c.req.Params.InputResponses {
		q, err := c.front.cfg.Backend.Questions.Question(c.grant, id)
		if err == nil {
			work = cmp.Or(work, handoff.ID(q.Shown.Handoff))
			err = c.decide(ctx, q.Shown, response)
		}
		if err != nil && handoff.AsError(err).Code != handoff.CodeNotPending { // it was answered elsewhere
			return "", err
		}
	}
	if work == "" {
		return "", handoff.Fault(handoff.CodeMalformed, "requestState is missing", "")
	}
	return work, nil
}

// decide answers a question as its form was answered.
func (c *call) decide(ctx context.Context, q handoff.RecordQuestion, response mcp.InputResponse) error {
	form, ok := response.(*mcp.ElicitResult)
	if !ok {
		return nil
	}
	decisions := c.front.cfg.Backend.Decisions
	switch {
	case form.Action == "decline":
		return decisions.Decide(ctx, c.grant, q.ID, handoff.DecisionDecline)
	case form.Action != "accept": // put away
		return nil
	case q.Words:
		reply, err := replyOf(q, form.Content)
		if err != nil {
			return err
		}
		return decisions.Reply(ctx, c.grant, q.ID, reply)
	}
	decision, _ := form.Content[answerField(0)].(string)
	return decisions.Decide(ctx, c.grant, q.ID, handoff.Decision(decision))
}

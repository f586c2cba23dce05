package mcp

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/handoff"
)

// An agent's question can be shown to the client's user as a form with one field (elicitation). The answer counts as an
// answer by the API, because some clients answer by themselves, without a person. So the form is used only for a grant
// whose yes by the API counts, and only for questions that do not need the page. Declining the form declines the
// question; a form that is put away leaves it open.

// mayAsk reports whether this call shows a question to the client's user. A call does so once.
func (c *call) mayAsk(q handoff.RecordQuestion) bool {
	p := c.req.Session.InitializeParams()
	if p == nil || p.Capabilities == nil || p.Capabilities.Elicitation == nil {
		return false
	}
	forms := p.Capabilities.Elicitation
	return (forms.Form != nil || forms.URL == nil) && // before 2025-11-25 all were forms
		len(c.req.Params.InputResponses) == 0 && c.grant.May(handoff.ActAllow) == nil && q.Tap == "" && q.Risk != "high" && len(q.Asks) <= 1
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
	field := map[string]any{"type": "string", "title": "Answer"}
	if !q.Words {
		may := []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline}
		if c.grant.May(handoff.ActStop) == nil {
			may = append(may, handoff.DecisionStop)
		}
		field = map[string]any{"type": "string", "title": "Decision", "enum": may}
	}
	form := map[string]any{
		"type":       "object",
		"properties": map[string]any{answerField: field},
		"required":   []string{answerField},
	}
	return &mcp.CallToolResult{
		RequestState: q.Handoff,
		InputRequests: mcp.InputRequestMap{
			string(q.ID): &mcp.ElicitParams{Mode: "form", Message: handoff.Clip(message, maxAsked), RequestedSchema: form},
		},
	}
}

// answerField is the name of the form's field.
const answerField = "answer"

// maxAsked bounds the text of a form, in bytes.
const maxAsked = 2000

// takeAnswer passes on the answers of the client's user, and returns the work that asked. Each answer names its
// question, which the grant must allow.
func (c *call) takeAnswer(ctx context.Context) (handoff.RunID, error) {
	work := handoff.RunID(c.req.Params.RequestState)
	for id, response := range c.req.Params.InputResponses {
		q, err := c.front.cfg.Backend.Questions.Question(c.grant, id)
		if err == nil {
			work = cmp.Or(work, handoff.RunID(q.Shown.Handoff))
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
	words, _ := form.Content[answerField].(string)
	decisions := c.front.cfg.Backend.Decisions
	switch {
	case form.Action == "decline":
		return decisions.Decide(ctx, c.grant, q.ID, handoff.DecisionDecline)
	case form.Action != "accept": // put away
		return nil
	case q.Words:
		return decisions.Reply(ctx, c.grant, q.ID, words)
	}
	return decisions.Decide(ctx, c.grant, q.ID, handoff.Decision(words))
}

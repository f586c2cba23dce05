package mcp

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

// A form with one field asks the client's user. Its answer counts as one by the API, since a program may give it
// without a person: some answer by themselves at once. So it is asked only of a grant whose yes by the API counts, and
// only for what the page alone need not answer; what is declined or cancelled without a decision leaves the question
// open.

// mayAsk reports whether the client's user is asked a question in this call. A call asks once.
func (c *call) mayAsk(q handoff.RecordQuestion) bool {
	p := c.req.Session.InitializeParams()
	if p == nil || p.Capabilities == nil || p.Capabilities.Elicitation == nil {
		return false
	}
	forms := p.Capabilities.Elicitation
	return (forms.Form != nil || forms.URL == nil) && // before 2025-11-25 there was no other kind
		len(c.req.Params.InputResponses) == 0 && c.grant.Approve >= handoff.ApproveAll &&
		c.grant.AllowsTool(tools.AnswerAgent) && q.Tap == "" && q.Risk != "high" && len(q.Asks) <= 1
}

// ask is the result that asks the client's user. The client answers by the same call with the answer in it; for one
// that cannot, the library asks and calls again.
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
		field = map[string]any{
			"type":  "string",
			"title": "Decision",
			"enum":  []string{string(handoff.DecisionAccept), string(handoff.DecisionDecline), string(handoff.DecisionStop)},
		}
	}
	form := map[string]any{
		"type":       "object",
		"properties": map[string]any{answerField: field},
		"required":   []string{answerField},
	}
	return &mcp.CallToolResult{
		InputRequests: mcp.InputRequestMap{
			string(q.ID): &mcp.ElicitParams{Mode: "form", Message: handoff.Clip(message, maxAsked), RequestedSchema: form},
		},
	}
}

// answerField is the one field of the form.
const answerField = "answer"

// maxAsked bounds what a form shows, in bytes.
const maxAsked = 2000

// takeAnswer gives on what the client's user answered. The answer names its question, which the grant has to see.
func (c *call) takeAnswer(ctx context.Context) error {
	for id, response := range c.req.Params.InputResponses {
		given, ok := response.(*mcp.ElicitResult)
		if !ok || given.Action != "accept" {
			continue
		}
		words, _ := given.Content[answerField].(string)
		q, err := c.front.cfg.Backend.Questions.Question(c.grant, id)
		if err != nil {
			return err
		}
		if q.Shown.Words {
			err = c.front.cfg.Backend.Decisions.Reply(ctx, c.grant, q.Shown.ID, words)
		} else {
			err = c.front.cfg.Backend.Decisions.Decide(ctx, c.grant, q.Shown.ID, handoff.Decision(words))
		}
		if err != nil && handoff.AsError(err).Code != handoff.CodeNotPending { // somebody else was faster
			return err
		}
	}
	return nil
}

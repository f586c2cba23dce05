package web

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"switchboard/handoff"
)

// Questions has the open questions of agents. The error for answering one that is answered, withdrawn or another
// caller's has code [handoff.CodeNotPending].
type Questions interface {
	Questions(g handoff.Grant) []handoff.RecordQuestion
	Decide(ctx context.Context, g handoff.Grant, id handoff.QuestionID, d handoff.Decision) error
	Reply(ctx context.Context, g handoff.Grant, id handoff.QuestionID, reply handoff.Reply) error
}

// Decisions reads a caller's decisions from the audit, newest first.
type Decisions interface {
	Decisions(c handoff.Caller, limit int) ([]handoff.AuditRecord, error)
}

// maxDecisions is the most decisions in one answer.
const maxDecisions = 200

// questions serves the open questions of agents, and past decisions.
type questions struct {
	open    Questions // Set once
	decided Decisions // Set once
}

func (q questions) list(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	g.Terminal = atTerminal(r) // where a second act counts
	return writeJSON(w, http.StatusOK, listOf(q.open.Questions(g)))
}

func (q questions) decide(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		Decision handoff.Decision `json:"decision"`
		Text     string           `json:"text"`
		Answers  [][]string       `json:"answers"` // to each field, in their order
		Typed    string           `json:"typed"`   // the second act of a person at their own terminal
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	id := handoff.QuestionID(r.PathValue("id"))
	reply := handoff.Reply{Words: body.Text, Answers: body.Answers}
	switch worded := body.Text != "" || body.Answers != nil; {
	case worded && body.Decision == "" && (body.Text == "" || body.Answers == nil):
		return done(w, q.open.Reply(r.Context(), g, id, reply))
	case worded:
		return handoff.Fault(handoff.CodeMalformed, "there is either a decision, a text, or a list of answers", "")
	}
	if body.Typed != "" {
		if err := q.typed(r, g, id, body.Typed); err != nil {
			return err
		}
		g.Terminal = true
	}
	switch body.Decision {
	case handoff.DecisionAccept, handoff.DecisionAcceptForSession, handoff.DecisionDecline, handoff.DecisionStop:
	default:
		return handoff.Fault(handoff.CodeMalformed, "decision is accept, accept_for_session, decline or stop", "")
	}
	return done(w, q.open.Decide(r.Context(), g, id, body.Decision))
}

// typed returns an error unless a request of the user who runs the service has the second act of an open question.
func (q questions) typed(r *http.Request, g handoff.Grant, id handoff.QuestionID, word string) error {
	if !atTerminal(r) {
		return handoff.Fault(handoff.CodeNeedsTap, "a word counts only at a terminal of the user who runs Switchboard", "")
	}
	for _, open := range q.open.Questions(g) {
		switch {
		case open.ID != id:
		case open.SecondAct() == word:
			return nil
		default:
			return handoff.Fault(handoff.CodeMalformed, "that is not what was to be typed", "")
		}
	}
	return handoff.Fault(handoff.CodeNotPending, "", "")
}

// atTerminal reports whether a request may come from a terminal of the user who runs the service.
func atTerminal(r *http.Request) bool {
	_, keyed := carriedKey(r)
	return !keyed && inside(r)
}

// decisionInfo is a decision in a list.
type decisionInfo struct {
	Server   string           `json:"server"`
	Thread   string           `json:"thread_id"`
	Client   string           `json:"client,omitempty"` // the program that gave the work, or that was given access
	Decision handoff.Decision `json:"decision"`
	Risk     string           `json:"risk"`
	By       string           `json:"by"`
	At       time.Time        `json:"at"`
}

// decisions lists the caller's decisions, newest first.
func (q questions) decisions(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	limit, err := number(r, "limit", maxDecisions)
	if err != nil {
		return err
	}
	records, err := q.decided.Decisions(g.Caller, cmp.Or(limit, maxDecisions))
	if err != nil {
		return err
	}
	items := []decisionInfo{}
	for _, d := range records {
		if d.Server == "" || g.AllowsServer(d.Server) {
			items = append(items, decisionInfo{d.Server, d.Thread, d.Client, d.Decision, d.Tier, d.By, d.At})
		}
	}
	return writeJSON(w, http.StatusOK, listOf(items))
}

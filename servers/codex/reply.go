package codex

import (
	"context"
	"errors"
	"strings"

	"switchboard/handoff"
)

// inputQuestion is one question of item/tool/requestUserInput.
type inputQuestion struct {
	ID       string `json:"id"`
	Question string `json:"question"`
	IsSecret bool   `json:"isSecret"`
	Options  []struct {
		Label string `json:"label"`
	} `json:"options"`
}

// asks are the questions one by one.
func (p *askParams) asks() []handoff.Ask {
	var all []handoff.Ask
	for _, q := range p.Questions {
		ask := handoff.Ask{Text: q.Question, Secret: q.IsSecret}
		for _, o := range q.Options {
			ask.Options = append(ask.Options, o.Label)
		}
		all = append(all, ask)
	}
	return all
}

// inputAnswer is the answer to one of them.
type inputAnswer struct {
	Answers []string `json:"answers"`
}

// Reply answers a question of kind [handoff.QuestionInput] in words: one line for each of its questions.
func (a *agent) Reply(ctx context.Context, id handoff.QuestionID, words string) error {
	q, ok := a.thread.claimQuestion(id)
	if !ok {
		return handoff.Fault(handoff.CodeNotPending, "", "")
	}
	result, err := q.Wire.words(words)
	if err == nil {
		err = a.conn.client.answer(ctx, q.Wire.id, result)
	}
	if err == nil {
		return nil
	}
	if _, unfit := errors.AsType[*handoff.Error](err); unfit || wasNotSent(err) {
		a.thread.unclaimQuestion(q)
	}
	return a.name().fault(err, handoff.CodeAgentGone, handoff.CodeAgentGone)
}

// words maps an answer in words to the wire. An option that is named is answered by its own label.
func (q *wireQuestion) words(text string) (any, error) {
	if q.method != askInput {
		return nil, handoff.Fault(handoff.CodeMalformed, "that question takes a yes or a no", q.method)
	}
	lines := []string{strings.TrimSpace(text)}
	if len(q.asked.Questions) > 1 {
		lines = strings.Split(lines[0], "\n")
	}
	if text == "" || len(lines) != len(q.asked.Questions) {
		return nil, handoff.Fault(handoff.CodeMalformed, "each question needs an answer, one on a line", "")
	}
	answers := map[string]inputAnswer{}
	for i, asked := range q.asked.Questions {
		line := strings.TrimSpace(lines[i])
		for _, o := range asked.Options {
			if strings.EqualFold(o.Label, line) {
				line = o.Label
			}
		}
		answers[asked.ID] = inputAnswer{[]string{line}}
	}
	return struct {
		Answers map[string]inputAnswer `json:"answers"`
	}{answers}, nil
}

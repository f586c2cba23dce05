package servers

import (
	"slices"

	"switchboard/handoff"
)

// An Owner is what the owner of a machine lets others do with its agents. The zero Owner allows everything. The gate on
// the machine adds it to each question of an agent, so that only answers are offered which the gate lets through.
type Owner struct {
	// Ceiling is the loosest sandbox: read-only, workspace-write or danger-full-access; "": any.
	Ceiling   string `json:"ceiling,omitempty"`
	NoAnswers bool   `json:"no_answers,omitempty"` // questions of agents are answered there alone
}

// Answers are the answers to questions of agents that count from elsewhere, from loose to strict. An answer counts if
// it is at least as strict.
type Answers int

// What an answer may allow.
const (
	AnswersAll  Answers = iota // whatever is asked for: for the session, more rights; words, which may allow anything
	AnswersOnce                // the one act that is asked for
	AnswersNo                  // nothing
)

// Answers returns the loosest answers that count.
func (o Owner) Answers() Answers {
	switch {
	case o.NoAnswers:
		return AnswersNo
	case o.Ceiling == "", o.Ceiling == "danger-full-access":
		return AnswersAll
	case o.Ceiling == "workspace-write":
		return AnswersOnce
	}
	return AnswersNo
}

// Limit takes from a question the answers that would not count, and says why. once says that a yes to the question
// allows one act only.
func (o Owner) Limit(q *handoff.Question, once bool) {
	most := o.Answers()
	if most == AnswersAll {
		return
	}
	yes := once && most == AnswersOnce
	q.Decisions = slices.DeleteFunc(slices.Clone(q.Decisions), func(d handoff.Decision) bool {
		return d == handoff.DecisionAcceptForSession || d == handoff.DecisionAccept && !yes
	})
	switch {
	case yes:
		return
	case o.NoAnswers:
		q.There = "its owner lets nobody else answer its agents"
	default:
		q.There = "it may allow more than " + o.Ceiling + ", the ceiling of that machine"
	}
	q.Words, q.Asks = false, nil
}

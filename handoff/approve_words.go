package handoff

import (
	"fmt"
)

// questionLead says what is asked, by which machine, and how it can be answered. It is how we ask, so a
// reply that repeats it is an echo.
func questionLead(q RecordQuestion) string {
	if q.Kind == QuestionCopy {
		if q.Reason == "" {
			return fmt.Sprintf("A copy of the session %s on %s was asked for", sayTitle(q.Title), q.Server)
		}
		return fmt.Sprintf("The session %s is open in another program on %s", sayTitle(q.Title), q.Server)
	}
	what := map[QuestionKind]string{
		QuestionCommand:     "asks for permission to run a command",
		QuestionFileChange:  "asks for permission to change files",
		QuestionPermissions: "asks for more permissions",
		QuestionInput:       "has a question",
		QuestionElicitation: "has a question",
	}[q.Kind]
	if what == "" {
		what = "waits for an answer"
	}
	return q.Server + " " + what
}

// onlyThere tells whether a question can only be answered where the agent runs.
func onlyThere(q RecordQuestion) bool {
	return q.Kind == QuestionOther || q.Kind == QuestionInput && !q.Words
}

// questionMessage announces that the agent waits for the caller.
func questionMessage(q RecordQuestion) string {
	how := fmt.Sprintf("Tell the caller now what exactly would be done on %s and ask: yes or no? Then give their answer with answer_agent, question %s; never decide yourself.", q.Server, q.Label)
	switch {
	case onlyThere(q):
		how = fmt.Sprintf("That can only be answered on the machine %s itself, neither by voice nor on the page. Tell the caller so now.", q.Server)
	case q.Words && q.Tap != "":
		how = fmt.Sprintf("Please answer on the page: %s. Tell the caller so now, and never ask for it. If they say no, give that with answer_agent, question %s.", WhySecret, q.Label)
	case q.Tap != "":
		how = fmt.Sprintf("Please answer on the page: %s. It is shown there, and a yes counts only there. Tell the caller so now, and what would be done on %s. If they say no, give that with answer_agent, question %s.", q.Tap, q.Server, q.Label)
	case q.Kind == QuestionCopy:
		how = fmt.Sprintf("Nothing was run. Tell the caller so and ask now: shall a copy of it be made on %s, to go on there, yes or no? Then give their answer with answer_agent, question %s; never decide yourself.", q.Server, q.Label)
	case q.Words:
		how = fmt.Sprintf("Ask the caller, then give their words with answer_agent, question %s.", q.Label)
	}
	return Message(questionLead(q)+". "+how, questionQuote(q))
}

// questionQuote is what the agent asks for, in its words.
func questionQuote(q RecordQuestion) string {
	quote := q.Command
	if quote == "" && q.Kind != QuestionCopy { // our own words are no quotation
		quote = q.Text
	}
	for _, path := range q.Changes {
		quote += "\n" + path
	}
	return Clip(quote, maxRemark)
}

// rewordAnswer tells that the words were not the caller's.
func rewordAnswer(q RecordQuestion, why *Error) string {
	return encode(answer{
		Status: "undecided", Server: q.Server, Code: why.Code, Say: why.Spoken(),
		Next: fmt.Sprintf("Nothing was given to %s. Call answer_agent again, question %s, with exactly the words that the caller said; if you are not sure of them, ask the caller.", q.Server, q.Label),
	})
}

// askAgainAnswer tells that nothing was decided, and asks again: with what is asked, which the voice model
// may never have got in this call.
func askAgainAnswer(q RecordQuestion, why *Error) string {
	return encode(answer{
		Status: "undecided", Server: q.Server, Code: why.Code, Say: why.Spoken(),
		Next:  fmt.Sprintf("Nothing was decided. Ask again now, naming %s and what would be done, and wait for a plain yes or no; then call answer_agent with question %s once more.", q.Server, q.Label),
		Asked: questionQuote(q),
	})
}

func decidedAnswer(q RecordQuestion, d Decision) string {
	switch {
	case q.Kind == QuestionCopy && d != DecisionAccept:
		return encode(answer{Status: "done", Server: q.Server, Say: "Okay, no copy is made."})
	case q.Kind == QuestionCopy:
		return encode(answer{Status: "done", Server: q.Server, Say: "Okay, I make a copy on " + q.Server + " and go on there.", Note: "The work begins in the copy. Its result comes later by itself; do not call again for it."})
	}
	say := map[Decision]string{
		DecisionAccept: "Okay, " + q.Server + " goes ahead.", DecisionDecline: "Okay, " + q.Server + " will not do that.", DecisionStop: "Okay, " + q.Server + " stops.",
		DecisionWords: "I told " + q.Server + ".",
	}[d]
	return encode(answer{Status: "done", Server: q.Server, Say: say})
}

// gaveUpMessage tells that a question was declined because nobody answered.
func gaveUpMessage(q RecordQuestion) string {
	return Message(fmt.Sprintf("Nobody answered the question of %s, so it was declined. Tell the caller once.", q.Server), Clip(q.Command+q.Text, maxRemark))
}

// questionNotice tells a person outside of a call that an agent waits.
func questionNotice(q RecordQuestion) string {
	lead := questionLead(q)
	switch {
	case onlyThere(q):
		return lead + ". It can only be answered there."
	case q.Kind == QuestionCopy:
		lead += ". " + q.Text
	default:
		lead += "."
	}
	return lead + " It waits for you on the page."
}

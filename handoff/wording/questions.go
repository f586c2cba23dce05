package wording

import (
	"cmp"
	"fmt"

	"switchboard/handoff"
)

// QuestionLead says what is asked, by which machine, and how it can be answered. It is how we ask, so a
// reply that repeats it is an echo.
func QuestionLead(q handoff.RecordQuestion) string {
	if q.Kind == handoff.QuestionCopy {
		if q.Reason == "" {
			return fmt.Sprintf("A copy of the session %s on %s was asked for", SayTitle(q.Title), q.Server)
		}
		return fmt.Sprintf("The session %s is open in another program on %s", SayTitle(q.Title), q.Server)
	}
	what := map[handoff.QuestionKind]string{
		handoff.QuestionCommand:     "asks for permission to run a command",
		handoff.QuestionFileChange:  "asks for permission to change files",
		handoff.QuestionPermissions: "asks for more permissions",
		handoff.QuestionInput:       "has a question",
		handoff.QuestionElicitation: "has a question",
	}[q.Kind]
	return q.Server + " " + cmp.Or(what, "waits for an answer")
}

// OnlyThere reports whether a question can only be answered where the agent runs.
func OnlyThere(q handoff.RecordQuestion) bool {
	return q.Kind == handoff.QuestionOther || q.Kind == handoff.QuestionInput && !q.Words
}

// QuestionMessage announces that the agent waits for the caller.
func QuestionMessage(q handoff.RecordQuestion) string {
	how := fmt.Sprintf("Tell the caller now what exactly would be done on %s and ask: yes or no? "+
		"Name %s, and %s: a yes counts only if both were heard. "+
		"Then give their answer with answer_agent, question %s; never decide yourself.",
		q.Server, q.Server, quotedAct(q), q.Label)
	switch {
	case OnlyThere(q):
		how = fmt.Sprintf("That can only be answered on the machine %s itself, neither by voice nor on the page. Tell the "+
			"caller so now.", q.Server)
	case q.Words && q.Tap != "":
		how = fmt.Sprintf("Please answer on the page: %s. Tell the caller so now, and never ask for it. If they say no, "+
			"give that with answer_agent, question %s.", q.Tap, q.Label)
	case q.Tap != "":
		how = fmt.Sprintf("Please answer on the page: %s. It is shown there, and a yes counts only there. Tell the caller "+
			"so now, and what would be done on %s. If they say no, give that with answer_agent, question %s.",
			q.Tap, q.Server, q.Label)
	case q.Kind == handoff.QuestionCopy:
		how = fmt.Sprintf("Nothing was run. Tell the caller so and ask now: shall a copy of it be made on %s, to go on "+
			"there, yes or no? Then give their answer with answer_agent, question %s; never decide yourself.", q.Server, q.Label)
	case q.Words:
		how = fmt.Sprintf("Ask the caller, then give their words with answer_agent, question %s.", q.Label)
	}
	return Message(QuestionLead(q)+". "+how, questionQuote(q))
}

// quotedAct says how the act of a question is to be named.
func quotedAct(q handoff.RecordQuestion) string {
	if q.Kind == handoff.QuestionFileChange {
		return "the files, or how many they are"
	}
	return "the command as it is quoted"
}

// questionQuote is what the agent asks for, in its words.
func questionQuote(q handoff.RecordQuestion) string {
	quote := q.Command
	if quote == "" && q.Kind != handoff.QuestionCopy { // our own words are no quotation
		quote = q.Text
	}
	for _, path := range q.Changes {
		quote += "\n" + path
	}
	return handoff.Clip(quote, maxRemark)
}

// RewordAnswer tells that the words were not the caller's.
func RewordAnswer(q handoff.RecordQuestion, why *handoff.Error) Answer {
	return Answer{
		Status: "undecided", Server: q.Server, Code: why.Code, Say: why.Spoken(),
		Next: fmt.Sprintf("Nothing was given to %s. Call answer_agent again, question %s, with exactly the words that the "+
			"caller said; if you are not sure of them, ask the caller.", q.Server, q.Label),
	}
}

// AskAgainAnswer tells that nothing was decided, and asks again: in words of ours after a reply that was neither a
// yes nor a no, else with what is asked, which the voice model may never have got in this call.
func AskAgainAnswer(q handoff.RecordQuestion, why *handoff.Error, words string) Answer {
	if words != "" {
		return Answer{
			Status: "undecided", Server: q.Server, Code: why.Code, Say: words,
			Next: fmt.Sprintf("Nothing was decided: %s. Ask once more now, in exactly the words of say, and wait; then call "+
				"answer_agent with question %s once more.", why.Subject, q.Label),
		}
	}
	return Answer{
		Status: "undecided", Server: q.Server, Code: why.Code, Say: why.Spoken(),
		Next: fmt.Sprintf("Nothing was decided. Ask again now, naming %s and what would be done, and wait for a plain yes "+
			"or no; then call answer_agent with question %s once more.", q.Server, q.Label),
		Asked: questionQuote(q),
	}
}

// LaterAnswer tells that the caller asked for time.
func LaterAnswer(q handoff.RecordQuestion) Answer {
	return Answer{
		Status: "open", Server: q.Server, Say: "It waits.",
		Note: "The caller asked for time; nothing was decided. Say nothing more of it until they answer.",
	}
}

// DecidedAnswer tells that the decision was given.
func DecidedAnswer(q handoff.RecordQuestion, d handoff.Decision) Answer {
	switch {
	case q.Kind == handoff.QuestionCopy && d != handoff.DecisionAccept:
		return Answer{Status: "done", Server: q.Server, Say: "Okay, no copy is made."}
	case q.Kind == handoff.QuestionCopy:
		return Answer{Status: "done", Server: q.Server, Say: "Okay, I make a copy on " + q.Server + " and go on there.",
			Note: "The work begins in the copy. Its result comes later by itself; do not call again for it."}
	}
	say := map[handoff.Decision]string{
		handoff.DecisionAccept:  "Okay, " + q.Server + " goes ahead.",
		handoff.DecisionDecline: "Okay, " + q.Server + " will not do that.",
		handoff.DecisionStop:    "Okay, " + q.Server + " stops.",
		handoff.DecisionWords:   "I told " + q.Server + ".",
	}[d]
	return Answer{Status: "done", Server: q.Server, Say: say}
}

// GaveUpMessage tells that a question was declined because nobody answered.
func GaveUpMessage(q handoff.RecordQuestion) string {
	return Message(fmt.Sprintf("Nobody answered the question of %s, so it was declined. Tell the caller once.", q.Server),
		handoff.Clip(q.Command+q.Text, maxRemark))
}

// QuestionNotice tells a person outside of a call that an agent waits.
func QuestionNotice(q handoff.RecordQuestion) string {
	lead := QuestionLead(q)
	switch {
	case OnlyThere(q):
		return lead + ". It can only be answered there."
	case q.Kind == handoff.QuestionCopy:
		lead += ". " + q.Text
	default:
		lead += "."
	}
	return lead + " It waits for you on the page."
}

package wording

import (
	"fmt"
	"regexp"

	"switchboard/handoff"
)

// QuestionLead says what is asked, and by which machine. A reply that repeats it is an echo.
func (l Language) QuestionLead(q handoff.RecordQuestion) string {
	switch q.Kind {
	case handoff.QuestionCopy:
		if q.Reason == "" {
			return l.say("ask.copy_wanted", "title", l.SayTitle(q.Title), "server", q.Server)
		}
		if q.Program != "" {
			return l.say("ask.copy_open_in", "title", l.SayTitle(q.Title), "program", q.Program, "server", q.Server)
		}
		return l.say("ask.copy_open", "title", l.SayTitle(q.Title), "server", q.Server)
	case handoff.QuestionCommand:
		return l.say("ask.command", "server", q.Server)
	case handoff.QuestionFileChange:
		return l.say("ask.files", "server", q.Server)
	case handoff.QuestionPermissions:
		return l.say("ask.more", "server", q.Server)
	case handoff.QuestionInput, handoff.QuestionElicitation:
		return l.say("ask.question", "server", q.Server)
	}
	return l.say("ask.anything", "server", q.Server)
}

// OnlyThere reports whether a question can only be answered where the agent runs. A no may count from here.
func OnlyThere(q handoff.RecordQuestion) bool {
	return q.There != "" || q.Kind == handoff.QuestionOther || q.Kind == handoff.QuestionInput && !q.Words
}

// QuestionMessage returns a message that has the voice model ask the caller an agent's question.
func (l Language) QuestionMessage(q handoff.RecordQuestion) string {
	how := fmt.Sprintf("Tell the caller now what exactly would be done on %s and ask: %s "+
		"Name %s, and %s: a yes counts only if both were heard, "+
		"and no other name. "+
		"Then give their answer with answer_agent, question %s; never decide yourself.",
		q.Server, l.say("ask.yes_or_no"), q.Server, quotedAct(q), q.Label)
	switch {
	case OnlyThere(q):
		how = l.say("ask.there", "server", q.Server) + " Tell the caller so now."
		if q.There != "" {
			how += fmt.Sprintf(" The reason: %s. If they say no, give that with answer_agent, question %s.", q.There, q.Label)
		}
	case q.Words && q.Tap != "":
		how = l.tap(q) + fmt.Sprintf(" Tell the caller so now, and never ask for it. If they say no, "+
			"give that with answer_agent, question %s.", q.Label)
	case q.Tap != "":
		how = l.tap(q) + fmt.Sprintf(" It is shown there, and a yes counts only there. Tell the caller "+
			"so now, and what would be done on %s. If they say no, give that with answer_agent, question %s.",
			q.Server, q.Label)
	case q.Kind == handoff.QuestionCopy:
		how = fmt.Sprintf("Nothing was run. Tell the caller so and ask now: %s Then give their answer with answer_agent, "+
			"question %s; never decide yourself.", l.say("ask.copy", "server", q.Server), q.Label)
	case q.Words:
		how = fmt.Sprintf("Ask the caller, then give their words with answer_agent, question %s.", q.Label)
	}
	return Message(l.QuestionLead(q)+" "+how, questionQuote(q))
}

// tap says why a question can only be answered on the page.
func (l Language) tap(q handoff.RecordQuestion) string { return l.say("ask.tap", "why", l.Why(q.Tap)) }

// askedHow matches the words in a [Language.QuestionMessage] that ask the caller for a yes or a no.
var askedHow = regexp.MustCompile(`and ask(?: now)?: ([^?？؟]+[?？؟])`)

// AskedHow returns the words in a message that ask the caller for a yes or a no; "": there are none.
func AskedHow(message string) string {
	lead, _ := SplitMessage(message)
	if m := askedHow.FindStringSubmatch(lead); m != nil {
		return capital(m[1])
	}
	return ""
}

// quotedAct says how the act of a question is to be named.
func quotedAct(q handoff.RecordQuestion) string {
	if q.Kind == handoff.QuestionFileChange {
		return "each file by its name"
	}
	return "every word of the command as it is quoted"
}

// questionQuote returns what the agent asks for, in its own words.
func questionQuote(q handoff.RecordQuestion) string {
	quote := q.Command
	if quote == "" && q.Kind != handoff.QuestionCopy { // the text of that is our own
		quote = q.Text
	}
	for _, path := range q.Changes {
		quote += "\n" + path
	}
	return handoff.Clip(quote, maxRemark)
}

// RewordAnswer says that the words were not the caller's.
func (l Language) RewordAnswer(q handoff.RecordQuestion, why *handoff.Error) Answer {
	return Answer{
		Status: "undecided", Server: q.Server, Code: why.Code, Say: l.Fault(why),
		Next: fmt.Sprintf("Nothing was given to %s. Call answer_agent again, question %s, with exactly the words that the "+
			"caller said; if you are not sure of them, ask the caller.", q.Server, q.Label),
	}
}

// AskAgainAnswer says that nothing was decided, and has the question asked again: with words, if there are any, or else
// in full, since the voice model may not have got the question in this call.
func (l Language) AskAgainAnswer(q handoff.RecordQuestion, why *handoff.Error, words string) Answer {
	if words != "" {
		return Answer{
			Status: "undecided", Server: q.Server, Code: why.Code, Say: words,
			Next: fmt.Sprintf("Nothing was decided: %s. Ask once more now, in exactly the words of say, and wait; then call "+
				"answer_agent with question %s once more.", why.Subject, q.Label),
		}
	}
	return Answer{
		Status: "undecided", Server: q.Server, Code: why.Code, Say: l.Fault(why),
		Next: fmt.Sprintf("Nothing was decided. Ask again now, naming %s and all that would be done, as asked has it, "+
			"and wait for a plain yes or no; then call answer_agent with question %s once more.", q.Server, q.Label),
		Asked: questionQuote(q),
	}
}

// LaterAnswer says that the caller asked for time.
func (l Language) LaterAnswer(q handoff.RecordQuestion) Answer {
	return Answer{
		Status: "open", Server: q.Server, Say: l.say("decided.later"),
		Note: "The caller asked for time; nothing was decided. Say nothing more of it until they answer.",
	}
}

// DecidedAnswer says that the decision was given.
func (l Language) DecidedAnswer(q handoff.RecordQuestion, d handoff.Decision) Answer {
	a := Answer{Status: "done", Server: q.Server}
	switch {
	case q.Kind == handoff.QuestionCopy && d != handoff.DecisionAccept:
		a.Say = l.say("decided.no_copy")
	case q.Kind == handoff.QuestionCopy:
		a.Say = l.say("decided.copy", "server", q.Server)
		a.Note = "The work begins in the copy. Its result comes later by itself; do not call again for it."
	case d == handoff.DecisionAccept:
		a.Say = l.say("decided.accept", "server", q.Server)
	case d == handoff.DecisionDecline:
		a.Say = l.say("decided.decline", "server", q.Server)
	case d == handoff.DecisionStop:
		a.Say = l.say("decided.stop", "server", q.Server)
	case d == handoff.DecisionWords:
		a.Say = l.say("decided.words", "server", q.Server)
	}
	return a
}

// GaveUpMessage tells that a question was declined because nobody answered.
func (l Language) GaveUpMessage(q handoff.RecordQuestion) string {
	return Message(l.say("decided.nobody", "server", q.Server)+" Tell the caller once.",
		handoff.Clip(q.Command+q.Text, maxRemark))
}

// QuestionNotice returns the notice that an agent asks a question.
func QuestionNotice(q handoff.RecordQuestion) string {
	lead := English.QuestionLead(q)
	switch {
	case OnlyThere(q):
		return lead + " It can only be answered there."
	case q.Kind == handoff.QuestionCopy:
		lead += " " + q.Text
	}
	return lead + " It waits for you on the page."
}

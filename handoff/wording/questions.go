package wording

import (
	"fmt"
	"slices"
	"strings"

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
func (l Language) QuestionMessage(q handoff.RecordQuestion) Answer {
	a := Answer{Server: q.Server, Question: q.Label, Say: l.QuestionLead(q), Ask: l.say("ask.yes_or_no"),
		Asked: questionQuote(q)}
	give := fmt.Sprintf("give that with answer_agent, question %s.", q.Label)
	switch {
	case OnlyThere(q):
		a.Ask, a.Note = l.say("ask.there", "server", q.Server), "Tell the caller so now."
		if a.Question = ""; q.There != "" {
			a.Question = q.Label
			a.Note += fmt.Sprintf(" The reason: %s. If they say no, %s", q.There, give)
		}
	case q.Words && q.Tap != "":
		a.Ask, a.Note = l.tap(q), "Tell the caller so now, and never ask for it. If they say no, "+give
	case q.Tap != "":
		a.Ask = l.tap(q)
		a.Note = fmt.Sprintf("It is shown there, and a yes counts only there. Tell the caller so now, and what would be done "+
			"on %s. If they say no, %s", q.Server, give)
	case q.Kind == handoff.QuestionCopy:
		a.Ask = l.say("ask.copy", "server", q.Server)
		a.Note = fmt.Sprintf("Nothing was run. Tell the caller so and ask now, as ask has it. Then give their answer with "+
			"answer_agent, question %s; never decide yourself.", q.Label)
	case q.Words:
		a.Ask, a.Note = "", fmt.Sprintf("Ask the caller, then give their words with answer_agent, question %s.%s", q.Label, nameAct(q))
		if n := len(q.Asks); n > 1 {
			a.Note += fmt.Sprintf(" It asks %d things: ask them one by one, and give each answer before you ask the next.", n)
		}
		a.Note += fieldNote(q)
	default:
		a.Note = fmt.Sprintf("Tell the caller now what exactly would be done on %s and ask, as ask has it. Name %s, and %s: a "+
			"yes counts only if both were heard, and no other name. Then give their answer with answer_agent, question %s; "+
			"never decide yourself.", q.Server, q.Server, quotedAct(q), q.Label)
	}
	a.Ask = capital(a.Ask)
	return a
}

// nameAct says what has to be named where an answer in words allows an act.
func nameAct(q handoff.RecordQuestion) string {
	if !q.Picks() {
		return ""
	}
	return fmt.Sprintf(" Name %s, %s, and each answer that it offers: an answer counts only if these were heard.", q.Server,
		quotedAct(q))
}

// tap says why a question can only be answered on the page.
func (l Language) tap(q handoff.RecordQuestion) string { return l.say("ask.tap", "why", l.Why(q.Tap)) }

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
	if len(q.Asks) > 0 {
		switch ask := fieldQuote(q.Asks, 0); {
		case len(q.Asks) > 1 && strings.Contains(q.Text, q.Asks[0].Text):
			quote = ask
		case !strings.Contains(quote, ask):
			quote = strings.TrimSpace(strings.TrimSuffix(quote, q.Asks[0].Text) + "\n" + ask)
		}
	}
	for _, path := range q.Changes {
		quote += "\n" + path
	}
	return handoff.Clip(quote, maxRemark)
}

// FieldAnswer has another field of a question asked, or, with the reason why an answer does not fit, the same again.
func (l Language) FieldAnswer(q handoff.RecordQuestion, field int, unfit *handoff.Error) Answer {
	a := Answer{Status: "next", Server: q.Server, Question: q.Label, Asked: handoff.Clip(fieldQuote(q.Asks, field), maxRemark)}
	a.Next = fmt.Sprintf("%s has nothing yet. Ask the caller this now, and wait; then give their words with answer_agent, "+
		"question %s.", q.Server, q.Label)
	if field < len(q.Asks) {
		a.Next += askNote(q.Asks[field])
	}
	if unfit != nil {
		a.Status, a.Code, a.Say = "undecided", unfit.Code, l.Fault(unfit)
	}
	return a
}

// fieldQuote returns what a field asks for, with the answers that it offers.
func fieldQuote(asks []handoff.Ask, field int) string {
	if field >= len(asks) {
		return ""
	}
	quote := asks[field].Text
	for _, o := range asks[field].Options {
		if !strings.Contains(quote, o) {
			return quote + " (" + strings.Join(asks[field].Options, ", ") + ")"
		}
	}
	return quote
}

// fieldNote says how the first field of a question may be answered.
func fieldNote(q handoff.RecordQuestion) string {
	if len(q.Asks) == 0 {
		return ""
	}
	return askNote(q.Asks[0])
}

func askNote(a handoff.Ask) (note string) {
	switch {
	case slices.Equal(a.Options, []string{"yes", "no"}):
		note = " It takes a yes or a no, as text."
	case a.Only && a.Many:
		note = " Only the answers that it offers count; the caller may choose several."
	case a.Only:
		note = " Only the answers that it offers count, by their names."
	case a.Many:
		note = " They may choose several."
	}
	if a.Optional {
		note += " They may skip it: then the text is skip, if they said so."
	}
	return note
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
	if q.Words {
		return Answer{
			Status: "undecided", Server: q.Server, Code: why.Code, Say: l.Fault(why), Asked: questionQuote(q),
			Next: fmt.Sprintf("Nothing was given to %s. Ask again now, and wait; then call answer_agent with question %s once "+
				"more.%s", q.Server, q.Label, nameAct(q)),
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
func (l Language) GaveUpMessage(q handoff.RecordQuestion) Answer {
	return Answer{Status: "declined", Server: q.Server, Say: l.say("decided.nobody", "server", q.Server),
		Note: "Tell the caller once.", Asked: handoff.Clip(q.Command+q.Text, maxRemark)}
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

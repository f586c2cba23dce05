package handoff

import "fmt"

// questionLead says what is asked, by which machine, and how it can be answered. It is how we ask, so a
// reply that repeats it is an echo.
func questionLead(q askedQ) string {
	what := map[QuestionKind]string{
		QuestionCommand:     "asks for permission to run a command",
		QuestionFileChange:  "asks for permission to change files",
		QuestionPermissions: "asks for more permissions",
		QuestionInput:       "has a question",
		QuestionElicitation: "has a question",
	}[q.shown.Kind]
	if what == "" {
		what = "waits for an answer"
	}
	return q.shown.Server + " " + what
}

// byVoice tells whether a question can be answered in the call.
func (q askedQ) byVoice() bool {
	if q.shown.Kind == QuestionInput {
		return q.replies
	}
	return VoiceMay(q.level, RiskOf(q.question, q.workspace))
}

// questionMessage announces that the agent waits for the caller.
func questionMessage(q askedQ) string {
	how := fmt.Sprintf("Tell the caller now what exactly would be done on %s and ask: yes or no? Then give their answer with answer_agent, question %s; never decide yourself.", q.shown.Server, q.shown.Label)
	switch {
	case !q.byVoice():
		how = "Please answer on the page: it is shown there and can be answered nowhere else. Tell the caller so now."
	case q.shown.Kind == QuestionInput:
		how = fmt.Sprintf("Ask the caller, then give their words with answer_agent, question %s.", q.shown.Label)
	}
	quote := q.shown.Command
	if quote == "" {
		quote = q.shown.Text
	}
	for _, path := range q.shown.Changes {
		quote += "\n" + path
	}
	return Message(questionLead(q)+". "+how, clip(quote, maxRemark))
}

// askAgainAnswer tells that nothing was decided, and asks again.
func askAgainAnswer(q RecordQuestion, why *Error) string {
	return encode(answer{
		Status: "undecided", Server: q.Server, Code: why.Code, Say: why.Spoken(),
		Next: fmt.Sprintf("Nothing was decided. Ask again now, naming %s and what would be done, and wait for a plain yes or no; then call answer_agent with question %s once more.", q.Server, q.Label),
	})
}

func decidedAnswer(q RecordQuestion, d Decision) string {
	say := map[Decision]string{
		DecisionAccept: "Okay, " + q.Server + " goes ahead.", DecisionDecline: "Okay, " + q.Server + " will not do that.", DecisionStop: "Okay, " + q.Server + " stops.",
	}[d]
	return encode(answer{Status: "done", Server: q.Server, Say: say})
}

// gaveUpMessage tells that a question was declined because nobody answered.
func gaveUpMessage(q RecordQuestion) string {
	return Message(fmt.Sprintf("Nobody answered the question of %s, so it was declined. Tell the caller once.", q.Server), clip(q.Command+q.Text, maxRemark))
}

// questionNotice tells a person outside of a call that an agent waits.
func questionNotice(q askedQ) string {
	return questionLead(q) + ". It waits for you on the page."
}

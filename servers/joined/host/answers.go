package host

import (
	"bytes"
	"encoding/json"
	"slices"

	"switchboard/servers"
)

// Questions of an app-server that may be allowed.
const (
	askCommand     = "item/commandExecution/requestApproval"
	askFiles       = "item/fileChange/requestApproval"
	askPermissions = "item/permissions/requestApproval"
	askInput       = "item/tool/requestUserInput"
	askForm        = "mcpServer/elicitation/request"

	// These stand for questions whose params say that an answer may hold until the session ends, or longer.
	askBelow  = askFiles + " below a directory"
	askChoice = askInput + " of a choice" // without words of one's own: the approval of a tool
)

// noteResolved tells that a question is answered or withdrawn.
const noteResolved = "serverRequest/resolved"

type passingAnswer struct {
	question, answer string
	allows           servers.Answers
}

// passing are the answers to questions of an app-server that may pass, each with what it allows. In the place of "*"
// anything may stand. The first row that fits counts; no answer passes that holds beyond the session. Set once.
var passing = []passingAnswer{
	{askCommand, `{"decision":"decline"}`, servers.AnswersNo},
	{askCommand, `{"decision":"cancel"}`, servers.AnswersNo},
	{askCommand, `{"decision":"accept"}`, servers.AnswersOnce},
	{askCommand, `{"decision":"acceptForSession"}`, servers.AnswersAll},
	{askFiles, `{"decision":"decline"}`, servers.AnswersNo},
	{askFiles, `{"decision":"cancel"}`, servers.AnswersNo},
	{askFiles, `{"decision":"accept"}`, servers.AnswersOnce},
	{askFiles, `{"decision":"acceptForSession"}`, servers.AnswersAll},
	{askBelow, `{"decision":"decline"}`, servers.AnswersNo},
	{askBelow, `{"decision":"cancel"}`, servers.AnswersNo},
	{askBelow, `{"decision":"*"}`, servers.AnswersAll},
	{askPermissions, `{"permissions":{},"scope":"turn"}`, servers.AnswersNo},
	{askPermissions, `{"permissions":"*","scope":"*"}`, servers.AnswersAll},
	{askInput, `{"answers":{}}`, servers.AnswersNo},
	{askInput, `{"answers":"*"}`, servers.AnswersOnce},
	{askChoice, `{"answers":{}}`, servers.AnswersNo},
	{askChoice, `{"answers":"*"}`, servers.AnswersAll},
	{askForm, `{"action":"decline","content":null}`, servers.AnswersNo},
	{askForm, `{"action":"cancel","content":null}`, servers.AnswersNo},
	{askForm, `{"action":"accept","content":{}}`, servers.AnswersOnce},
	{askForm, `{"action":"accept","content":"*"}`, servers.AnswersAll},
}

// questionOf returns the question of a request of the app-server, as in passing; "": it is another request.
func questionOf(method string, params json.RawMessage) string {
	var p struct {
		GrantRoot *string
		Questions []struct{ IsOther bool }
	}
	_ = json.Unmarshal(params, &p) // without params it asks for nothing
	choice := slices.ContainsFunc(p.Questions, func(q struct{ IsOther bool }) bool { return !q.IsOther })
	switch {
	case method == askFiles && p.GrantRoot != nil:
		return askBelow
	case method == askInput && choice:
		return askChoice
	case slices.ContainsFunc(passing, func(row passingAnswer) bool { return row.question == method }):
		return method
	}
	return ""
}

// mayAsk reports whether a message of the app-server may be a question, or the notice that one is answered, by its
// first bytes. A question that it overlooks can only be declined.
func mayAsk(head []byte) bool {
	return bytes.Contains(head, []byte(noteResolved)) || slices.ContainsFunc(passing, func(row passingAnswer) bool {
		return bytes.Contains(head, []byte(row.question))
	})
}

// askedLocked learns from a request or notification of the app-server which questions are open, and returns what the
// service gets of it.
func (g *gate) askedLocked(id, method string, params json.RawMessage, data []byte) []byte {
	if method == noteResolved {
		var p struct{ RequestID json.RawMessage }
		_ = json.Unmarshal(params, &p) // without params it names no question
		delete(g.asked, string(p.RequestID))
	} else if question := questionOf(method, params); question != "" {
		delete(g.asked, id)
		_ = g.asked.add(id, question) // beyond maxWatched a question can only be declined
		return g.policy.marked(data, "_switchboard")
	}
	return data
}

// mayAnswer reports whether an answer to a question may pass. Where a yes may hold only once, one for the session
// becomes that.
func (p Policy) mayAnswer(question string, answer object) bool {
	most := p.answers()
	if most == servers.AnswersOnce && len(answer) == 1 && answer.text("decision") == "acceptForSession" {
		answer.set("decision", "accept")
	}
	for _, row := range passing {
		if row.question == question && answer.fits(row.answer) {
			return row.allows >= most
		}
	}
	return false
}

// fits reports whether an object has the fields of a pattern and their values, or any value in the place of "*".
func (o object) fits(pattern string) bool {
	var want object
	_ = json.Unmarshal([]byte(pattern), &want) // patterns are constants
	for name, value := range want {
		if is, given := o[name]; !given || string(value) != `"*"` && string(value) != string(is) {
			return false
		}
	}
	return len(o) == len(want)
}

// answers returns the loosest answers that may come through the line.
func (p Policy) answers() servers.Answers { return p.owner().Answers() }

func (p Policy) owner() servers.Owner {
	return servers.Owner{Ceiling: p.Ceiling, NoAnswers: !p.Answers}
}

// marked returns a question with what the owner allows, in a field of its params, so that the service offers no answer
// that would not pass.
func (p Policy) marked(question []byte, in ...string) []byte {
	var message object
	if p.answers() == servers.AnswersAll || json.Unmarshal(question, &message) != nil {
		return question
	}
	message.setIn(append([]string{"params"}, in...), p.owner())
	marked, _ := json.Marshal(message) // what was decoded can be encoded
	return marked
}

package host

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"switchboard/servers"
)

// Questions of agents that may be allowed.
const (
	askCommand     = "item/commandExecution/requestApproval"
	askFiles       = "item/fileChange/requestApproval"
	askPermissions = "item/permissions/requestApproval"
	askInput       = "item/tool/requestUserInput"
	askForm        = "mcpServer/elicitation/request"
	askOption      = "session/request_permission" // its options are answers too, see optionsOf
	askElicit      = "elicitation/create"

	// These stand for questions whose params say that an answer may hold until the session ends, or longer.
	askBelow  = askFiles + " below a directory"
	askChoice = askInput + " of a choice" // without words of one's own: the approval of a tool
)

// An answer is one that may pass, with what it allows. Where a field is "*", anything may stand.
type answer struct {
	is     string
	allows servers.Answers
	once   string // the answer that it becomes where a yes may hold only once; "": none
}

// decisions are the answers to questions about a command or an edit. Set once.
var decisions = []answer{
	{is: `{"decision":"decline"}`, allows: servers.AnswersNo},
	{is: `{"decision":"cancel"}`, allows: servers.AnswersNo},
	{is: `{"decision":"accept"}`, allows: servers.AnswersOnce},
	{is: `{"decision":"acceptForSession"}`, allows: servers.AnswersAll, once: `{"decision":"accept"}`},
}

// passing are the answers to questions of agents that may pass. None holds beyond the session. The first one that fits
// counts; the first of each question that allows nothing is what the agent gets in place of one that may not pass. Set
// once.
var passing = map[string][]answer{
	askCommand: decisions,
	askFiles:   decisions,
	askBelow: {
		{is: `{"decision":"decline"}`, allows: servers.AnswersNo},
		{is: `{"decision":"cancel"}`, allows: servers.AnswersNo},
		{is: `{"decision":"*"}`, allows: servers.AnswersAll},
	},
	askPermissions: {
		{is: `{"permissions":{},"scope":"turn"}`, allows: servers.AnswersNo},
		{is: `{"permissions":"*","scope":"*"}`, allows: servers.AnswersAll},
	},
	askInput: {
		{is: `{"answers":{}}`, allows: servers.AnswersNo},
		{is: `{"answers":"*"}`, allows: servers.AnswersOnce},
	},
	askChoice: {
		{is: `{"answers":{}}`, allows: servers.AnswersNo},
		{is: `{"answers":"*"}`, allows: servers.AnswersAll},
	},
	askForm: {
		{is: `{"action":"decline","content":null}`, allows: servers.AnswersNo},
		{is: `{"action":"cancel","content":null}`, allows: servers.AnswersNo},
		{is: `{"action":"accept","content":{}}`, allows: servers.AnswersOnce},
		{is: `{"action":"accept","content":"*"}`, allows: servers.AnswersAll},
	},
	askOption: {{is: `{"outcome":{"outcome":"cancelled"}}`, allows: servers.AnswersNo}},
	askElicit: {
		{is: `{"action":"cancel"}`, allows: servers.AnswersNo},
		{is: `{"action":"decline"}`, allows: servers.AnswersNo},
		{is: `{"action":"accept"}`, allows: servers.AnswersOnce},
		{is: `{"action":"accept","content":"*"}`, allows: servers.AnswersOnce},
	},
}

// An asking is what a gate reads of the params of an agent's question.
type asking struct {
	GrantRoot *string
	Questions []struct{ IsOther bool }
	Options   []struct {
		ID   string `json:"optionId"`
		Kind string `json:"kind"` // allow_once, allow_always, reject_once, reject_always
	}
}

// A question is what a gate remembers of one: the answers that may pass. nil: it is a request that none may answer.
type question []answer

// questionOf returns what may answer a request of the agent.
func questionOf(method string, p asking) question {
	choice := slices.ContainsFunc(p.Questions, func(q struct{ IsOther bool }) bool { return !q.IsOther })
	switch {
	case method == askFiles && p.GrantRoot != nil:
		method = askBelow
	case method == askInput && choice:
		method = askChoice
	}
	may := slices.Clone(passing[method])
	if method != askOption {
		return may
	}
	once := ""
	for _, o := range p.Options { // a yes for good may also loosen the session's mode
		a := answer{is: picked(o.ID)}
		switch {
		case o.Kind == "allow_once":
			a.allows, once = servers.AnswersOnce, cmp.Or(once, a.is)
		case o.Kind == "allow_always":
			a.allows = servers.AnswersAll
		case strings.HasPrefix(o.Kind, "reject_"):
			a.allows = servers.AnswersNo
		default:
			continue
		}
		may = append(may, a)
	}
	for i := range may {
		if may[i].allows == servers.AnswersAll {
			may[i].once = once
		}
	}
	return may
}

// picked returns the answer that chooses an option.
func picked(id string) string {
	text, _ := json.Marshal(map[string]any{"outcome": map[string]string{"outcome": "selected", "optionId": id}})
	return string(text)
}

var errAnswer = errors.New("the owner of this machine lets no such answer through")

// answers judges an answer to a question of the agent, and returns what the agent gets. Each question is answered once.
// Where a yes may hold only once, one for good becomes that. An answer that may not pass becomes a no.
func (g *gate) answers(id json.RawMessage, all object) ([]byte, error) {
	g.mu.Lock()
	asked, waits := g.asked.take(string(id))
	g.mu.Unlock()
	if !waits {
		return nil, errQuestion
	}
	raw, given := all["result"]
	if !given { // an error allows nothing
		passes, _ := json.Marshal(all) // what was decoded can be encoded
		return passes, nil
	}
	var is map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()     // numbers are put back as they were
	_ = decoder.Decode(&is) // what is no object fits no answer
	i, most := slices.IndexFunc(asked, func(a answer) bool { return a.fits(is) }), g.policy.answers()
	switch {
	case i >= 0 && asked[i].allows >= most:
		all.set("result", is)
	case i >= 0 && asked[i].once != "" && most == servers.AnswersOnce:
		all["result"] = json.RawMessage(asked[i].once)
	default:
		return asked.no(id), nil
	}
	passes, _ := json.Marshal(all) // what was decoded can be encoded
	return passes, nil
}

// no returns a no to the question.
func (q question) no(id json.RawMessage) []byte {
	i := slices.IndexFunc(q, func(a answer) bool { return a.allows == servers.AnswersNo })
	if i < 0 {
		return refusal(id, errAnswer)
	}
	return result(id, json.RawMessage(q[i].is))
}

// fits reports whether the result of an answer has exactly the fields of this one.
func (a answer) fits(result map[string]any) bool {
	var want map[string]any
	_ = json.Unmarshal([]byte(a.is), &want) // it is ours
	for name, value := range want {
		if is, given := result[name]; !given || value != "*" && !reflect.DeepEqual(value, is) {
			return false
		}
	}
	return len(result) == len(want)
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

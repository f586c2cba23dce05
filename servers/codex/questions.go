package codex

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/jsonrpc"
	"switchboard/servers/turns"
)

// Requests of the server that ask a person.
const (
	askCommand     = "item/commandExecution/requestApproval"
	askFileChange  = "item/fileChange/requestApproval"
	askPermissions = "item/permissions/requestApproval"
	askInput       = "item/tool/requestUserInput"
	askElicitation = "mcpServer/elicitation/request"

	askTooLong = "too long" // stands for a method whose params are too long to be kept
)

// kindHuman is the kind of a command that a person is to decide, each time anew.
const kindHuman = "humanCommand"

// wireQuestion is a request of the server that asks a person.
type wireQuestion struct {
	id     json.RawMessage // sent back as it came
	method string
	asked  askParams
}

// openQuestion is one that nobody has answered.
type openQuestion = turns.Open[wireQuestion]

// askParams is the params of every request that asks a person.
type askParams struct {
	ThreadID           string            `json:"threadId"`
	TurnID             string            `json:"turnId"`
	ItemID             string            `json:"itemId"`
	Command            string            `json:"command"` // command
	Kind               string            `json:"kind"`    // command: "command" or another act at it
	Network            json.RawMessage   `json:"networkApprovalContext"`
	Additional         json.RawMessage   `json:"additionalPermissions"` // command
	Cwd                string            `json:"cwd"`                   // command, permissions
	Reason             *string           `json:"reason"`                // command, fileChange, permissions
	AvailableDecisions []json.RawMessage `json:"availableDecisions"`    // command: words, or objects for amendments
	GrantRoot          *string           `json:"grantRoot"`             // fileChange
	Permissions        json.RawMessage   `json:"permissions"`           // permissions; granted as it came
	Questions          []inputQuestion   `json:"questions"`             // input
	ServerName         string            `json:"serverName"`            // elicitation
	Mode               string            `json:"mode"`                  // elicitation: form or url
	Message            string            `json:"message"`               // elicitation
	RequestedSchema    struct {
		Properties map[string]json.RawMessage `json:"properties"`
	} `json:"requestedSchema"` // elicitation
	Meta struct {
		Tool   string          `json:"tool_name"`
		Params json.RawMessage `json:"tool_params"`
	} `json:"_meta"` // elicitation: the call of a tool that is asked for
}

// describe puts a request into words. It returns false for methods that ask nobody.
func (p *askParams) describe(method string) (handoff.Question, bool) {
	q := handoff.Question{Turn: handoff.TurnID(p.TurnID), Cwd: p.Cwd}
	if p.Reason != nil {
		q.Reason = *p.Reason
	}
	all := []handoff.Decision{
		handoff.DecisionAccept, handoff.DecisionAcceptForSession, handoff.DecisionDecline, handoff.DecisionStop,
	}
	once := []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline, handoff.DecisionStop}
	refuseOnly := all[2:]
	switch method {
	case askCommand:
		q.Kind, q.Text, q.Command = handoff.QuestionCommand, "May this command run?", p.Command
		q.Decisions, q.Beyond = all, p.beyond()
		if p.Kind == kindHuman {
			q.Text, q.Decisions, q.Person = "Codex wants a person to decide this: may this command run, this once?", once, true
		}
		if !p.available("accept") {
			q.Decisions = refuseOnly
		}
	case askFileChange:
		q.Kind, q.Text, q.Decisions = handoff.QuestionFileChange, "May these files be changed?", all
		if p.GrantRoot != nil {
			q.Text = "May files below " + *p.GrantRoot + " be changed?"
			q.Beyond = "changes below " + *p.GrantRoot + " until the session ends"
		}
	case askPermissions:
		q.Kind, q.Text, q.Decisions = handoff.QuestionPermissions, permissionsText(p.Permissions), all
	case askInput:
		q.Kind, q.Text, q.Decisions = handoff.QuestionInput, p.inputText(), refuseOnly
		q.Words, q.Asks = len(p.Questions) > 0, p.asks()
	case askElicitation:
		q.Kind, q.Text, q.Decisions = handoff.QuestionElicitation, p.Message, refuseOnly
		if p.Meta.Tool != "" { // shown, and part of what a yes is bound to
			q.Command = strings.TrimSpace(p.ServerName + " " + p.Meta.Tool + " " +
				handoff.ClipRunes(string(p.Meta.Params), maxDetail))
		}
		if p.Mode == "form" && len(p.RequestedSchema.Properties) == 0 { // a plain yes or no
			q.Decisions = once
		}
	case askTooLong:
		q.Kind, q.Text = handoff.QuestionOther, "The agent asks for something that is too long to be shown here; answer "+
			"it on its machine."
	default:
		if !asksSomebody.MatchString(method) {
			return handoff.Question{}, false
		}
		q.Kind = handoff.QuestionOther
		q.Text = "The agent asks for something that only its own program can answer (" +
			handoff.ClipRunes(method, maxDetail) + ")."
	}
	return q, true
}

// asksSomebody is how requests to a person are called, also those of versions that are not known here.
// What asks for something of the program itself (a tool's call, a login) is not shown.
var asksSomebody = regexp.MustCompile(`(?i)request(approval|userinput|permission)|elicitation`)

// beyond says what a yes to a command would allow beside the command.
func (p *askParams) beyond() string {
	var what []string
	if p.Kind != "" && p.Kind != "command" && p.Kind != kindHuman {
		what = append(what, "an act of the kind "+handoff.ClipRunes(p.Kind, maxDetail))
	}
	if isSet(p.Network) {
		what = append(what, "the network: "+handoff.ClipRunes(string(p.Network), maxDetail))
	}
	if isSet(p.Additional) {
		what = append(what, "more rights: "+handoff.ClipRunes(string(p.Additional), maxDetail))
	}
	return strings.Join(what, "; ")
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// available reports whether the server offers a decision. Without a list it takes any.
func (p *askParams) available(word string) bool {
	return len(p.AvailableDecisions) == 0 || slices.ContainsFunc(p.AvailableDecisions, func(raw json.RawMessage) bool {
		var d string
		return json.Unmarshal(raw, &d) == nil && d == word
	})
}

// inputText joins the questions of item/tool/requestUserInput and their options.
func (p *askParams) inputText() string {
	var lines []string
	for _, q := range p.Questions {
		line := q.Question
		var labels []string
		for _, o := range q.Options {
			labels = append(labels, o.Label)
		}
		if len(labels) > 0 {
			line += " (" + strings.Join(labels, ", ") + ")"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// permissionsText names what is asked for.
func permissionsText(raw json.RawMessage) string {
	var p struct {
		Network    *struct{ Enabled *bool }
		FileSystem json.RawMessage
	}
	var what []string
	if json.Unmarshal(raw, &p) == nil {
		if p.Network != nil && p.Network.Enabled != nil && *p.Network.Enabled {
			what = append(what, "use the network")
		}
		if isSet(p.FileSystem) {
			what = append(what, "reach these files: "+handoff.ClipRunes(string(p.FileSystem), maxDetail))
		}
	}
	if len(what) == 0 {
		return "May the work have more rights?"
	}
	return "May the work " + strings.Join(what, " and ") + "?"
}

// wireDecision is the result of command and file approvals.
type wireDecision struct {
	Decision string `json:"decision"`
}

// wirePermissions is the result of item/permissions/requestApproval. No permissions is no.
type wirePermissions struct {
	Permissions json.RawMessage `json:"permissions"`
	Scope       string          `json:"scope"` // turn or session
}

// wireAnswers is the result of item/tool/requestUserInput. No answers is no.
type wireAnswers struct {
	Answers map[string]inputAnswer `json:"answers"` // by the question's id
}

type inputAnswer struct {
	Answers []string `json:"answers"`
}

// wireElicitation is the result of mcpServer/elicitation/request.
type wireElicitation struct {
	Action  string         `json:"action"` // accept, decline, cancel
	Content map[string]any `json:"content"`
}

// decisionWords is what approvals of commands and files call the decisions.
var decisionWords = map[handoff.Decision]string{
	handoff.DecisionAccept:           "accept",
	handoff.DecisionAcceptForSession: "acceptForSession",
	handoff.DecisionDecline:          "decline",
	handoff.DecisionStop:             "cancel",
}

// reply maps a decision to the wire. interrupt says that the kind knows no way to end the turn, so that
// stopping takes an interrupt after it.
func (q *wireQuestion) reply(d handoff.Decision) (result any, interrupt bool) {
	stop := d == handoff.DecisionStop
	switch q.method {
	case askPermissions:
		granted, scope := json.RawMessage("{}"), "turn"
		if d == handoff.DecisionAccept || d == handoff.DecisionAcceptForSession {
			granted = q.asked.Permissions
		}
		if d == handoff.DecisionAcceptForSession {
			scope = "session"
		}
		return wirePermissions{granted, scope}, stop
	case askInput:
		return wireAnswers{map[string]inputAnswer{}}, stop
	case askElicitation:
		switch d {
		case handoff.DecisionAccept:
			return wireElicitation{Action: "accept", Content: map[string]any{}}, false
		case handoff.DecisionStop:
			return wireElicitation{Action: "cancel"}, true
		}
		return wireElicitation{Action: "decline"}, false
	}
	return wireDecision{decisionWords[d]}, false
}

// ask takes a request of the server. Only requests of turns that we started are announced; until the
// response to a start says which those are, a request waits. All others are left alone: answering them,
// even with an error, would decide them for the person at the desk.
func (t *thread) ask(m jsonrpc.Message, p askParams, q handoff.Question) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.findLocked(q.Turn)
	if k != nil && p.ThreadID == t.id {
		q.Changes = k.reducer.Changes(p.ItemID)
	}
	if !t.questions.Add(q, wireQuestion{m.ID, m.Method, p}) {
		t.tally.unasked.Add(1)
		return
	}
	if k == nil || !t.announceLocked(k) {
		t.news()
	}
}

// announceLocked reports the open questions of a turn of ours that its follower does not know. It reports whether there
// were any.
func (t *thread) announceLocked(k *turn) bool {
	if !k.ours {
		return false
	}
	told := t.questions.Tell(k.id)
	for _, q := range told {
		k.report(append(k.reducer.Begin(), q))
	}
	return len(told) > 0
}

// Asked implements [servers.Overhearer].
func (c catalog) Asked() []servers.Asked {
	c.conn.mu.Lock()
	threads := slices.Collect(maps.Values(c.conn.threads))
	c.conn.mu.Unlock()
	var all []servers.Asked
	for _, t := range threads {
		all = append(all, t.asked()...)
	}
	slices.SortStableFunc(all, func(a, b servers.Asked) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Thread, b.Thread))
	})
	return all
}

// asked returns the open questions of turns that are not ours.
func (t *thread) asked() (all []servers.Asked) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range t.questions.Untold() {
		if k := t.findLocked(q.Turn); k == nil || !k.ours {
			all = append(all, servers.Asked{Thread: t.id, Title: t.title,
				Text: cmp.Or(plainCommand(q.Command), q.Text), At: q.Asked})
		}
	}
	return all
}

// closeLocked withdraws the open questions that match. An interrupted turn ends before the server
// withdraws its questions, so the end of a turn closes them too.
func (t *thread) closeLocked(match func(*openQuestion) bool) {
	before := t.questions.Len()
	closed := t.questions.Close(match)
	if before-t.questions.Len() > len(closed) {
		t.news()
	}
	for _, q := range closed {
		if k := t.findLocked(q.Turn); k != nil {
			k.report([]handoff.Update{handoff.QuestionClosed{ID: q.ID}})
		}
	}
}

// claimQuestion gives a question to the one who answers it.
func (t *thread) claimQuestion(id handoff.QuestionID) (*openQuestion, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.questions.Take(id)
}

// unclaimQuestion gives a question back whose answer certainly never left.
func (t *thread) unclaimQuestion(q *openQuestion) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.questions.GiveBack(q)
}

// Decide answers a question of a turn that was started here. That the answer counted shows in
// [handoff.QuestionClosed]; another client may have been first. Stopping ends the turn also where the
// kind of question knows no way to.
func (a *agent) Decide(ctx context.Context, id handoff.QuestionID, d handoff.Decision) error {
	q, ok := a.thread.claimQuestion(id)
	if !ok {
		return handoff.Fault(handoff.CodeNotPending, "", "")
	}
	if !slices.Contains(q.Decisions, d) {
		a.thread.unclaimQuestion(q)
		return handoff.Fault(handoff.CodeMalformed, "that decision is not offered", string(d))
	}
	result, interrupt := q.Wire.reply(d)
	if q.Wire.asked.ThreadID != a.thread.id { // to stop it would stop only the subagent that asks
		interrupt = d == handoff.DecisionStop
	}
	if err := a.conn.client.answer(ctx, q.Wire.id, result); err != nil {
		if servers.NotSent(err) {
			a.thread.unclaimQuestion(q)
		}
		return a.name().fault(err, handoff.CodeAgentGone, handoff.CodeAgentGone)
	}
	if !interrupt {
		return nil
	}
	err := a.Interrupt(ctx, q.Turn)
	if err != nil && handoff.AsError(err).Code == handoff.CodeNotPending {
		return nil // it ended by itself
	}
	return err
}

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
	if _, unfit := errors.AsType[*handoff.Error](err); unfit || servers.NotSent(err) {
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
	return wireAnswers{answers}, nil
}

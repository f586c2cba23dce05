package codex

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/jsonrpc"
	"switchboard/servers/turns"
)

// Requests of the server to a person.
const (
	askCommand     = "item/commandExecution/requestApproval"
	askFileChange  = "item/fileChange/requestApproval"
	askPermissions = "item/permissions/requestApproval"
	askInput       = "item/tool/requestUserInput"
	askElicitation = "mcpServer/elicitation/request"

	askTooLong = "too long" // stands for a method whose params are too long to be kept
)

// kindHuman is the kind of a command that a person has to decide each time.
const kindHuman = "humanCommand"

// wireQuestion is a request of the server to a person.
type wireQuestion struct {
	id     json.RawMessage // of the request, byte for byte
	method string
	params askParams
}

// openQuestion is a question that is not answered.
type openQuestion = turns.Open[wireQuestion]

// askParams are the params of all requests to a person.
type askParams struct {
	ThreadID           string            `json:"threadId"`
	TurnID             string            `json:"turnId"`
	ItemID             string            `json:"itemId"`
	Command            string            `json:"command"` // command
	Kind               string            `json:"kind"`    // command: "command", kindHuman or another act
	Network            json.RawMessage   `json:"networkApprovalContext"`
	Additional         json.RawMessage   `json:"additionalPermissions"` // command
	Cwd                string            `json:"cwd"`                   // command, permissions
	Reason             *string           `json:"reason"`                // command, fileChange, permissions
	AvailableDecisions []json.RawMessage `json:"availableDecisions"`    // command: words, or objects for amendments
	GrantRoot          *string           `json:"grantRoot"`             // fileChange
	Permissions        json.RawMessage   `json:"permissions"`           // permissions; granted byte for byte
	Questions          []inputQuestion   `json:"questions"`             // input
	Owner              servers.Owner     `json:"_switchboard"`          // added by the gate on a machine of ours
	ServerName         string            `json:"serverName"`            // elicitation
	Mode               string            `json:"mode"`                  // elicitation: form or url
	Message            string            `json:"message"`               // elicitation
	URL                string            `json:"url"`                   // elicitation
	RequestedSchema    json.RawMessage   `json:"requestedSchema"`       // elicitation
	Meta               struct {
		Tool   string          `json:"tool_name"`
		Params json.RawMessage `json:"tool_params"`
	} `json:"_meta"` // elicitation: the tool call that needs approval
}

// describe turns a request into a question. It returns false for methods that ask nobody.
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
	case askInput, askAsync:
		q.Kind, q.Text, q.Decisions = handoff.QuestionInput, p.inputText(), refuseOnly
		q.Words, q.Asks = len(p.Questions) > 0, p.asks()
	case askElicitation:
		q.Kind, q.Text, q.Decisions = handoff.QuestionElicitation, p.Message, refuseOnly
		if p.Meta.Tool != "" { // it is shown, and an approval is bound to it
			q.Command = strings.TrimSpace(p.ServerName + " " + p.Meta.Tool + " " +
				handoff.ClipRunes(string(p.Meta.Params), maxDetail))
		}
		p.elicit(&q, once)
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

// asksSomebody matches the methods of requests to a person, also of unknown versions. Requests to the program itself (a
// tool call, a login) are not shown.
var asksSomebody = regexp.MustCompile(`(?i)request(approval|userinput|permission)|elicitation`)

// beyond returns what the approval of a command would allow beside the command.
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

// once reports whether a yes allows no more than the one act, or words approve nothing.
func (p *askParams) once(method string) bool {
	switch method {
	case askCommand:
		return true
	case askElicitation: // the gate takes words for something that may allow more than once
		form, _ := turns.ReadForm(p.RequestedSchema)
		return form.Len() == 0
	case askFileChange:
		return p.GrantRoot == nil
	case askInput:
		return !slices.ContainsFunc(p.Questions, func(q inputQuestion) bool { return !q.IsOther })
	}
	return false
}

// elicit makes a question of what a tool server of the agent asks: a form, or a page to open. What it is that asks for
// an approval (Meta.Tool) takes no words.
func (p *askParams) elicit(q *handoff.Question, once []handoff.Decision) {
	form, readable := turns.ReadForm(p.RequestedSchema)
	switch {
	case p.Mode == "url":
		if page, err := url.Parse(p.URL); err != nil || page.Scheme != "https" || page.Host == "" || page.User != nil ||
			len(p.URL) > maxURL || strings.ContainsFunc(p.URL, func(r rune) bool { return r <= ' ' || r > '~' }) {
			q.Text = strings.TrimSpace(q.Text + " It asks to open a page that cannot be shown here.")
			return
		}
		q.URL, q.Decisions = p.URL, once
	case p.Mode != "form" || !readable || form.Len() > 0 && p.Meta.Tool != "":
	case form.Len() == 0: // a plain yes or no
		q.Decisions = once
	default:
		q.Kind, q.Words, q.Asks = handoff.QuestionInput, true, form.Asks(p.Message)
	}
}

// maxURL bounds the address of a page that is shown, in bytes.
const maxURL = 2 << 10

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// available reports whether the server offers a decision. Without a list it takes all.
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

// permissionsText returns the question for a request for permissions.
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

// wirePermissions is the result of item/permissions/requestApproval. An empty object of permissions is a no.
type wirePermissions struct {
	Permissions json.RawMessage `json:"permissions"`
	Scope       string          `json:"scope"` // turn or session
}

// wireAnswers is the result of item/tool/requestUserInput. An empty map is a no.
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

// decisionWords are the decisions in approvals of commands and files. Set once.
var decisionWords = map[handoff.Decision]string{
	handoff.DecisionAccept:           "accept",
	handoff.DecisionAcceptForSession: "acceptForSession",
	handoff.DecisionDecline:          "decline",
	handoff.DecisionStop:             "cancel",
}

// reply returns the answer on the wire for a decision. interrupt says that the decision is to stop the turn, and that
// the answer alone does not: the turn has to be interrupted too.
func (q *wireQuestion) reply(d handoff.Decision) (result any, interrupt bool) {
	stop := d == handoff.DecisionStop
	switch q.method {
	case askPermissions:
		granted, scope := json.RawMessage("{}"), "turn"
		if d == handoff.DecisionAccept || d == handoff.DecisionAcceptForSession {
			granted = q.params.Permissions
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

// ask adds a question. Only questions of turns of ours are reported to a follower. Until the response to a start says
// which turn is ours, a question waits. Questions of other turns are never answered, not even with an error: that would
// decide them for the person at the desk.
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
		t.changed()
	}
}

// announceLocked reports the open questions of a turn of ours that its follower does not know. It reports whether there
// were any.
func (t *thread) announceLocked(k *turn) bool {
	if !k.ours {
		return false
	}
	questions := t.questions.Tell(k.id)
	for _, q := range questions {
		k.report(append(k.reducer.Begin(), q))
	}
	return len(questions) > 0
}

// ForeignQuestions implements [servers.Overhearer].
func (c catalog) ForeignQuestions() []servers.ForeignQuestion {
	c.conn.mu.Lock()
	threads := slices.Collect(maps.Values(c.conn.threads))
	c.conn.mu.Unlock()
	var all []servers.ForeignQuestion
	for _, t := range threads {
		all = append(all, t.foreignQuestions()...)
	}
	slices.SortStableFunc(all, func(a, b servers.ForeignQuestion) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Thread, b.Thread))
	})
	return all
}

// foreignQuestions returns the open questions of turns that are not ours.
func (t *thread) foreignQuestions() (all []servers.ForeignQuestion) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range t.questions.Untold() {
		if k := t.findLocked(q.Turn); k == nil || !k.ours {
			all = append(all, servers.ForeignQuestion{Thread: t.id, Title: t.title,
				Text: cmp.Or(plainCommand(q.Command), q.Text), At: q.Asked})
		}
	}
	return all
}

// closeLocked closes the open questions that match. The end of a turn closes its questions too, since an interrupted
// turn ends before the server withdraws them.
func (t *thread) closeLocked(match func(*openQuestion) bool) {
	before := t.questions.Len()
	closed := t.questions.Close(match)
	if before-t.questions.Len() > len(closed) {
		t.changed()
	}
	for _, q := range closed {
		if k := t.findLocked(q.Turn); k != nil {
			k.report([]handoff.Update{handoff.QuestionClosed{ID: q.ID}})
		}
	}
}

// claimQuestion marks a question as being answered; false: it is not open.
func (t *thread) claimQuestion(id handoff.QuestionID) (*openQuestion, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.questions.Take(id)
}

// unclaimQuestion makes a claimed question open again. Its answer must not have been sent.
func (t *thread) unclaimQuestion(q *openQuestion) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.questions.GiveBack(q)
}

// turnOf returns the turn of a question, or the one that goes on with its goal.
func (t *thread) turnOf(q *openQuestion) handoff.TurnID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return q.Turn
}

// Decide answers a question of a turn of ours. Another client may answer first; [handoff.QuestionClosed] says that the
// question was answered. DecisionStop ends the turn, by an interrupt if the question has no such answer.
func (a *agent) Decide(ctx context.Context, id handoff.QuestionID, d handoff.Decision) error {
	q, ok := a.thread.claimQuestion(id)
	if !ok {
		return handoff.Fault(handoff.CodeNotPending, "", "")
	}
	if !slices.Contains(q.Decisions, d) {
		a.thread.unclaimQuestion(q)
		return handoff.Fault(handoff.CodeMalformed, "that decision is not offered", string(d))
	}
	if q.Wire.method == askAsync { // nobody waits for an answer
		a.thread.closeAsync(func(o *openQuestion) bool { return o == q })
		if d != handoff.DecisionStop {
			return nil
		}
		return a.stopFor(ctx, q)
	}
	result, interrupt := q.Wire.reply(d)
	if q.Wire.params.ThreadID != a.thread.id { // the answer would stop only the subagent
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
	return a.stopFor(ctx, q)
}

// stopFor stops the turn of a question.
func (a *agent) stopFor(ctx context.Context, q *openQuestion) error {
	err := a.Interrupt(ctx, a.thread.turnOf(q))
	if err != nil && handoff.AsError(err).Code == handoff.CodeNotPending {
		return nil // the turn has ended by itself
	}
	return err
}

// inputQuestion is one question of item/tool/requestUserInput.
type inputQuestion struct {
	ID       string        `json:"id"`
	Question string        `json:"question"`
	IsSecret bool          `json:"isSecret"`
	IsOther  bool          `json:"isOther"` // words of one's own answer it too: it is no approval
	Options  []inputOption `json:"options"`
}

type inputOption struct {
	Label string `json:"label"`
}

// asks returns the questions one by one.
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

// Reply answers a question in words.
func (a *agent) Reply(ctx context.Context, id handoff.QuestionID, answers [][]string) error {
	q, ok := a.thread.claimQuestion(id)
	if !ok {
		return handoff.Fault(handoff.CodeNotPending, "", "")
	}
	if q.Wire.method == askAsync {
		return a.replyAsync(ctx, q, answers)
	}
	result, err := q.Wire.words(answers)
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

// words returns the answer on the wire for answers in words.
func (q *wireQuestion) words(given [][]string) (any, error) {
	switch form, readable := turns.ReadForm(q.params.RequestedSchema); {
	case q.method == askElicitation && readable && form.Len() > 0 && q.params.Meta.Tool == "":
		content, err := form.Fill(given)
		return wireElicitation{Action: "accept", Content: content}, err
	case q.method != askInput:
		return nil, handoff.Fault(handoff.CodeMalformed, "that question takes a yes or a no", q.method)
	case len(given) != len(q.params.Questions):
		return nil, handoff.Fault(handoff.CodeMalformed, "each question needs an answer, one on a line", "")
	}
	answers := map[string]inputAnswer{}
	for i, question := range q.params.Questions {
		answers[question.ID] = inputAnswer{given[i]}
	}
	return wireAnswers{answers}, nil
}

package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/jsonrpc"
	"switchboard/servers/turns"
)

// wireQuestion is a request of the agent for a person.
type wireQuestion struct {
	id      json.RawMessage    // of the request, byte for byte
	options []permissionOption // of a permission
	form    turns.Form         // of an elicitation
	elicits bool               // it is an elicitation
}

// openQuestion is a question that is not answered.
type openQuestion = turns.Open[wireQuestion]

// ask reports a request of the agent as a question. A request outside prompts of ours is refused at once: no caller has
// given that work, and nobody could answer. It runs in the reader.
func (c *connection) ask(m jsonrpc.Message) {
	var p struct {
		Session string `json:"sessionId"`
		Meta    struct {
			Owner servers.Owner `json:"switchboard"` // added by the gate on a machine of ours
		} `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &p) // without a session it is refused
	s := c.sessionByID(p.Session)
	if s == nil {
		c.tally.unasked.Add(1)
		c.dismiss(m)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.turn
	if k == nil || s.replaying {
		c.tally.unasked.Add(1)
		c.dismiss(m)
		return
	}
	k.markBegun()
	k.flushPendingText()
	k.finish()
	var q handoff.Question
	var wire wireQuestion
	switch {
	case len(m.Params) > maxQuestion:
		c.tally.unasked.Add(1)
		q = handoff.Question{Kind: handoff.QuestionOther, Text: "The agent asks for something that is too long to be shown.",
			Decisions: refusals}
		wire.elicits = m.Method == onElicit
	case m.Method == onPermission:
		q, wire = k.permission(m.Params)
	default:
		q, wire = elicitation(m.Params)
	}
	p.Meta.Owner.Limit(&q, true)
	wire.id = m.ID
	q.ID = handoff.QuestionID(strings.Join([]string{c.cfg.Name, s.id, string(k.id), string(m.ID)}, ":"))
	q.Turn, q.Connection, q.Asked = k.id, c.generation, time.Now()
	if !s.questions.Add(q, wire) {
		c.tally.unasked.Add(1)
		c.dismiss(m)
		return
	}
	for _, q := range s.questions.Tell(k.id) {
		k.report([]handoff.Update{q})
	}
}

// dismiss refuses a request of the agent without asking anybody.
func (c *connection) dismiss(m jsonrpc.Message) {
	w := wireQuestion{id: m.ID, elicits: m.Method == onElicit}
	c.peer.AnswerSoon(m.ID, w.reply(handoff.DecisionStop))
}

// refusals are the decisions that every question offers. Set once.
var refusals = []handoff.Decision{handoff.DecisionDecline, handoff.DecisionStop}

// permission turns a request for permission into a question. Its risk follows from the command or the files, never from
// the agent's own description: a request with a title only is of a kind that is approved by a tap alone.
func (k *turn) permission(params json.RawMessage) (handoff.Question, wireQuestion) {
	var p permissionParams
	if json.Unmarshal(params, &p) != nil {
		return handoff.Question{Kind: handoff.QuestionOther, Text: "The agent asks for something that cannot be read.",
			Decisions: refusals}, wireQuestion{}
	}
	c := &call{toolCall: toolCall{ID: p.Call.ID}}
	if before := k.calls[p.Call.ID]; before != nil {
		*c = *before
	}
	u := update{toolCall: p.Call.toolCall, Content: p.Call.Content}
	c.merge(&u)
	in := c.input()
	q := handoff.Question{Reason: c.reason(), Cwd: in.Cwd}
	switch {
	case c.ToolKind == "execute" && in.Command != "":
		q.Kind, q.Text, q.Command = handoff.QuestionCommand, "May this command run?", in.Command
		if q.Cwd == "" {
			q.Cwd = k.session.cwd
		}
	case c.edits() && len(c.paths()) > 0:
		q.Kind, q.Text, q.Changes = handoff.QuestionFileChange, "May these files be changed?", c.paths()
		if c.ToolKind != "edit" {
			q.Beyond = "that they are deleted or moved"
		}
	default:
		q.Kind, q.Text = handoff.QuestionPermissions, "May the agent do this: "+handoff.ClipRunes(c.Title, maxDetail)+"?"
		q.Command = strings.TrimSpace(c.Name + " " + handoff.ClipRunes(string(c.Input), maxDetail))
	}
	wire := wireQuestion{options: p.Options}
	if !wire.yesOrNo(c) {
		wire.choose(&q)
		return q, wire
	}
	if wire.option("allow_once") != "" {
		q.Decisions = append(q.Decisions, handoff.DecisionAccept)
	}
	if wire.option("allow_always") != "" {
		q.Decisions = append(q.Decisions, handoff.DecisionAcceptForSession)
	}
	q.Decisions = append(q.Decisions, refusals...)
	return q, wire
}

// yesOrNo reports whether the options are a clear yes and no: at most one of each kind, which names what it is. The
// name of an option matters where the call says nothing of what would be done: then the names may be the question.
func (q *wireQuestion) yesOrNo(c *call) bool {
	in, kinds := c.input(), map[string]bool{}
	act := c.ToolKind == "execute" && in.Command != "" || c.edits() && len(c.paths()) > 0
	for _, o := range q.options {
		words, known := optionWords[o.Kind]
		first, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(o.Name)), " ")
		if !known || kinds[o.Kind] || !act && o.Name != "" && !slices.Contains(words, strings.Trim(first, ",.;:!'’")) {
			return false
		}
		kinds[o.Kind] = true
	}
	return true
}

// optionWords are the kinds of options, each with the words that begin the names of a plain one. Set once.
var optionWords = map[string][]string{
	"allow_once":    strings.Fields("yes allow approve accept ok okay proceed run continue"),
	"allow_always":  strings.Fields("yes allow approve accept always"),
	"reject_once":   strings.Fields("no reject deny decline refuse cancel don't don’t"),
	"reject_always": strings.Fields("no reject deny decline refuse never"),
}

// choose makes the question one whose options are the answers. Each is chosen by its name, and a yes chooses none. What
// would hold longer than once is said, and needs a tap.
func (q *wireQuestion) choose(as *handoff.Question) {
	as.Words, as.Decisions = true, refusals
	ask := handoff.Ask{Text: as.Text, Only: true}
	for i := range q.options {
		o := &q.options[i]
		o.Name = handoff.ClipRunes(cmp.Or(strings.Join(strings.Fields(o.Name), " "), o.ID), maxDetail)
		if slices.Contains(ask.Options, o.Name) {
			o.Name = handoff.ClipRunes(o.Name, maxDetail/2) + " (" + handoff.ClipRunes(o.ID, maxDetail/2) + ")"
		}
		ask.Options = append(ask.Options, o.Name)
		if o.Kind == "allow_always" || optionWords[o.Kind] == nil {
			as.Beyond = "what is chosen, for longer than this once"
		}
	}
	as.Asks = []handoff.Ask{ask}
}

// reason returns the agent's own description of the call.
func (c *call) reason() string {
	var in struct {
		Description string `json:"description"`
	}
	_ = json.Unmarshal(c.Input, &in) // "" if it fails
	return handoff.ClipRunes(in.Description, maxDetail)
}

// option returns the id of the first option of a kind, or "". The ids differ from agent to agent, the kinds do not.
func (q *wireQuestion) option(kind string) string {
	for _, o := range q.options {
		if o.Kind == kind {
			return o.ID
		}
	}
	return ""
}

// optionKinds are the kinds of options by decision. Set once.
var optionKinds = map[handoff.Decision]string{
	handoff.DecisionAccept: "allow_once", handoff.DecisionAcceptForSession: "allow_always",
	handoff.DecisionDecline: "reject_once",
}

// reply returns the answer on the wire for a decision.
func (q *wireQuestion) reply(d handoff.Decision) any {
	if q.elicits {
		switch d {
		case handoff.DecisionAccept:
			return elicited{Action: "accept"}
		case handoff.DecisionDecline:
			return elicited{Action: "decline"}
		}
		return elicited{Action: "cancel"}
	}
	var o outcome
	o.Outcome.Outcome = "cancelled"
	if id := q.option(optionKinds[d]); id != "" && optionKinds[d] != "" {
		o.Outcome.Outcome, o.Outcome.Option = "selected", id
	}
	return o
}

// elicitation turns an elicitation into a question.
func elicitation(params json.RawMessage) (handoff.Question, wireQuestion) {
	var p elicitParams
	unread := json.Unmarshal(params, &p) != nil
	q := handoff.Question{Kind: handoff.QuestionElicitation, Text: p.Message, Decisions: refusals}
	wire := wireQuestion{elicits: true}
	form, readable := turns.ReadForm(p.Schema)
	switch {
	case unread, p.Mode != "form", !readable:
		q.Text = strings.TrimSpace(q.Text + " The agent asks for something that cannot be answered here.")
	case form.Len() == 0: // a plain yes or no
		q.Decisions = append([]handoff.Decision{handoff.DecisionAccept}, refusals...)
	default:
		q.Kind, q.Words, q.Asks, wire.form = handoff.QuestionInput, true, form.Asks(p.Message), form
	}
	return q, wire
}

// claim marks a question as being answered. It fails if the question is not open.
func (s *session) claim(id handoff.QuestionID) (*openQuestion, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, ok := s.questions.Take(id)
	if !ok {
		return nil, handoff.Fault(handoff.CodeNotPending, "", "")
	}
	return q, nil
}

// unclaim makes a claimed question open again. Its answer must not have been sent.
func (s *session) unclaim(q *openQuestion) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.questions.GiveBack(q)
}

// closeLocked withdraws the open questions that match. With refuse, it answers the agent's requests as cancelled,
// unless an answer is being sent: each request gets one answer.
func (s *session) closeLocked(match func(*openQuestion) bool, refuse bool) {
	for _, q := range s.questions.Close(func(q *openQuestion) bool {
		is := match(q)
		if is && refuse && !q.Taken {
			s.conn.peer.AnswerSoon(q.Wire.id, q.Wire.reply(handoff.DecisionStop))
		}
		return is
	}) {
		if k := s.findLocked(q.Turn); k != nil {
			k.report([]handoff.Update{handoff.QuestionClosed{ID: q.ID}})
		}
	}
}

// withdrawn withdraws the question of a request that the agent has withdrawn.
func (s *session) withdrawn(request string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked(func(q *openQuestion) bool { return string(q.Wire.id) == request }, false)
}

// Decide answers a question of a turn. DecisionStop cancels the turn.
func (a *agent) Decide(ctx context.Context, id handoff.QuestionID, d handoff.Decision) error {
	q, err := a.session.claim(id)
	if err != nil {
		return err
	}
	if !slices.Contains(q.Decisions, d) {
		a.session.unclaim(q)
		return handoff.Fault(handoff.CodeMalformed, "that decision is not offered", string(d))
	}
	if d == handoff.DecisionStop { // Interrupt answers this question too
		a.session.unclaim(q)
		err := a.Interrupt(ctx, q.Turn)
		if err != nil && handoff.AsError(err).Code == handoff.CodeNotPending {
			return nil // the turn has ended by itself
		}
		return err
	}
	return a.reply(ctx, q, q.Wire.reply(d))
}

// Reply answers a question in words: it fills the form, or chooses one of the options.
func (a *agent) Reply(ctx context.Context, id handoff.QuestionID, answers [][]string) error {
	q, err := a.session.claim(id)
	if err != nil {
		return err
	}
	result, err := q.Wire.words(answers)
	if err != nil {
		a.session.unclaim(q)
		return err
	}
	return a.reply(ctx, q, result)
}

// words returns the answer on the wire for answers in words.
func (q *wireQuestion) words(answers [][]string) (any, error) {
	if q.elicits {
		form, err := q.form.Fill(answers)
		if err == nil && len(form) == 0 {
			err = handoff.Fault(handoff.CodeMalformed, "that question takes a yes or a no", "")
		}
		return elicited{Action: "accept", Content: form}, err
	}
	var o outcome
	for _, of := range q.options {
		if len(answers) == 1 && len(answers[0]) == 1 && of.Name == answers[0][0] {
			o.Outcome.Outcome, o.Outcome.Option = "selected", of.ID
			return o, nil
		}
	}
	return nil, handoff.Fault(handoff.CodeMalformed, "that is none of the answers that are offered", "")
}

// reply sends an answer. The agent does not confirm it.
func (a *agent) reply(ctx context.Context, q *openQuestion, result any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, controlTimeout, errTimeout)
	defer cancel()
	if err := a.conn.peer.Answer(ctx, q.Wire.id, result); err != nil {
		if servers.NotSent(err) {
			a.session.unclaim(q)
		}
		return a.fault(err, handoff.CodeAgentGone)
	}
	a.session.mu.Lock()
	defer a.session.mu.Unlock()
	a.session.closeLocked(func(open *openQuestion) bool { return open == q }, false)
	return nil
}

package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
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
	form    []formField        // of an elicitation
	elicits bool               // it is an elicitation
}

// openQuestion is a question that is not answered.
type openQuestion = turns.Open[wireQuestion]

// formField is a field of an elicitation's form.
type formField struct {
	key      string
	property property
	custom   string // key of the property for an answer beside the options; "": none
}

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
	if wire.option("allow_once") != "" {
		q.Decisions = append(q.Decisions, handoff.DecisionAccept)
	}
	if wire.option("allow_always") != "" {
		q.Decisions = append(q.Decisions, handoff.DecisionAcceptForSession)
	}
	q.Decisions = append(q.Decisions, refusals...)
	return q, wire
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
	if unread || p.Mode != "form" {
		q.Text = strings.TrimSpace(q.Text + " The agent asks for something that cannot be answered here.")
		return q, wire
	}
	if len(p.Schema.Properties) == 0 { // a plain yes or no
		q.Decisions = append([]handoff.Decision{handoff.DecisionAccept}, refusals...)
		return q, wire
	}
	for _, key := range slices.Sorted(maps.Keys(p.Schema.Properties)) {
		of := p.Schema.Properties[key]
		if base, other := strings.CutSuffix(key, "_custom"); other {
			if _, is := p.Schema.Properties[base]; is {
				continue
			}
		}
		if !slices.Contains([]string{"string", "boolean", "integer", "number"}, of.Type) {
			q.Text = strings.TrimSpace(q.Text + " The agent asks for something that cannot be answered here.")
			return q, wireQuestion{elicits: true}
		}
		one := formField{key: key, property: of}
		if _, is := p.Schema.Properties[key+"_custom"]; is {
			one.custom = key + "_custom"
		}
		wire.form = append(wire.form, one)
	}
	for _, one := range wire.form {
		q.Asks = append(q.Asks, one.ask(p.Message, len(wire.form) == 1))
	}
	q.Kind, q.Words = handoff.QuestionInput, true
	return q, wire
}

// ask returns a field as it is asked. If it is the only one (alone), the text is the elicitation's message.
func (a *formField) ask(message string, alone bool) handoff.Ask {
	ask := handoff.Ask{Text: message}
	if !alone {
		ask.Text = strings.Trim(cmp.Or(a.property.Title, a.key)+": "+a.property.Description, ": ")
	}
	for _, o := range a.property.OneOf {
		ask.Options = append(ask.Options, cmp.Or(o.Title, o.Const))
	}
	ask.Options = append(ask.Options, a.property.Enum...)
	if a.property.Type == "boolean" {
		ask.Options = []string{"yes", "no"}
	}
	return ask
}

// fillForm fills the form with an answer that has a line for each field; false: the answer does not fit.
func (q *wireQuestion) fillForm(words string) (form map[string]any, fits bool) {
	lines := []string{strings.TrimSpace(words)}
	if len(q.form) > 1 {
		lines = strings.Split(lines[0], "\n")
	}
	form, fits = map[string]any{}, len(q.form) > 0 && len(lines) == len(q.form)
	for i := 0; fits && i < len(lines); i++ {
		fits = q.form[i].fill(form, strings.TrimSpace(lines[i]))
	}
	return form, fits
}

// fill puts the answer for a field into the form; false: it does not fit.
func (a *formField) fill(form map[string]any, line string) bool {
	if line == "" {
		return false
	}
	for _, shown := range []bool{true, false} { // the titles that people see go before the constants
		for _, o := range a.property.OneOf {
			name := o.Const
			if shown {
				name = cmp.Or(o.Title, o.Const)
			}
			if strings.EqualFold(name, line) {
				form[a.key] = o.Const
				return true
			}
		}
	}
	for _, word := range a.property.Enum {
		if strings.EqualFold(word, line) {
			form[a.key] = word
			return true
		}
	}
	switch {
	case a.custom != "":
		form[a.custom] = line
		return true
	case len(a.property.OneOf)+len(a.property.Enum) > 0:
		return false
	case a.property.Type == "boolean":
		form[a.key] = strings.EqualFold(line, "yes")
		return strings.EqualFold(line, "yes") || strings.EqualFold(line, "no")
	case a.property.Type == "integer":
		n, err := strconv.ParseInt(line, 10, 64)
		form[a.key] = n
		return err == nil
	case a.property.Type == "number":
		n, err := strconv.ParseFloat(line, 64)
		form[a.key] = n
		return err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) // JSON has no such numbers
	}
	form[a.key] = line
	return true
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

// Reply answers a question in words, a line for each field of its form.
func (a *agent) Reply(ctx context.Context, id handoff.QuestionID, words string) error {
	q, err := a.session.claim(id)
	if err != nil {
		return err
	}
	form, fits := q.Wire.fillForm(words)
	if !fits {
		a.session.unclaim(q)
		return handoff.Fault(handoff.CodeMalformed, "each question needs an answer, one on a line", "")
	}
	return a.reply(ctx, q, elicited{Action: "accept", Content: form})
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

package acp

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/jsonrpc"
	"switchboard/servers/turns"
)

// signWait is how long Start waits for the first message of its turn. The protocol has no message for the begin of a
// turn; the first update comes as soon as the model answers.
const signWait = time.Second

// agent is one use of a session. It implements all interfaces that a [handoff.Agent] may implement.
type agent struct {
	conn    *connection   // Set once
	session *session      // Set once
	once    sync.Once     // closes closed
	closed  chan struct{} // Set once, closed by Close
}

var (
	_ handoff.Agent      = (*agent)(nil)
	_ handoff.Controls   = (*agent)(nil)
	_ handoff.Reconciler = (*agent)(nil)
	_ handoff.Replier    = (*agent)(nil)
	_ handoff.Bystander  = (*agent)(nil)
)

// Close ends the use. The last Close closes the session in the agent, unless a prompt runs in it.
func (a *agent) Close() error {
	a.once.Do(func() {
		close(a.closed)
		a.conn.release(a.session)
	})
	return nil
}

// Start sends the session a prompt, in one try. It fails while a prompt runs, since agents treat a second one
// differently: they queue it, run it after a cancel, or give up the first. A session that another process has changed
// is opened anew before.
func (a *agent) Start(ctx context.Context, t handoff.Turn) (handoff.TurnID, error) {
	s := a.session
	prompt, err := a.blocks(t.Input)
	if err != nil {
		return "", err
	}
	id := handoff.TurnID(t.ID)
	prompt = append(prompt, block{Type: "text", Text: mark(id, t.Context)})
	if err := s.enter(ctx); err != nil {
		return "", a.fault(err, handoff.CodeUnreachable)
	}
	defer s.leave()
	if err := a.prepare(ctx); err != nil {
		a.conn.closeIfBusy(s, err)
		return "", a.fault(err, handoff.CodeUnreachable)
	}
	select {
	case s.sending <- struct{}{}:
	case <-ctx.Done():
		return "", a.fault(&servers.NotSentError{Cause: context.Cause(ctx)}, handoff.CodeUnreachable)
	}
	k := a.beginTurn(id, wordsOf(t.Input))
	err = a.conn.peer.Post(ctx, doPrompt, promptParams{Session: s.id, Prompt: prompt, Meta: traceOf(ctx)},
		func(r jsonrpc.Reply) { s.answered(k, r) })
	<-s.sending
	if err != nil {
		a.withdraw(k)
		return "", a.fault(err, handoff.CodeUnreachable)
	}
	timer := time.NewTimer(signWait)
	defer timer.Stop()
	select {
	case <-k.begun:
	case <-timer.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	refusal, unknown := k.refusal, k.lost && k.silent
	s.mu.Unlock()
	switch {
	case refusal != nil && isBusy(refusal):
		a.conn.closeIfBusy(s, refusal)
		return "", a.fault(refusal, handoff.CodeUnreachable)
	case refusal != nil:
		return "", handoff.Fault(handoff.CodeRefused, a.conn.cfg.Name, handoff.ClipRunes(refusal.Error(), maxDetail))
	case unknown:
		return "", handoff.Fault(handoff.CodeUnknownStart, a.conn.cfg.Name, "the connection was lost")
	}
	return id, nil
}

// closeIfBusy closes a session if err says that a prompt of another instance runs in it: the next Attach opens the
// session and finds that prompt. The caller holds the session's gate.
func (c *connection) closeIfBusy(s *session, err error) {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && isBusy(e) {
		c.closeSession(s)
	}
}

// prepare makes sure that the session can take a prompt: none runs in it, it has not changed since we know it, and it
// has the configured mode. The caller holds the session's gate.
func (a *agent) prepare(ctx context.Context) error {
	s, c := a.session, a.conn
	select {
	case <-a.closed:
		return &servers.NotSentError{Cause: errDetached}
	default:
	}
	if err := c.peer.Lost(); err != nil {
		return &servers.NotSentError{Cause: err}
	}
	s.mu.Lock()
	busy, open, updated := s.turn != nil || s.busyLocked(), s.open, s.updated
	s.mu.Unlock()
	if busy {
		return handoff.Fault(handoff.CodeBusy, c.cfg.Name, "")
	}
	if open && !updated.IsZero() {
		found, ok, err := c.find(ctx, s.id)
		if err != nil {
			return err
		}
		if ok && found.Updated.After(updated) { // another process wrote into it
			c.closeSession(s)
			open = false
		}
	}
	if open {
		return c.setMode(ctx, s)
	}
	if err := c.open(ctx, s); err != nil {
		return err
	}
	if !s.isIdle() { // open has adopted a running prompt
		return handoff.Fault(handoff.CodeBusy, c.cfg.Name, "")
	}
	return nil
}

// beginTurn makes the turn of a prompt that is about to be sent. From here on the agent's messages belong to it.
func (a *agent) beginTurn(id handoff.TurnID, words string) *turn {
	s := a.session
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.newTurn(id)
	s.turn, s.lastUsed, s.unprompted = k, time.Now(), time.Time{}
	s.updated = time.Time{} // our prompt changes the session; afterTurn finds the new time
	s.keepLocked(k)
	s.history.add(entry{turn: id, user: true, text: words})
	return k
}

// withdraw removes a turn whose prompt was never sent.
func (a *agent) withdraw(k *turn) {
	s := a.session
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn, s.turns = nil, s.turns[:len(s.turns)-1]
	s.history.withdraw(k.id)
	k.conclude()
}

// Follow yields the updates of a turn, from the beginning also if it is called late. A turn of an earlier connection is
// read from the history. That does not say how the turn ended: it counts as interrupted.
func (a *agent) Follow(ctx context.Context, id handoff.TurnID) iter.Seq2[handoff.Update, error] {
	return func(yield func(handoff.Update, error) bool) {
		k, err := a.follow(id)
		if err != nil {
			yield(nil, err)
			return
		}
		defer a.unfollow(k)
		for {
			for u, ok := a.take(k); ok; u, ok = a.take(k) {
				if !yield(u, nil) {
					return
				}
				if _, ended := u.(handoff.TurnEnded); ended {
					return
				}
			}
			if err := a.wait(ctx, k); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// Watch implements [handoff.Bystander]. It yields only the end, and takes no updates from the follower of the turn.
func (a *agent) Watch(ctx context.Context, id handoff.TurnID) iter.Seq2[handoff.Update, error] {
	return func(yield func(handoff.Update, error) bool) {
		s := a.session
		s.mu.Lock()
		k := s.findLocked(id)
		s.mu.Unlock()
		if k == nil {
			yield(nil, handoff.Fault(handoff.CodeTurnGone, a.conn.cfg.Name, ""))
			return
		}
		select {
		case <-k.over:
		case <-a.conn.ended:
		case <-a.closed:
		case <-ctx.Done():
		}
		s.mu.Lock()
		ended := k.ended
		s.mu.Unlock()
		if ended == nil {
			yield(nil, handoff.Fault(handoff.CodeAgentGone, a.conn.cfg.Name, "its end was not heard"))
			return
		}
		yield(*ended, nil)
	}
}

// follow returns a turn for its follower, of whom there may be one at a time.
func (a *agent) follow(id handoff.TurnID) (*turn, error) {
	s := a.session
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.findLocked(id)
	if k != nil && k.followed {
		return nil, handoff.Fault(handoff.CodeInternal, "", "the turn is followed already")
	}
	switch {
	case k == nil, k.reducer.Ended() && k.buffer.Len() == 0, k.buffer.Lost() && s.turn != k:
		if !s.history.has(id) {
			return nil, handoff.Fault(handoff.CodeTurnGone, a.conn.cfg.Name, "")
		}
		k = a.recallLocked(id, k)
	case k.buffer.Lost(): // updates were dropped: report all of it again
		k.reducer, k.buffer = turns.NewReducer(id), turns.NewBuffer(&a.conn.tally.Tally)
		k.report(k.reducer.Begin())
		k.report(k.reducer.CatchUp(s.history.items(id)))
		s.questions.Retell(id)
		for _, q := range s.questions.Tell(id) {
			k.report([]handoff.Update{q})
		}
	}
	k.followed = true
	return k, nil
}

// recallLocked makes a turn from the history. before is the turn as this connection knew it, or nil.
func (a *agent) recallLocked(id handoff.TurnID, before *turn) *turn {
	k := a.session.newTurn(id)
	k.report(k.reducer.Begin())
	end := handoff.TurnEnded{
		Status: handoff.TurnInterrupted, Code: handoff.CodeAgentEnded,
		Detail: "its connection was lost before it answered; the session has what it did until then",
	}
	if before != nil && before.ended != nil {
		end = *before.ended
	}
	k.report(k.reducer.CatchUp(a.session.history.items(id)))
	k.report(k.reducer.End(end, nil))
	return k
}

func (a *agent) unfollow(k *turn) {
	a.session.mu.Lock()
	defer a.session.mu.Unlock()
	k.followed = false
}

func (a *agent) take(k *turn) (handoff.Update, bool) {
	a.session.mu.Lock()
	defer a.session.mu.Unlock()
	return k.buffer.Take()
}

// wait returns when there may be something to take, or with the error that ends following.
func (a *agent) wait(ctx context.Context, k *turn) error {
	over := false
	select {
	case <-k.buffer.Awake():
	case <-ctx.Done():
		return handoff.AsError(context.Cause(ctx))
	case <-a.closed:
		return handoff.Fault(handoff.CodeAgentGone, a.conn.cfg.Name, errDetached.Error())
	case <-a.conn.ended: // nothing more will come, also of a turn whose prompt an earlier connection sent
		over = true
	}
	a.session.mu.Lock()
	defer a.session.mu.Unlock()
	switch {
	case k.buffer.Len() > 0:
		return nil
	case k.lost || over:
		why := "the connection was lost"
		if err := a.conn.peer.Lost(); err != nil {
			why = err.Error()
		}
		return handoff.Fault(handoff.CodeAgentGone, a.conn.cfg.Name, handoff.ClipRunes(why, maxDetail))
	case k.buffer.Lost():
		return handoff.Fault(handoff.CodeAgentGone, a.conn.cfg.Name, "updates came faster than they were read")
	}
	return nil
}

// Steer sends the running turn more text. If the agent does not support that, nothing is sent.
func (a *agent) Steer(ctx context.Context, id handoff.TurnID, input []handoff.Part) error {
	s := a.session
	prompt, err := a.blocks(input)
	if err != nil {
		return err
	}
	if err := a.conn.peer.Lost(); err != nil {
		return a.fault(&servers.NotSentError{Cause: err}, handoff.CodeUnreachable)
	}
	s.mu.Lock()
	runs := s.turn != nil && s.turn.id == id
	s.mu.Unlock()
	if !runs {
		return handoff.Fault(handoff.CodeNotPending, "", "")
	}
	if !a.conn.can.Meta.Steering.Supported {
		return handoff.Fault(handoff.CodeUnsupported, a.conn.cfg.Name, "its agent takes no words while it works")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, controlTimeout, errTimeout)
	defer cancel()
	params := promptParams{Session: s.id, Prompt: append(prompt, block{Type: "text", Text: mark(id, nil)}),
		Meta: &meta{Steering: &steering{Idle: "promptRequired"}}}
	var got steered
	if err := a.conn.peer.CallIn(ctx, doSteer, params, &got, func(r jsonrpc.Reply) { s.steered(id, r) }); err != nil {
		if servers.NotSent(err) {
			return a.fault(err, handoff.CodeUnreachable)
		}
		return a.fault(err, handoff.CodeAgentGone)
	}
	switch got.Outcome {
	case "injected":
	case "promptRequired":
		return handoff.Fault(handoff.CodeNotPending, "", "")
	default:
		return handoff.Fault(handoff.CodeUnknownStart, a.conn.cfg.Name,
			"steering came to "+handoff.ClipRunes(got.Outcome, 80))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn != nil && s.turn.id == id {
		s.history.add(entry{turn: id, user: true, text: wordsOf(input)})
	}
	return nil
}

// steered notes that a steer was answered: it cuts off the message that is being written. It runs in the reader.
func (s *session) steered(id handoff.TurnID, r jsonrpc.Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Err == nil && s.turn != nil && s.turn.id == id && s.turn.message.id != "" {
		s.turn.message.cut = true
	}
}

// Interrupt cancels a turn. It answers all open requests of the turn as cancelled, as the protocol demands: some agents
// end the turn only then, or never ask again.
func (a *agent) Interrupt(ctx context.Context, id handoff.TurnID) error {
	s := a.session
	ctx, cancel := context.WithTimeoutCause(ctx, controlTimeout, errTimeout)
	defer cancel()
	select {
	case s.sending <- struct{}{}:
		defer func() { <-s.sending }()
	case <-ctx.Done():
		return a.fault(&servers.NotSentError{Cause: context.Cause(ctx)}, handoff.CodeAgentGone)
	}
	if !s.setStopped(id, true) { // before the agent can answer the prompt
		return handoff.Fault(handoff.CodeNotPending, "", "")
	}
	if err := a.conn.peer.Tell(ctx, doCancel, sessionParams{s.id}); err != nil {
		s.setStopped(id, false)
		return a.fault(err, handoff.CodeAgentGone)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked(func(q *openQuestion) bool { return q.Turn == id }, true)
	return nil
}

// setStopped notes whether we cancel a turn. It returns false if the turn does not run.
func (s *session) setStopped(id handoff.TurnID, stopped bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	runs := s.turn != nil && s.turn.id == id
	if runs {
		s.turn.stopped = stopped
	}
	return runs
}

// Reconcile finds the turn of a start in the history, which was read after the connection was lost, once the session
// had not changed for a while. "": the prompt did not run.
func (a *agent) Reconcile(_ context.Context, _ handoff.TurnID, id string) (handoff.TurnID, error) {
	s := a.session
	s.mu.Lock()
	defer s.mu.Unlock()
	switch turn := handoff.TurnID(id); {
	case s.findLocked(turn) != nil, s.history.has(turn):
		return turn, nil
	case !a.conn.can.Agent.Load:
		return "", handoff.Fault(handoff.CodeUnsupported, a.conn.cfg.Name, "its agent cannot show earlier sessions")
	case !s.known:
		return "", handoff.Fault(handoff.CodeUnsupported, a.conn.cfg.Name,
			"the session's history cannot be read while it works")
	case len(s.history.keys) >= maxKeys:
		return "", handoff.Fault(handoff.CodeUnsupported, a.conn.cfg.Name, "the session is too long to be searched")
	}
	return "", nil
}

func (a *agent) fault(err error, unanswered handoff.Code) error {
	return a.conn.fault(err, a.session.name(), unanswered)
}

// blocks encodes an input for the agent.
func (a *agent) blocks(input []handoff.Part) ([]block, error) {
	var all []block
	for _, part := range input {
		switch part := part.(type) {
		case handoff.Text:
			all = append(all, block{Type: "text", Text: strings.ToValidUTF8(string(part), "\ufffd")})
		case handoff.Image:
			kind, data, ok := strings.Cut(strings.TrimPrefix(part.URL, "data:"), ";base64,")
			switch {
			case strings.HasPrefix(part.URL, "https://"):
				return nil, handoff.Fault(handoff.CodeUnsupported, a.conn.cfg.Name,
					"its agent takes pictures, and no addresses of them")
			case !ok || !strings.HasPrefix(part.URL, "data:image/"):
				return nil, handoff.Fault(handoff.CodeMalformed, "a picture needs to be data:image/", "")
			case !a.conn.can.Agent.Prompts.Image:
				return nil, handoff.Fault(handoff.CodeUnsupported, a.conn.cfg.Name, "its agent takes no pictures")
			}
			all = append(all, block{Type: "image", MimeType: kind, Data: data})
		default:
			return nil, handoff.Fault(handoff.CodeUnsupported, a.conn.cfg.Name, "it takes words and pictures")
		}
	}
	return all, nil
}

// wordsOf joins the texts of an input.
func wordsOf(input []handoff.Part) string {
	var all []string
	for _, part := range input {
		if text, ok := part.(handoff.Text); ok {
			all = append(all, string(text))
		}
	}
	return strings.Join(all, "\n")
}

// afterTurn waits until the agent has written a turn that has just ended, stores when the session was changed, and
// closes the session if it is not used any more.
func (c *connection) afterTurn(s *session) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !c.pause(ctx, c.cfg.Rest) {
		return
	}
	found, ok, err := c.find(ctx, s.id)
	s.mu.Lock()
	if ok && err == nil && s.turn == nil {
		s.updated = found.Updated
	}
	s.mu.Unlock()
	c.mu.Lock()
	unused := s.refs == 0
	c.mu.Unlock()
	if unused {
		c.closeIdle(s)
	}
}

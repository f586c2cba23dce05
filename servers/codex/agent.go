package codex

import (
	"context"
	"sync"
	"unicode/utf8"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// maxInput is the longest prompt the server takes, in characters.
const maxInput = 1 << 20

// agent is one attachment of a thread. It implements [handoff.Agent] and [handoff.Controls].
type agent struct {
	conn   *Conn         // Set once
	thread *thread       // Set once
	once   sync.Once     // closes closed
	closed chan struct{} // Set once, closed by Close
}

// Close ends the attachment. The last one of a thread unsubscribes, which takes 2 s at most.
func (a *agent) Close() error {
	var err error
	a.once.Do(func() {
		close(a.closed)
		err = a.conn.release(a.thread)
	})
	return err
}

// Start gives the thread a turn. On a thread that runs one it starts nothing, because the server would
// put the prompt into that turn and throw away what the agent is saying.
func (a *agent) Start(ctx context.Context, turn handoff.Turn) (handoff.TurnID, error) {
	if utf8.RuneCountInString(turn.Prompt) > maxInput {
		return "", handoff.Fault(handoff.CodeTooLarge, "the prompt", "more than 1048576 characters")
	}
	if err := a.enter(ctx); err != nil {
		return "", a.name().fault(err, handoff.CodeUnreachable, handoff.CodeUnreachable)
	}
	defer a.thread.unlock()
	result, err := a.start(ctx, turn)
	if refusedAs(err, refusedUnloaded) {
		// The server had unloaded the thread and ran nothing, so this is not a second try.
		a.thread.setUnsubscribed()
		if err := a.conn.resume(ctx, a.thread); err != nil {
			return "", err
		}
		result, err = a.start(ctx, turn)
	}
	if err != nil {
		return "", a.name().fault(err, handoff.CodeUnreachable, handoff.CodeUnknownStart)
	}
	return handoff.TurnID(result.Turn.ID), nil
}

// start sends turn/start once. The caller holds the gate.
func (a *agent) start(ctx context.Context, turn handoff.Turn) (*turnResult, error) {
	running, before := a.thread.runs()
	if running != "" {
		return nil, handoff.Fault(handoff.CodeBusy, a.conn.cfg.Name, "")
	}
	params := turnStartParams{
		ThreadID: a.thread.id, Input: textInput(turn.Prompt),
		ClientUserMessageID: turn.ID, AdditionalContext: additionalContext(turn.Context),
	}
	result, err := a.conn.client.turnStart(ctx, params, func(r *turnResult) {
		a.thread.claim(handoff.TurnID(r.Turn.ID), before)
	})
	if err == nil && handoff.TurnID(result.Turn.ID) == before {
		a.conn.log.Warn("start joined a running turn", zap.String("thread", a.thread.id), zap.String("turn", result.Turn.ID))
	}
	return result, err
}

// additionalContext puts what is said beside the prompt into the server's form.
func additionalContext(entries []handoff.Context) map[string]contextEntry {
	if len(entries) == 0 {
		return nil
	}
	m := make(map[string]contextEntry, len(entries))
	for _, e := range entries {
		kind := "untrusted"
		if e.Trusted {
			kind = "application"
		}
		m[e.Key] = contextEntry{Value: e.Value, Kind: kind}
	}
	return m
}

// Steer adds a message to the running turn. What the agent is saying is abandoned and said anew.
func (a *agent) Steer(ctx context.Context, turn handoff.TurnID, text string) error {
	return a.control(ctx, turn, func() error { return a.conn.client.turnSteer(ctx, a.thread.id, string(turn), text) })
}

// Interrupt interrupts a turn. The turn may complete nevertheless: its end tells.
func (a *agent) Interrupt(ctx context.Context, turn handoff.TurnID) error {
	return a.control(ctx, turn, func() error { return a.conn.client.turnInterrupt(ctx, a.thread.id, string(turn)) })
}

// control sends what needs a running turn.
func (a *agent) control(ctx context.Context, turn handoff.TurnID, send func() error) error {
	if turn == "" {
		return handoff.Fault(handoff.CodeNotPending, "", "no turn named")
	}
	err := a.enter(ctx)
	if err == nil {
		err = send()
		a.thread.unlock()
	}
	switch {
	case err == nil:
		return nil
	case refusedAs(err, refusedUnloaded):
		return handoff.Fault(handoff.CodeNotPending, "", "thread not loaded")
	}
	return a.name().fault(err, handoff.CodeAgentGone, handoff.CodeAgentGone)
}

// enter takes the thread's gate for an agent that is not closed.
func (a *agent) enter(ctx context.Context) error {
	if err := a.thread.lock(ctx); err != nil {
		return err
	}
	select {
	case <-a.closed:
		a.thread.unlock()
		return &notSentError{errDetached}
	default:
		return nil
	}
}

// name returns what errors call this server and thread.
func (a *agent) name() naming {
	a.thread.mu.Lock()
	defer a.thread.mu.Unlock()
	return a.conn.name(a.thread.title)
}

package codex

import (
	"context"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
)

// agent is one attachment of a thread. It implements all interfaces that a [handoff.Agent] may implement.
type agent struct {
	conn   *connection   // Set once
	thread *thread       // Set once
	once   sync.Once     // closes closed
	closed chan struct{} // Set once, closed by Close
}

// Close ends the attachment. The last Close of a thread unsubscribes, which takes at most detachTimeout.
func (a *agent) Close() error {
	var err error
	a.once.Do(func() {
		close(a.closed)
		err = a.conn.release(a.thread)
	})
	return err
}

// joinGrace is how long a start waits for the message that began its turn, which comes within 20 ms. The server
// acknowledges two starts that arrive within 10 ms with the same turn; that message says whose the turn is.
const joinGrace = 250 * time.Millisecond

// Start starts a turn in the thread. It fails while a turn runs there, because the server would put the prompt into
// that turn and drop the message that the agent is writing.
func (a *agent) Start(ctx context.Context, turn handoff.Turn) (handoff.TurnID, error) {
	return a.begin(ctx, turn, false)
}

// begin starts a turn, whose words are the goal of the thread, too, if it pursues.
func (a *agent) begin(ctx context.Context, turn handoff.Turn, pursues bool) (handoff.TurnID, error) {
	if err := a.checkStart(turn.Input); err != nil {
		return "", err
	}
	if err := a.enter(ctx); err != nil {
		return "", a.name().fault(err, handoff.CodeUnreachable, handoff.CodeUnreachable)
	}
	defer a.thread.unlock()
	var id handoff.TurnID
	goal := handoff.InputText(turn.Input)
	err := a.withLoaded(ctx, func() (err error) {
		if pursues {
			err = a.checkGoal(ctx, goal)
		}
		if err == nil {
			id, err = a.start(ctx, turn)
		}
		return err
	})
	if err != nil {
		return "", a.name().fault(err, handoff.CodeUnreachable, handoff.CodeUnknownStart)
	}
	a.thread.mu.Lock()
	k := a.thread.findLocked(id)
	foreign := k != nil && k.joined
	a.thread.mu.Unlock()
	if foreign {
		a.conn.log.Warn("start joined a running turn", zap.String("thread", a.thread.id), zap.String("turn", string(id)))
		return id, handoff.Fault(handoff.CodeJoined, a.conn.cfg.Name, "turn "+string(id)+" ran already")
	}
	if pursues {
		a.pursue(ctx, id, goal)
	}
	return id, nil
}

// withLoaded makes sure that the thread is loaded and subscribed, and calls send. If the server says that it has
// unloaded the thread, it has run nothing: then the thread is loaded and send is called again. The caller holds the
// gate.
func (a *agent) withLoaded(ctx context.Context, send func() error) error {
	if a.thread.isSubscribed() {
		err := send()
		if !refusedAs(err, refusedUnloaded) {
			return err
		}
		a.thread.setUnsubscribed()
	}
	if err := a.conn.resume(ctx, a.thread); err != nil {
		return err
	}
	return send()
}

// checkStart returns an error if the thread must not run an input: the input is invalid, or the thread may do more than
// the ceiling.
func (a *agent) checkStart(input []handoff.Part) error {
	if fault := checkInput(input); fault != nil {
		return a.name().fill(fault)
	}
	return a.conn.checkCeiling(a.thread.mayDo())
}

// start sends turn/start once. The caller holds the gate.
func (a *agent) start(ctx context.Context, turn handoff.Turn) (handoff.TurnID, error) {
	if err := a.conn.checkCeiling(a.thread.mayDo()); err != nil { // loading may have changed the policy
		return "", err
	}
	before, busy := a.thread.runs()
	if busy {
		return "", handoff.Fault(handoff.CodeBusy, a.conn.cfg.Name, "")
	}
	params := turnStartParams{
		ThreadID: a.thread.id, Input: wireInput(turn.Input),
		ClientUserMessageID: turn.ID, AdditionalContext: additionalContext(turn.Context),
	}
	result, err := a.conn.client.turnStart(ctx, params, func(r *turnResult) {
		a.thread.claim(handoff.TurnID(r.Turn.ID), before, turn.ID)
	})
	if err != nil {
		return "", err
	}
	id := handoff.TurnID(result.Turn.ID)
	a.awaitOwner(ctx, id)
	return id, nil
}

// additionalContext encodes the context of a prompt for the server.
func additionalContext(entries []handoff.Context) map[string]contextEntry {
	if len(entries) == 0 {
		return nil
	}
	m := make(map[string]contextEntry, len(entries))
	for _, e := range entries {
		kind := "untrusted"
		if e.Trusted {
			kind = "application"
			if e.Key == handoff.DisableResponseThreading { // Codex has no such setting
				continue
			}
		}
		m[e.Key] = contextEntry{Value: e.Value, Kind: kind}
	}
	return m
}

// Steer adds input to the running turn. The agent abandons the message that it is writing, and begins it anew.
func (a *agent) Steer(ctx context.Context, turn handoff.TurnID, input []handoff.Part) error {
	if err := a.checkStart(input); err != nil {
		return err
	}
	turn = a.now(ctx, turn)
	return a.control(ctx, turn,
		func() error { return a.conn.client.turnSteer(ctx, a.thread.id, string(turn), wireInput(input)) })
}

// Interrupt interrupts a turn. The turn may complete nevertheless: its end says so. For some milliseconds after the
// server has acknowledged a turn, it says that none runs (40 of 40 tries). Then Interrupt waits for the first message
// of the turn, and tries again.
func (a *agent) Interrupt(ctx context.Context, turn handoff.TurnID) error {
	turn = a.thread.work(turn)
	halted, err := a.pause(ctx, turn)
	if err != nil { // it has to do that the turn is interrupted
		a.conn.log.Warn("goal not paused", zap.Error(err))
	}
	turn = a.now(ctx, turn)
	send := func() error {
		err := a.conn.client.turnInterrupt(ctx, a.thread.id, string(turn))
		if err == nil {
			a.conn.interruptSubagents(ctx, a.thread, turn)
		}
		return err
	}
	shows := a.thread.shows(turn)
	err = a.control(ctx, turn, send)
	if handoff.CodeOf(err) != handoff.CodeNotPending {
		return err
	}
	if halted { // the last turn for the goal has ended by itself
		return nil
	}
	if a.thread.stopHeld(turn) {
		a.conn.interruptSubagents(ctx, a.thread, turn)
		return nil
	}
	if shows == nil {
		return err
	}
	if shown, _ := a.await(ctx, shows, startGrace); !shown {
		return err
	}
	return a.control(ctx, turn, send)
}

// await waits until done is closed or has a token, but at most for d, unless that is 0, and reports whether done did.
// An error says that ctx, the attachment or the connection has ended.
func (a *agent) await(ctx context.Context, done <-chan struct{}, d time.Duration) (did bool, err error) {
	var timeout <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-done:
		return true, nil
	case <-timeout:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-a.closed:
		return false, errDetached
	case <-a.conn.peer.Done():
		return false, a.conn.peer.Lost()
	}
}

// control calls send, for a request that needs a running turn. If the request was certainly not sent, the error is
// [handoff.CodeUnreachable].
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
	return a.name().fault(err, handoff.CodeUnreachable, handoff.CodeAgentGone)
}

// enter acquires the thread's gate. It fails if the agent is closed.
func (a *agent) enter(ctx context.Context) error {
	if err := a.thread.lock(ctx); err != nil {
		return err
	}
	select {
	case <-a.closed:
		a.thread.unlock()
		return &servers.NotSentError{Cause: errDetached}
	default:
		return nil
	}
}

// name returns the names of this server and thread for errors.
func (a *agent) name() naming {
	a.thread.mu.Lock()
	defer a.thread.mu.Unlock()
	return a.conn.name(a.thread.title)
}

var (
	_ handoff.Agent      = (*agent)(nil)
	_ handoff.Controls   = (*agent)(nil)
	_ handoff.Pursuer    = (*agent)(nil)
	_ handoff.Reconciler = (*agent)(nil)
	_ handoff.Replier    = (*agent)(nil)
)

// maxInput is how many characters of text the server takes in one input.
const maxInput = 1 << 20

// checkInput returns an error for an input that the server cannot take.
func checkInput(input []handoff.Part) *handoff.Error {
	size := 0
	for _, p := range input {
		switch p := p.(type) {
		case handoff.Text:
			size += utf8.RuneCountInString(string(p))
		case handoff.Image:
			if !strings.HasPrefix(p.URL, "data:image/") && !strings.HasPrefix(p.URL, "https://") {
				return handoff.Fault(handoff.CodeMalformed, "a picture needs an address with https: or data:image/", "")
			}
		default:
			return handoff.Fault(handoff.CodeUnsupported, "", "it takes words and pictures")
		}
	}
	if size > maxInput {
		return handoff.Fault(handoff.CodeTooLarge, "the prompt", "more than 1048576 characters")
	}
	return nil
}

// wireInput encodes an input that was checked.
func wireInput(input []handoff.Part) []userInput {
	all := make([]userInput, 0, len(input))
	for _, p := range input {
		switch p := p.(type) {
		case handoff.Text:
			all = append(all, userInput{Type: "text", Text: string(p)})
		case handoff.Image:
			all = append(all, userInput{Type: "image", URL: p.URL})
		}
	}
	return all
}

package handoff

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// A fakeTurn is a run of a thread. Its steps happen while somebody follows it, but for the turns of
// others, which end by the clock.
type fakeTurn struct {
	id     TurnID
	thread string
	plan   []string
	hidden bool            // it has not shown itself
	next   int             // Guarded by the world's mu: steps done
	over   bool            // Guarded by the world's mu
	wake   chan TurnStatus // an interrupt
	final  chan TurnEnded  // holds how it ended, for who follows beside the first
}

func (w *world) addTurn(id TurnID, thread string, plan []string) *fakeTurn {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &fakeTurn{id: id, thread: thread, plan: plan, wake: make(chan TurnStatus, 1), final: make(chan TurnEnded, 1)}
	if len(plan) > 0 && strings.TrimSpace(plan[0]) == "hidden" {
		t.hidden, t.plan = true, plan[1:]
	}
	w.turns[id], w.newest[thread] = t, t
	if strings.HasPrefix(string(id), "theirs-") {
		after, _, _ := strings.Cut(plan[0], " ")
		time.AfterFunc(w.duration(after), func() { w.end(t) })
	}
	return t
}

func (w *world) newTurn(thread, client string) *fakeTurn {
	plan := w.plans[thread]
	if plan == nil {
		plan = w.plans["*"]
	}
	if !slices.Contains(plan, "hidden") || w.settles[thread] != "never" { // else it is a promise that was not kept
		w.traceTurn(client)
	}
	w.mu.Lock()
	w.started++
	id := TurnID(fmt.Sprintf("turn-%d", w.started))
	w.mu.Unlock()
	return w.addTurn(id, thread, plan)
}

func (w *world) end(t *fakeTurn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.over = true
}

func (w *world) turn(id TurnID) *fakeTurn {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.turns[id]
}

// step returns the next step of a turn and counts it as done.
func (w *world) step(t *fakeTurn) (string, int, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.next >= len(t.plan) {
		return "", 0, false
	}
	t.next++
	return strings.TrimSpace(t.plan[t.next-1]), t.next - 1, true
}

// A fakeAgent is one attached thread of a world.
type fakeAgent struct {
	world  *world
	target Target
	lost   atomic.Bool // its connection is gone for good
}

func (a *fakeAgent) name() string { return a.target.Server + " " + a.target.Thread }

func (a *fakeAgent) Start(ctx context.Context, turn Turn) (TurnID, error) {
	w := a.world
	heard := ""
	for _, c := range turn.Context {
		if !c.Trusted {
			heard = fmt.Sprintf(" [%s: %s]", c.Key, c.Value)
		}
	}
	w.record("agent", a.name(), fmt.Sprintf("start %s %q%s", turn.ID, InputText(turn.Input), heard))
	if err := w.wait(ctx, w.start); err != nil {
		return "", err
	}
	if err := w.failure("start "+a.target.Thread, a.target.Server); err != nil {
		if AsError(err).Code == CodeJoined {
			w.traceTurn(turn.ID)
			return w.addTurn("theirs-"+TurnID(a.target.Thread), a.target.Thread, []string{"2s completed Theirs and yours."}).id, err
		}
		return "", err
	}
	if w.merges[a.target.Thread] {
		w.traceTurn(turn.ID)
		return "theirs-" + TurnID(a.target.Thread), nil
	}
	return w.newTurn(a.target.Thread, turn.ID).id, nil
}

func (a *fakeAgent) Follow(ctx context.Context, id TurnID) iter.Seq2[Update, error] {
	w := a.world
	turn := w.turn(id)
	return func(yield func(Update, error) bool) {
		if !turn.hidden && !yield(Started{Turn: id}, nil) {
			return
		}
		for {
			step, n, more := w.step(turn)
			if !more {
				select {
				case end := <-turn.final:
					turn.final <- end
					if w.wait(ctx, 100*time.Millisecond) == nil { // never in the same instant
						yield(end, nil)
					}
				case <-ctx.Done():
				}
				return
			}
			after, rest, _ := strings.Cut(step, " ")
			select {
			case <-time.After(w.duration(after)):
			case <-turn.wake:
				w.end(turn)
				w.record("agent", a.name(), "turn interrupted")
				yield(TurnEnded{Status: TurnInterrupted}, nil)
				return
			case <-ctx.Done(): // who follows next sees it
				w.mu.Lock()
				turn.next--
				w.mu.Unlock()
				return
			}
			if !a.report(ctx, turn, fmt.Sprintf("%s-item-%d", id, n), rest, yield) {
				return
			}
		}
	}
}

func (a *fakeAgent) report(ctx context.Context, turn *fakeTurn, item, step string, yield func(Update, error) bool) bool {
	w := a.world
	verb, text, _ := strings.Cut(step, " ")
	switch verb {
	case "message":
		w.record("agent", a.name(), "says "+text)
		return yield(ItemStarted{Item{ID: item, Kind: ItemMessage}}, nil) && yield(Delta{item, DeltaMessage, text}, nil) &&
			yield(ItemDone{Item{ID: item, Kind: ItemMessage, Text: text}}, nil)
	case "begins":
		w.record("agent", a.name(), "begins "+text)
		return yield(ItemStarted{Item{ID: item, Kind: ItemMessage}}, nil) && yield(Delta{item, DeltaMessage, text}, nil)
	case "drops":
		w.record("agent", a.name(), "drops "+text)
		return yield(ItemDropped{ItemID: text}, nil)
	case "command":
		w.record("agent", a.name(), "runs "+text)
		return yield(ItemDone{Item{ID: item, Kind: ItemCommand, Text: text, Exit: new(0)}}, nil)
	case "again": // what was finished before comes again under its ids
		for i, old := range turn.plan {
			_, done, _ := strings.Cut(strings.TrimSpace(old), " ")
			if words, ok := strings.CutPrefix(done, "message "); ok && !yield(ItemDone{Item{ID: fmt.Sprintf("%s-item-%d", turn.id, i), Kind: ItemMessage, Text: words}}, nil) {
				return false
			}
		}
		return true
	case "long":
		w.end(turn)
		return yield(TurnEnded{Text: strings.Repeat("It <went> \"well\". ", len(text)*500)}, nil) && false
	case "asks":
		w.record("agent", a.name(), "asks: "+text)
		what, secret := strings.CutPrefix(text, "secret ")
		return a.wait(ctx, turn, Question{
			ID: QuestionID(item), Kind: QuestionInput, Words: true, Turn: turn.id, Text: what, Asks: []Ask{{Text: what, Secret: secret}},
			Decisions: []Decision{DecisionDecline}, Asked: time.Now(),
		}, yield)
	case "ask":
		return a.ask(ctx, turn, QuestionID(item), text, yield)
	case "asklost":
		after, command, _ := strings.Cut(text, " ")
		limited, cancel := context.WithTimeout(ctx, w.duration(after))
		defer cancel()
		if a.ask(limited, turn, QuestionID(item), command, yield) || ctx.Err() != nil {
			return false
		}
		w.record("agent", a.name(), "is lost")
		w.mu.Lock()
		delete(w.answers, QuestionID(item))
		w.mu.Unlock()
		yield(nil, Fault(CodeAgentGone, a.target.Server, ""))
		return false
	case "gone":
		w.record("agent", a.name(), "is lost")
		yield(nil, Fault(CodeAgentGone, a.target.Server, ""))
		return false
	case "completed", "failed", "interrupted":
		w.end(turn)
		w.record("agent", a.name(), "turn "+step)
		end := TurnEnded{Status: map[string]TurnStatus{"failed": TurnFailed, "interrupted": TurnInterrupted}[verb], Text: text}
		turn.final <- end
		yield(end, nil)
		return false
	}
	w.t.Errorf("no step %q", step)
	return false
}

func (a *fakeAgent) ask(ctx context.Context, turn *fakeTurn, q QuestionID, command string, yield func(Update, error) bool) bool {
	a.world.record("agent", a.name(), "asks for "+command)
	return a.wait(ctx, turn, Question{
		ID: q, Kind: QuestionCommand, Turn: turn.id, Command: command, Cwd: "/src",
		Decisions: []Decision{DecisionAccept, DecisionDecline}, Asked: time.Now(),
	}, yield)
}

// wait asks and waits for the answer.
func (a *fakeAgent) wait(ctx context.Context, turn *fakeTurn, q Question, yield func(Update, error) bool) bool {
	w := a.world
	answer := make(chan Decision, 1)
	w.mu.Lock()
	w.answers[q.ID] = answer
	w.mu.Unlock()
	if !yield(q, nil) {
		return false
	}
	select {
	case d := <-answer:
		w.record("agent", a.name(), "got "+string(d))
		return yield(QuestionClosed{ID: q.ID}, nil)
	case <-turn.wake:
		w.end(turn)
		w.record("agent", a.name(), "turn interrupted")
		return yield(QuestionClosed{ID: q.ID}, nil) && yield(TurnEnded{Status: TurnInterrupted}, nil) && false
	case <-ctx.Done():
		return false
	}
}

// Reply answers a question in words.
func (a *fakeAgent) Reply(ctx context.Context, id QuestionID, words string) error {
	return a.Decide(ctx, id, Decision("words: "+words))
}

func (a *fakeAgent) Close() error {
	a.world.record("agent", a.name(), "detach")
	return nil
}

func (a *fakeAgent) Steer(_ context.Context, id TurnID, input []Part) error {
	a.world.record("agent", a.name(), fmt.Sprintf("steer %s %q", id, InputText(input)))
	if err := a.world.failure("steer "+a.target.Thread, a.target.Server); err != nil {
		return err
	}
	a.world.traceSteer(InputText(input))
	return nil
}

func (a *fakeAgent) Interrupt(_ context.Context, id TurnID) error {
	a.world.record("agent", a.name(), "interrupt "+string(id))
	if err := a.world.failure("interrupt "+a.target.Thread, a.target.Server); err != nil {
		return err
	}
	select {
	case a.world.turn(id).wake <- TurnInterrupted:
	default:
	}
	return nil
}

func (a *fakeAgent) Decide(_ context.Context, q QuestionID, d Decision) error {
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	if a.world.answers[q] == nil {
		return Fault(CodeNotPending, "", "")
	}
	a.world.answers[q] <- d
	delete(a.world.answers, q)
	return nil
}

// A settlingAgent can tell what became of a start.
type settlingAgent struct{ *fakeAgent }

func (a settlingAgent) Settle(_ context.Context, after TurnID, id string) (TurnID, error) {
	w := a.world
	w.record("agent", a.name(), strings.TrimSpace(fmt.Sprintf("settle %s after %s", id, after)))
	w.mu.Lock()
	newest := w.newest[a.target.Thread]
	w.mu.Unlock()
	switch w.settles[a.target.Thread] {
	case "found":
		if newest != nil && newest.id != after {
			return newest.id, nil
		}
		return w.newTurn(a.target.Thread, id).id, nil
	case "never":
		return "", nil
	}
	return "", Fault(CodeAgentGone, a.target.Server, "")
}

// A queueingAgent has a queue.
type queueingAgent struct{ *fakeAgent }

func (a queueingAgent) Queue(_ context.Context, turn Turn) error {
	w := a.world
	w.record("agent", a.name(), fmt.Sprintf("queue %s %q", turn.ID, InputText(turn.Input)))
	if err := w.failure("queue "+a.target.Thread, a.target.Server); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue[a.target.Thread] = turn.ID
	return nil
}

func (a queueingAgent) Unqueue(_ context.Context, id string) error {
	w := a.world
	w.record("agent", a.name(), "unqueue "+id)
	if a.lost.Load() {
		return Fault(CodeAgentGone, a.target.Server, "")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue[a.target.Thread] != id {
		return Fault(CodeNotPending, a.target.Server, "")
	}
	delete(w.queue, a.target.Thread)
	return nil
}

func (a queueingAgent) Await(ctx context.Context, id string) (TurnID, error) {
	w := a.world
	w.record("agent", a.name(), "await "+id)
	if err := w.failure("hold "+a.target.Thread, a.target.Server); err != nil {
		a.lost.Store(true)
		return "", err
	}
	for {
		w.mu.Lock()
		running, queued := w.newest[a.target.Thread], w.queue[a.target.Thread]
		free := running == nil || running.over
		w.mu.Unlock()
		switch {
		case queued != id:
			return "", Fault(CodeNotPending, a.target.Server, "")
		case free && w.failure("await "+a.target.Thread, "") != nil: // somebody else was faster, and theirs took it in
			w.traceTurn(id)
			return w.addTurn("theirs-later", a.target.Thread, []string{"2s completed Theirs and yours."}).id, Fault(CodeJoined, a.target.Server, "")
		case free:
			return w.newTurn(a.target.Thread, id).id, nil
		}
		if err := w.wait(ctx, 100*time.Millisecond); err != nil {
			return "", err
		}
	}
}

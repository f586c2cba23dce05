package call

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/call/calltest"
)

// A fakeTurn is a run of a thread. Its steps happen while somebody follows it, but for the turns of
// others, which end by the clock.
type fakeTurn struct {
	ID     handoff.TurnID
	thread string
	plan   []string
	hidden bool                          // it has not shown itself
	next   int                           // Guarded by the world's mu: steps done
	over   bool                          // Guarded by the world's mu
	left   []string                      // Guarded by the world's mu: words that it took and did not hear
	lost   map[string]handoff.QuestionID // Owned by who follows: what was asked over a lost connection, by command
	wake   chan handoff.TurnStatus       // an interrupt
	final  chan handoff.TurnEnded        // holds how it ended, for who follows beside the first
}

func (w *world) addTurn(id handoff.TurnID, thread string, plan []string) *fakeTurn {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &fakeTurn{ID: id, thread: thread, plan: plan, wake: make(chan handoff.TurnStatus, 1),
		final: make(chan handoff.TurnEnded, 1)}
	if len(plan) > 0 && strings.TrimSpace(plan[0]) == "hidden" {
		t.hidden, t.plan = true, plan[1:]
	}
	w.turns[id], w.newest[thread] = t, t
	if strings.HasPrefix(string(id), "theirs-") {
		after, _, _ := strings.Cut(plan[0], " ")
		time.AfterFunc(w.Duration(after), func() { w.end(t) })
	}
	return t
}

func (w *world) newTurn(thread, client string) *fakeTurn {
	plan := w.Plans[thread]
	if plan == nil {
		plan = w.Plans["*"]
	}
	if !slices.Contains(plan, "hidden") || w.reconciles[thread] != "never" { // else it is a promise that was not kept
		w.traceTurn(client)
	}
	w.mu.Lock()
	w.started++
	id := handoff.TurnID(fmt.Sprintf("turn-%d", w.started))
	w.mu.Unlock()
	return w.addTurn(id, thread, plan)
}

func (w *world) end(t *fakeTurn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.over = true
}

func (w *world) turn(id handoff.TurnID) *fakeTurn {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.turns[id]
}

// Step returns the next step of a turn and counts it as done.
func (w *world) Step(t *fakeTurn) (string, int, bool) {
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
	target handoff.Target
}

func (a *fakeAgent) name() string { return a.target.Server + " " + a.target.Thread }

func (a *fakeAgent) Start(ctx context.Context, turn handoff.Turn) (handoff.TurnID, error) {
	return a.start(ctx, "start", turn)
}

// Pursue implements [handoff.Pursuer].
func (a *fakeAgent) Pursue(ctx context.Context, turn handoff.Turn) (handoff.TurnID, error) {
	if err := a.world.Failure("pursue "+a.target.Thread, a.target.Server); err != nil {
		return "", err
	}
	return a.start(ctx, "pursue", turn)
}

func (a *fakeAgent) start(ctx context.Context, how string, turn handoff.Turn) (handoff.TurnID, error) {
	w := a.world
	var heard strings.Builder
	for _, c := range turn.Context {
		if !c.Trusted {
			fmt.Fprintf(&heard, " [%s: %s]", c.Key, c.Value)
		}
	}
	w.Record("agent", a.name(), fmt.Sprintf("%s %s %q%s", how, turn.ID, handoff.InputText(turn.Input), heard.String()))
	if err := w.Wait(ctx, w.StartTakes); err != nil {
		return "", err
	}
	if err := w.Failure("start "+a.target.Thread, a.target.Server); err != nil {
		if handoff.CodeOf(err) == handoff.CodeJoined {
			w.traceTurn(turn.ID)
			return w.addTurn("theirs-"+handoff.TurnID(a.target.Thread), a.target.Thread,
				[]string{"2s completed Theirs and yours."}).ID, err
		}
		return "", err
	}
	if w.merges[a.target.Thread] {
		w.traceTurn(turn.ID)
		return "theirs-" + handoff.TurnID(a.target.Thread), nil
	}
	return w.newTurn(a.target.Thread, turn.ID).ID, nil
}

func (a *fakeAgent) Follow(ctx context.Context, id handoff.TurnID) iter.Seq2[handoff.Update, error] {
	w := a.world
	turn := w.turn(id)
	return func(yield func(handoff.Update, error) bool) {
		if !turn.hidden && !yield(handoff.Started{Turn: id}, nil) {
			return
		}
		for {
			step, n, more := w.Step(turn)
			if !more {
				if n := len(turn.plan); n > 0 && strings.HasSuffix(turn.plan[n-1], "missing") { // nobody else finds it either
					yield(nil, handoff.Fault(handoff.CodeTurnGone, a.target.Server, ""))
					return
				}
				select {
				case end := <-turn.final:
					turn.final <- end
					if w.Wait(ctx, 100*time.Millisecond) == nil { // never in the same instant
						yield(end, nil)
					}
				case <-ctx.Done():
				}
				return
			}
			after, rest, _ := strings.Cut(step, " ")
			select {
			case <-calltest.After(w.Duration(after)):
			case <-turn.wake:
				w.end(turn)
				w.Record("agent", a.name(), "turn interrupted")
				w.mu.Lock()
				end := handoff.TurnEnded{Status: handoff.TurnInterrupted, Undelivered: turn.left}
				w.mu.Unlock()
				turn.final <- end
				yield(end, nil)
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

func (a *fakeAgent) report(
	ctx context.Context, turn *fakeTurn, item, step string, yield func(handoff.Update, error) bool,
) bool {
	w := a.world
	verb, text, _ := strings.Cut(step, " ")
	switch verb {
	case "message":
		w.Record("agent", a.name(), "says "+text)
		return yield(handoff.ItemStarted{Item: handoff.Item{ID: item, Kind: handoff.ItemMessage}}, nil) &&
			yield(handoff.Delta{ItemID: item, Kind: handoff.DeltaMessage, Text: text}, nil) &&
			yield(handoff.ItemDone{Item: handoff.Item{ID: item, Kind: handoff.ItemMessage, Text: text}}, nil)
	case "begins":
		w.Record("agent", a.name(), "begins "+text)
		return yield(handoff.ItemStarted{Item: handoff.Item{ID: item, Kind: handoff.ItemMessage}}, nil) &&
			yield(handoff.Delta{ItemID: item, Kind: handoff.DeltaMessage, Text: text}, nil)
	case "drops":
		w.Record("agent", a.name(), "drops "+text)
		return yield(handoff.ItemDropped{ItemID: text}, nil)
	case "command":
		w.Record("agent", a.name(), "runs "+text)
		return yield(handoff.ItemDone{Item: handoff.Item{ID: item, Kind: handoff.ItemCommand, Text: text, Exit: new(0)}}, nil)
	case "goes": // on with the goal of its session
		w.Record("agent", a.name(), "goes on with its goal")
		return yield(handoff.GoesOn{}, nil)
	case "again": // what was finished before comes again under its ids
		return turn.tellAgain(yield)
	case "long":
		w.end(turn)
		return yield(handoff.TurnEnded{Text: strings.Repeat("It <went> \"well\". ", len(text)*500)}, nil) && false
	case "asks":
		w.Record("agent", a.name(), "asks: "+text)
		what, secret := strings.CutPrefix(text, "secret ")
		return a.wait(ctx, turn, handoff.Question{
			ID: handoff.QuestionID(item), Kind: handoff.QuestionInput, Words: true, Turn: turn.ID, Text: what,
			Asks:      []handoff.Ask{{Text: what, Secret: secret}},
			Decisions: []handoff.Decision{handoff.DecisionDecline}, Asked: time.Now(),
		}, yield)
	case "form", "choose": // FIELD [one, two] many may / FIELD; COMMAND = one, two
		w.Record("agent", a.name(), verb+": "+text)
		q := handoff.Question{ID: handoff.QuestionID(item), Words: true, Turn: turn.ID, Asked: time.Now(),
			Kind: handoff.QuestionInput, Text: "Please say.", Decisions: []handoff.Decision{handoff.DecisionDecline}}
		for field := range strings.SplitSeq(text, " / ") {
			what, more, _ := strings.Cut(field, " [")
			options, how, _ := strings.Cut(more, "]")
			q.Asks = append(q.Asks, handoff.Ask{Text: what, Options: strings.FieldsFunc(options, func(r rune) bool { return r == '|' }),
				Only: options != "", Many: strings.Contains(how, "many"), Optional: strings.Contains(how, "may")})
		}
		if verb == "choose" {
			q.Kind, q.Command, q.Cwd, q.Text = handoff.QuestionCommand, q.Asks[0].Text, "/src", "How may this command run?"
			q.Asks[0].Text = q.Text
		}
		return a.wait(ctx, turn, q, yield)
	case "ask":
		return a.ask(ctx, turn, turn.question(item, text), item, text, yield)
	case "asklost":
		after, command, _ := strings.Cut(text, " ")
		limited, cancel := context.WithTimeout(ctx, w.Duration(after))
		defer cancel()
		if a.ask(limited, turn, handoff.QuestionID(item), item, command, yield) || ctx.Err() != nil || limited.Err() == nil {
			return false
		}
		turn.lost = map[string]handoff.QuestionID{command: handoff.QuestionID(item)}
		w.Record("agent", a.name(), "is lost")
		w.mu.Lock()
		delete(w.answers, handoff.QuestionID(item))
		w.mu.Unlock()
		yield(nil, handoff.Fault(handoff.CodeAgentGone, a.target.Server, ""))
		return false
	case "gone":
		w.Record("agent", a.name(), "is lost")
		yield(nil, handoff.Fault(handoff.CodeAgentGone, a.target.Server, ""))
		return false
	case "missing":
		w.end(turn)
		w.Record("agent", a.name(), "does not hold the turn")
		yield(nil, handoff.Fault(handoff.CodeTurnGone, a.target.Server, ""))
		return false
	case "completed", "failed", "interrupted", "unread", "goal": // GOAL TEXT: it completes, and its goal stands so
		w.end(turn)
		w.Record("agent", a.name(), "turn "+step)
		end := handoff.TurnEnded{Status: map[string]handoff.TurnStatus{"failed": handoff.TurnFailed,
			"interrupted": handoff.TurnInterrupted}[verb], Text: text}
		switch verb {
		case "unread":
			end.Code = handoff.CodeUnread
		case "goal":
			stands, words, _ := strings.Cut(text, " ")
			end.Goal, end.Text = handoff.Goal(stands), words
		}
		turn.final <- end
		yield(end, nil)
		return false
	}
	w.T.Errorf("no step %q", step)
	return false
}

// tellAgain reports the messages of a turn once more.
func (t *fakeTurn) tellAgain(yield func(handoff.Update, error) bool) bool {
	for i, old := range t.plan {
		_, done, _ := strings.Cut(strings.TrimSpace(old), " ")
		if words, ok := strings.CutPrefix(done, "message "); ok &&
			!yield(handoff.ItemDone{Item: handoff.Item{ID: fmt.Sprintf("%s-item-%d", t.ID, i), Kind: handoff.ItemMessage,
				Text: words}}, nil) {
			return false
		}
	}
	return true
}

// question names what an item asks: over another connection, the same is asked again.
func (t *fakeTurn) question(item, command string) handoff.QuestionID {
	if id, again := t.lost[command]; again {
		delete(t.lost, command)
		return id
	}
	return handoff.QuestionID(item)
}

func (a *fakeAgent) ask(
	ctx context.Context, turn *fakeTurn, q handoff.QuestionID, connection, command string,
	yield func(handoff.Update, error) bool,
) bool {
	a.world.Record("agent", a.name(), "asks for "+command)
	return a.wait(ctx, turn, handoff.Question{
		ID: q, Connection: connection, Kind: handoff.QuestionCommand, Turn: turn.ID, Command: command, Cwd: "/src",
		Decisions: []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline}, Asked: time.Now(),
	}, yield)
}

// wait asks and waits for the answer.
func (a *fakeAgent) wait(
	ctx context.Context, turn *fakeTurn, q handoff.Question, yield func(handoff.Update, error) bool,
) bool {
	w := a.world
	answer := make(chan handoff.Decision, 1)
	w.mu.Lock()
	w.answers[q.ID] = answer
	w.mu.Unlock()
	if !yield(q, nil) {
		return false
	}
	select {
	case d := <-answer:
		w.Record("agent", a.name(), "got "+string(d))
		return yield(handoff.QuestionClosed{ID: q.ID}, nil)
	case <-turn.wake:
		w.end(turn)
		w.Record("agent", a.name(), "turn interrupted")
		end := handoff.TurnEnded{Status: handoff.TurnInterrupted}
		turn.final <- end
		return yield(handoff.QuestionClosed{ID: q.ID}, nil) && yield(end, nil) && false
	case <-ctx.Done():
		return false
	}
}

// Reply answers a question in words.
func (a *fakeAgent) Reply(ctx context.Context, id handoff.QuestionID, answers [][]string) error {
	var lines []string
	for _, answer := range answers {
		lines = append(lines, strings.Join(answer, " + "))
	}
	return a.Decide(ctx, id, handoff.Decision("words: "+strings.Join(lines, "; ")))
}

func (a *fakeAgent) Close() error {
	a.world.Record("agent", a.name(), "detach")
	return nil
}

func (a *fakeAgent) Steer(_ context.Context, id handoff.TurnID, input []handoff.Part) error {
	a.world.Record("agent", a.name(), fmt.Sprintf("steer %s %q", id, handoff.InputText(input)))
	if err := a.world.Failure("steer "+a.target.Thread, a.target.Server); err != nil {
		return err
	}
	a.world.traceSteer(handoff.InputText(input))
	if a.world.deaf[a.target.Thread] {
		turn := a.world.turn(id)
		a.world.mu.Lock()
		defer a.world.mu.Unlock()
		turn.left = append(turn.left, handoff.InputText(input))
	}
	return nil
}

func (a *fakeAgent) Interrupt(_ context.Context, id handoff.TurnID) error {
	a.world.Record("agent", a.name(), "interrupt "+string(id))
	if err := a.world.Failure("interrupt "+a.target.Thread, a.target.Server); err != nil {
		return err
	}
	select {
	case a.world.turn(id).wake <- handoff.TurnInterrupted:
	default:
	}
	return nil
}

func (a *fakeAgent) Decide(_ context.Context, q handoff.QuestionID, d handoff.Decision) error {
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	if a.world.answers[q] == nil {
		return handoff.Fault(handoff.CodeNotPending, "", "")
	}
	a.world.answers[q] <- d
	delete(a.world.answers, q)
	return nil
}

// A reconcilingAgent can tell what became of a start.
type reconcilingAgent struct{ *fakeAgent }

func (a reconcilingAgent) Reconcile(_ context.Context, after handoff.TurnID, id string) (handoff.TurnID, error) {
	w := a.world
	w.Record("agent", a.name(), strings.TrimSpace(fmt.Sprintf("reconcile %s after %s", id, after)))
	w.mu.Lock()
	newest := w.newest[a.target.Thread]
	w.mu.Unlock()
	switch w.reconciles[a.target.Thread] {
	case "found":
		if newest != nil && newest.ID != after {
			return newest.ID, nil
		}
		return w.newTurn(a.target.Thread, id).ID, nil
	case "never":
		return "", nil
	}
	return "", handoff.Fault(handoff.CodeAgentGone, a.target.Server, "")
}

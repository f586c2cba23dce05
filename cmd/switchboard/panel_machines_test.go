package main

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/call/calltest"
)

// panelMachines are the machines of a conversation. Each turn in a thread takes the steps that the script has for it:
// "8s completed TEXT", "8s failed" and "3s ask COMMAND", which waits for an answer.
type panelMachines struct{ *calltest.World }

// newPanelMachines reads the part "world" of a conversation.
func newPanelMachines(t *testing.T, words []string) panelMachines {
	t.Helper()
	w := panelMachines{calltest.NewWorld(t)}
	w.Machines = w
	for _, line := range words {
		if !w.Word(line) {
			t.Fatalf("the world has no word %q", line)
		}
	}
	return w
}

// Known implements [calltest.Machines].
func (w panelMachines) Known(_ context.Context, t handoff.Target) (handoff.Attached, error) {
	plan := w.Plans[t.Thread]
	if plan == nil {
		plan = w.Plans["*"]
	}
	return handoff.Attached{Workspace: "/src", Agent: &panelAgent{world: w.World, plan: plan,
		stopped: make(chan struct{}, 1), answered: make(chan handoff.Decision, 1)}}, nil
}

// Make implements [calltest.Machines].
func (w panelMachines) Make(ctx context.Context, t handoff.Target, _ bool) (handoff.Attached, error) {
	return w.Known(ctx, t)
}

// Copy implements [calltest.Machines].
func (w panelMachines) Copy(_ context.Context, from handoff.Target, _ handoff.TurnID, _ handoff.Target) (handoff.Attached, error) {
	return handoff.Attached{}, handoff.Fault(handoff.CodeUnsupported, from.Server, "")
}

// A panelAgent is an attached thread. Its turn goes on while it is followed.
type panelAgent struct {
	world    *calltest.World
	plan     []string
	stopped  chan struct{}
	answered chan handoff.Decision
}

// Start implements [handoff.Agent].
func (a *panelAgent) Start(ctx context.Context, turn handoff.Turn) (handoff.TurnID, error) {
	return handoff.TurnID("turn of " + turn.ID), a.world.Wait(ctx, a.world.StartTakes)
}

// Follow implements [handoff.Agent].
func (a *panelAgent) Follow(ctx context.Context, id handoff.TurnID) iter.Seq2[handoff.Update, error] {
	return func(yield func(handoff.Update, error) bool) {
		tell := func(u handoff.Update) bool { return yield(u, nil) }
		goes := tell(handoff.Started{Turn: id})
		for n := 0; goes && n < len(a.plan); n++ {
			after, rest, _ := strings.Cut(strings.TrimSpace(a.plan[n]), " ")
			select {
			case <-calltest.After(a.world.Duration(after)):
				goes = a.step(ctx, id, rest, tell)
			case <-a.stopped:
				goes = tell(handoff.TurnEnded{Status: handoff.TurnInterrupted}) && false
			case <-ctx.Done():
				goes = false
			}
		}
	}
}

// step does what a step says, and reports whether the turn goes on.
func (a *panelAgent) step(ctx context.Context, id handoff.TurnID, step string, tell func(handoff.Update) bool) bool {
	switch verb, text, _ := strings.Cut(step, " "); verb {
	case "ask":
		q := handoff.Question{ID: "question of " + handoff.QuestionID(id), Kind: handoff.QuestionCommand, Turn: id,
			Command: text, Cwd: "/src", Asked: time.Now(),
			Decisions: []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline}}
		if !tell(q) {
			return false
		}
		select {
		case <-a.answered:
			return tell(handoff.QuestionClosed{ID: q.ID})
		case <-a.stopped:
			return tell(handoff.TurnEnded{Status: handoff.TurnInterrupted}) && false
		case <-ctx.Done():
			return false
		}
	case "completed":
		return tell(handoff.ItemDone{Item: handoff.Item{ID: "answer of " + string(id), Kind: handoff.ItemMessage, Text: text}}) &&
			tell(handoff.TurnEnded{Status: handoff.TurnCompleted, Text: text}) && false
	case "failed":
		return tell(handoff.TurnEnded{Status: handoff.TurnFailed, Detail: "out of luck"}) && false
	}
	a.world.T.Errorf("no step %q", step)
	return false
}

// Close implements [handoff.Agent].
func (a *panelAgent) Close() error { return nil }

// Steer implements [handoff.Controls].
func (a *panelAgent) Steer(context.Context, handoff.TurnID, []handoff.Part) error { return nil }

// Interrupt implements [handoff.Controls].
func (a *panelAgent) Interrupt(context.Context, handoff.TurnID) error {
	a.stopped <- struct{}{}
	return nil
}

// Decide implements [handoff.Controls].
func (a *panelAgent) Decide(_ context.Context, _ handoff.QuestionID, d handoff.Decision) error {
	a.answered <- d
	return nil
}

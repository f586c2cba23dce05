package acp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/handoff"
	"switchboard/servers/jsonrpc"
	"switchboard/servers/serverstest"
	machine "switchboard/servers/simulator"
)

// TestCancelHitsNoOther: a cancel names no prompt, so the look at which one runs and the sending of the cancel are one
// act. If the next prompt is sent before, the stop of the earlier one is refused, and nothing is cancelled.
func TestCancelHitsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := create(t, linkTo(t, dialer(t, newWorld(profiles["branching"]), nil)))
		id := start(t, a, serverstest.PromptAsk)
		follow(t, a, id, isQuestion)
		s := a.Agent.(*agent).session
		become := func(k *turn) (was *turn) {
			s.mu.Lock()
			defer s.mu.Unlock()
			was, s.turn = s.turn, k
			return was
		}
		s.sending <- struct{}{} // the next prompt is being sent
		stopped := make(chan error, 1)
		go func() { stopped <- a.Agent.(handoff.Controls).Interrupt(t.Context(), id) }()
		synctest.Wait()
		first := become(s.newTurn("next"))
		<-s.sending
		wantCode(t, "stop", <-stopped, handoff.CodeNotPending)
		become(first)
		synctest.Wait()
		if s.isIdle() || first.stopped {
			t.Fatal("the agent was told to cancel")
		}
		must(t, a.Agent.(handoff.Controls).Interrupt(t.Context(), id))
		if e := end(t, follow(t, a, id, nil)); e.Status != handoff.TurnInterrupted {
			t.Errorf("it ended as %+v", e)
		}
	})
}

// TestRefusedLate: a prompt that is refused after Start has returned has ended, also for who looks for it later.
func TestRefusedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := create(t, linkTo(t, dialer(t, scripted(profiles["branching"], machine.Pause{For: time.Minute}), nil)))
		id, s := start(t, a, "go"), a.Agent.(*agent).session
		s.answered(s.turn, jsonrpc.Reply{Err: &jsonrpc.Error{Code: codeBadParams, Message: "no such model"}})
		if found, err := a.Agent.(handoff.Reconciler).Reconcile(t.Context(), "", string(id)); found != id || err != nil {
			t.Errorf("found %q, %v", found, err)
		}
		if e := end(t, follow(t, a, id, nil)); e.Status != handoff.TurnFailed || e.Code != handoff.CodeRefused {
			t.Errorf("ended with %+v", e)
		}
	})
}

// TestEndedCallsAreLetGo: of a call that has ended, only its item is kept, which nothing changes any more.
func TestEndedCallsAreLetGo(t *testing.T) {
	a := create(t, linkTo(t, dialer(t, newWorld(profiles["branching"]), nil)))
	id := start(t, a, serverstest.PromptCommand)
	follow(t, a, id, nil)
	s := a.Agent.(*agent).session
	before := s.history.items(id)
	for name, c := range s.turns[0].calls {
		s.handleUpdate(&update{Kind: "tool_call_update", toolCall: toolCall{ID: name, Status: "failed", Input: []byte(`{"a":1}`)}})
		if c.Input != nil || c.Output != nil || c.content != nil || c.printed != "" {
			t.Errorf("kept %+v", c)
		}
	}
	if after := s.history.items(id); len(s.turns[0].calls) == 0 || !cmp.Equal(before, after) {
		t.Errorf("it was %+v, and is %+v", before, after)
	}
}

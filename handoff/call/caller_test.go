package call

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/call/calltest"
	"switchboard/handoff/router"
	"switchboard/handoff/tools"
)

// TestCallersAreApart holds that nothing of one caller is seen or touched by another.
func TestCallersAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "server bigpc\nsticky bigpc t1 Auth\nturn t1 1s ask rm -rf; 1s completed Done.")
		r, calls := service(router.Config{Fleet: w, Stickies: w, Life: "h"}, w)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { done <- r.Run(ctx) }()
		v := calltest.NewVoice(w.World, "call 1", false, w.record)
		go func() { done <- calls.Serve(ctx, calltest.Grant, v) }()
		v.Send(handoff.FunctionCall{CallID: "c1", Tool: tools.Codex, Arguments: `{"server":"bigpc","prompt":"x"}`})
		synctest.Wait()
		for len(r.Questions(calltest.Grant)) == 0 {
			synctest.Wait()
			<-timeAfter(100)
		}
		other := handoff.Grant{Caller: handoff.Caller{Principal: "owner", User: "somebody"}, Approve: handoff.ApproveAll,
			Page: true}
		id := r.Questions(calltest.Grant)[0].ID
		if err := r.Decide(ctx, other, id, handoff.DecisionAccept); handoff.AsError(err).Code != handoff.CodeNotPending {
			t.Errorf("a foreign question: %v", err)
		}
		if err := r.Stop(ctx, other, "h-1"); handoff.AsError(err).Code != handoff.CodeNotFound {
			t.Errorf("a foreign work: %v", err)
		}
		if _, err := r.Handoff(other, "h-1"); handoff.AsError(err).Code != handoff.CodeNotFound {
			t.Errorf("a foreign record: %v", err)
		}
		if theirs, _ := r.Handoffs(other); len(theirs)+len(r.Questions(other)) != 0 || r.Feed(other).Last() != 0 {
			t.Error("something of another caller is shown")
		}
		if rec, err := r.Handoff(calltest.Grant, "h-1"); err != nil || rec.State != handoff.StatusStarted {
			t.Errorf("own record: %+v, %v", rec, err)
		}
		r.ServersChanged()
		v.Send(handoff.CallEnded{})
		v.End()
		cancel()
		<-done
		<-done
	})
}

// TestEventsEndWithoutGoodbye holds that a voice that just closes its events has ended its call.
func TestEventsEndWithoutGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "server bigpc\nsticky bigpc t1 Auth\nturn t1 9s completed Done.")
		r, calls := service(router.Config{Fleet: w, Stickies: w}, w)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { done <- r.Run(ctx) }()
		v := calltest.NewVoice(w.World, "call 1", false, w.record)
		go func() { done <- calls.Serve(ctx, calltest.Grant, v) }()
		v.Send(handoff.FunctionCall{CallID: "c1", Tool: tools.Codex, Arguments: `{"server":"bigpc","prompt":"x"}`})
		<-timeAfter(3000)
		v.End()
		<-done
		<-timeAfter(20000)
		if got, _ := r.Handoffs(calltest.Grant); len(got) != 1 || got[0].Outcome != handoff.OutcomeResult ||
			got[0].State != handoff.StatusCompleted {
			t.Errorf("unheard: %+v", got)
		}
		cancel()
		<-done
	})
}

func timeAfter(ms int) <-chan time.Time { return time.After(time.Duration(ms) * time.Millisecond) }

// TestGrantedCall: in a call, a tool that the grant lacks does not exist, and what the caller made is nobody
// else's.
func TestGrantedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "server bigpc\nturn t1 100ms completed Done.")
		owners := router.NewOwners(nil)
		r, calls := service(router.Config{Fleet: w, Stickies: w, Owners: owners, Life: "h"}, w)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { done <- r.Run(ctx) }()
		v := &hastyVoice{events: make(chan handoff.Event)}
		g := handoff.Grant{Caller: calltest.Grant.Caller, Tools: []string{tools.Codex}}
		go func() { done <- calls.Serve(ctx, g, v) }()
		for i, tool := range []string{tools.ListServers, tools.Status, tools.AnswerAgent, tools.RemainSilent, "shell"} {
			v.events <- handoff.FunctionCall{CallID: fmt.Sprint("no", i), Tool: tool, Arguments: `{}`}
		}
		v.events <- handoff.FunctionCall{CallID: "yes", Tool: tools.Codex,
			Arguments: `{"server":"bigpc","thread_id":"new","prompt":"x"}`}
		time.Sleep(time.Minute)
		v.mu.Lock()
		refused := 0
		for _, u := range v.said {
			if strings.HasPrefix(u.CallID, "no") && strings.Contains(u.Text, "there is no tool") {
				refused++
			}
		}
		v.mu.Unlock()
		if refused != 5 {
			t.Errorf("%d of 5 refused", refused)
		}
		rec := handoff.Record{}
		all, _ := r.Handoffs(g)
		for _, rec = range all {
		}
		if rec.ThreadID == "" || rec.Why != handoff.WhyNew {
			t.Fatalf("no thread was made: %+v", rec)
		}
		mine, bob := calltest.Grant.Caller, handoff.Caller{Principal: "owner", User: "bob"}
		if owners.Hidden(mine, "bigpc", rec.ThreadID) || !owners.Hidden(bob, "bigpc", rec.ThreadID) ||
			owners.Hidden(handoff.Caller{Principal: "bob"}, "bigpc", "another") {
			t.Error("who sees the thread is wrong")
		}
		elsewhere := handoff.Grant{Caller: calltest.Grant.Caller, Servers: []string{"laptop"}}
		if shown, _ := r.Handoffs(elsewhere); len(shown) != 0 {
			t.Error("work of a machine that may not be used is shown")
		}
		if _, err := r.Handoff(elsewhere, rec.ID); handoff.AsError(err).Code != handoff.CodeNotFound {
			t.Errorf("it can be read: %v", err)
		}
		if err := r.Stop(ctx, elsewhere, rec.ID); handoff.AsError(err).Code != handoff.CodeNotFound {
			t.Errorf("it can be stopped: %v", err)
		}
		if list, err := r.Stickies(ctx, elsewhere); err != nil || len(list) != 0 {
			t.Errorf("its sticky is shown: %v %v", list, err)
		}
		if err := r.ClearSticky(ctx, elsewhere, "bigpc"); handoff.AsError(err).Code != handoff.CodeNotFound {
			t.Errorf("its sticky can be cleared: %v", err)
		}
		v.events <- handoff.CallEnded{}
		close(v.events)
		<-done
		cancel()
		<-done
	})
}

// TestRateInACall: what is too much is refused in words, and nothing is begun.
func TestRateInACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "server bigpc\nturn t1 100ms completed Done.\nturn t2 100ms completed Done.")
		r, calls := service(router.Config{Fleet: w, Stickies: w, Life: "h"}, w)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { done <- r.Run(ctx) }()
		v := &hastyVoice{events: make(chan handoff.Event)}
		g := handoff.Grant{Caller: handoff.NamelessCaller("many", "1"), Key: "k",
			KeyLimits: handoff.Limits{HandoffsPerMinute: 1}}
		go func() { done <- calls.Serve(ctx, g, v) }()
		for i := range 3 {
			v.events <- handoff.FunctionCall{CallID: fmt.Sprint("c", i), Tool: tools.Codex,
				Arguments: fmt.Sprintf(`{"server":"bigpc","thread_id":"new","prompt":"job %d"}`, i)}
		}
		time.Sleep(10 * time.Second)
		if begun, _ := r.Handoffs(g); len(begun) != 1 {
			t.Errorf("%d begun", len(begun))
		}
		v.mu.Lock()
		refused := 0
		for _, u := range v.said {
			if strings.Contains(u.Text, `"code":"rate_limit_exceeded"`) &&
				strings.Contains(u.Text, "one piece of work was given") {
				refused++
			}
		}
		v.mu.Unlock()
		if refused != 2 {
			t.Errorf("%d refused", refused)
		}
		if list, err := w.List(ctx, g.Caller); err != nil || len(list) != 0 {
			t.Errorf("stored for who has no name: %v %v", list, err)
		}
		v.events <- handoff.CallEnded{}
		close(v.events)
		<-done
		cancel()
		<-done
	})
}

// What a caller wants to hear is the same by voice and on the page, in a call and before one.
func TestLevel(t *testing.T) {
	c := New(Config{})
	owner, nobody := handoff.Caller{Principal: "owner"}, handoff.NamelessCaller("owner", "1")
	for _, caller := range []handoff.Caller{owner, nobody} {
		if got := c.Level(t.Context(), caller); got != handoff.LevelMilestones {
			t.Errorf("at first: %s", got)
		}
		if err := c.SetLevel(t.Context(), caller, handoff.LevelQuiet); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.Level(t.Context(), owner); got != handoff.LevelQuiet {
		t.Errorf("then: %s", got)
	}
	if got := c.enter(t.Context(), owner, nil); got != handoff.LevelQuiet {
		t.Errorf("in a call: %s", got)
	}
	if got := c.Level(t.Context(), nobody); got != handoff.LevelMilestones {
		t.Errorf("of nobody: %s", got)
	}
}

// keptLevels is a store of what callers want to hear.
type keptLevels map[handoff.Caller]handoff.SpeechLevel

func (k keptLevels) Level(_ context.Context, c handoff.Caller) (handoff.SpeechLevel, error) {
	return k[c], nil
}

func (k keptLevels) SetLevel(_ context.Context, c handoff.Caller, level handoff.SpeechLevel) error {
	k[c] = level
	return nil
}

// What a caller wants to hear outlives the process, unless they have no name.
func TestLevelIsKept(t *testing.T) {
	kept := keptLevels{}
	owner, nobody := handoff.Caller{Principal: "owner"}, handoff.NamelessCaller("owner", "1")
	for _, caller := range []handoff.Caller{owner, nobody} {
		if err := New(Config{Levels: kept}).SetLevel(t.Context(), caller, handoff.LevelQuiet); err != nil {
			t.Fatal(err)
		}
	}
	next := New(Config{Levels: kept})
	if page, call := next.Level(t.Context(), owner), next.enter(t.Context(), owner, nil); page != handoff.LevelQuiet ||
		call != handoff.LevelQuiet {
		t.Errorf("in the next life: %s on the page, %s in a call", page, call)
	}
	if len(kept) != 1 || next.Level(t.Context(), nobody) != handoff.LevelMilestones {
		t.Errorf("kept %v", kept)
	}
}

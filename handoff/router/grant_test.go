package router

import (
	"context"
	"fmt"
	"strings"
	"switchboard/handoff"
	"switchboard/handoff/tools"
	"testing"
	"testing/synctest"
	"time"
)

// TestMayEnd: a call is ended by its caller; one that nobody named by whoever has its key.
func TestMayEnd(t *testing.T) {
	grant := func(principal, user, key string) handoff.Grant {
		return handoff.Grant{Caller: handoff.Caller{Principal: principal, User: user}, Key: key}
	}
	for _, tt := range []struct {
		call, by handoff.Grant
		want     bool
	}{
		{grant("owner", "", "k"), grant("owner", "", "another"), true},
		{grant("owner", "", "k"), grant("other", "", "k"), false},
		{grant("many", "alice", "k"), grant("many", "alice", "k"), true},
		{grant("many", "alice", "k"), grant("many", "bob", "k"), false},
		{grant("many", "alice", "k"), grant("many", "~1", "k"), false},
		{grant("many", "~1", "k"), grant("many", "alice", "k"), false},
		{grant("many", "~1", "k"), grant("many", "~2", "k"), true},
		{grant("many", "~1", "k"), grant("many", "~2", "another"), false},
	} {
		if got := tt.call.MayEnd(tt.by); got != tt.want {
			t.Errorf("%v ended by %v: %v", tt.call.Caller, tt.by.Caller, got)
		}
	}
}

// TestGrantedCall: in a call, a tool that the grant lacks does not exist, and what the caller made is nobody
// else's.
func TestGrantedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "server bigpc\nturn t1 100ms completed Done.")
		r := NewRouter(Config{Fleet: w, Directory: w, Stickies: w, Life: "h"})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { done <- r.Run(ctx) }()
		v := &hastyVoice{events: make(chan handoff.Event)}
		g := handoff.Grant{Caller: ladderCaller, Tools: []string{tools.Codex}}
		go func() { done <- r.Serve(ctx, g, v) }()
		for i, tool := range []string{tools.ListServers, tools.Status, tools.AnswerAgent, tools.RemainSilent, "shell"} {
			v.events <- handoff.Request{CallID: fmt.Sprint("no", i), Tool: tool, Arguments: `{}`}
		}
		v.events <- handoff.Request{CallID: "yes", Tool: tools.Codex, Arguments: `{"server":"bigpc","thread_id":"new","prompt":"x"}`}
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
		for _, rec = range r.Handoffs(g) {
		}
		if rec.ThreadID == "" || rec.Why != handoff.WhyNew {
			t.Fatalf("no thread was made: %+v", rec)
		}
		if r.Hidden(ladderCaller, "bigpc", rec.ThreadID) || !r.Hidden(handoff.Caller{Principal: "owner", User: "bob"}, "bigpc", rec.ThreadID) || r.Hidden(handoff.Caller{Principal: "bob"}, "bigpc", "another") {
			t.Error("who sees the thread is wrong")
		}
		elsewhere := handoff.Grant{Caller: ladderCaller, Servers: []string{"laptop"}}
		if len(r.Handoffs(elsewhere)) != 0 {
			t.Error("work of a machine that may not be used is shown")
		}
		if _, err := r.Handoff(elsewhere, rec.ID); codeOfError(err) != handoff.CodeNotFound {
			t.Errorf("it can be read: %v", err)
		}
		if err := r.Stop(ctx, elsewhere, rec.ID); codeOfError(err) != handoff.CodeNotFound {
			t.Errorf("it can be stopped: %v", err)
		}
		if list, err := r.Stickies(ctx, elsewhere); err != nil || len(list) != 0 {
			t.Errorf("its sticky is shown: %v %v", list, err)
		}
		if err := r.ClearSticky(ctx, elsewhere, "bigpc"); codeOfError(err) != handoff.CodeNotFound {
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
		r := NewRouter(Config{Fleet: w, Directory: w, Stickies: w, Life: "h"})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { done <- r.Run(ctx) }()
		v := &hastyVoice{events: make(chan handoff.Event)}
		g := handoff.Grant{Caller: handoff.NamelessCaller("many", "1"), Key: "k", KeyLimits: handoff.Limits{HandoffsPerMinute: 1}}
		go func() { done <- r.Serve(ctx, g, v) }()
		for i := range 3 {
			v.events <- handoff.Request{CallID: fmt.Sprint("c", i), Tool: tools.Codex, Arguments: fmt.Sprintf(`{"server":"bigpc","thread_id":"new","prompt":"job %d"}`, i)}
		}
		time.Sleep(10 * time.Second)
		if n := len(r.Handoffs(g)); n != 1 {
			t.Errorf("%d begun", n)
		}
		v.mu.Lock()
		refused := 0
		for _, u := range v.said {
			if strings.Contains(u.Text, `"code":"limited"`) && strings.Contains(u.Text, "one piece of work was given") {
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

// TestOwnersAreBounded: what is made keeps its first owner, and the oldest are forgotten.
func TestOwnersAreBounded(t *testing.T) {
	r := NewRouter(Config{})
	a, b := handoff.Caller{Principal: "a"}, handoff.Caller{Principal: "b"}
	for i := range maxOwned + 1 {
		r.owners.made(a, handoff.Target{Server: "s", Project: "p", Thread: fmt.Sprint(i)})
	}
	last := fmt.Sprint(maxOwned)
	r.owners.made(b, handoff.Target{Server: "s", Thread: last})
	if !r.Hidden(b, "s", last) || r.Hidden(b, "s", "0") || len(r.owners.by) > maxOwned || len(r.owners.by) != len(r.owners.order) {
		t.Errorf("%d are kept", len(r.owners.by))
	}
}

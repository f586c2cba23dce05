package acp

import (
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/acp/simulator"
	"switchboard/servers/serverstest"
	machine "switchboard/servers/simulator"
)

// sharing is an agent with a mux that several instances share.
type sharing struct {
	world *simulator.World
	way   *keptWay
}

func share(t *testing.T, profile string, script func(p machine.Prompt) []machine.Step) *sharing {
	t.Helper()
	w := simulator.NewWorld(simulator.Config{Profile: profiles[profile], Script: script})
	return &sharing{w, keep(t, w, 0)}
}

// link connects an instance.
func (s *sharing) link(t *testing.T, instance string) *servers.Link {
	t.Helper()
	return linkTo(t, dialer(t, s.world, func(c *Config) {
		c.Way, c.instance = s.way, func() string { return instance }
	}))
}

func asked1(t *testing.T, updates []handoff.Update) handoff.Question {
	t.Helper()
	q, is := updates[len(updates)-1].(handoff.Question)
	if !is {
		t.Fatalf("it asks nothing: %v", updates)
	}
	return q
}

// asks are steps that ask before they run a command.
func asks(machine.Prompt) []machine.Step {
	return []machine.Step{machine.Say{Text: "I begin."}, machine.Ask{
		Command:  "make install",
		Accepted: []machine.Step{machine.Say{Text: "Done."}}, Declined: []machine.Step{machine.Say{Text: "Not done."}},
	}}
}

// TestOtherInstanceWaits: an instance that attaches a session with a running turn of another instance sees the turn,
// and takes neither its messages nor its question from the other.
func TestOtherInstanceWaits(t *testing.T) {
	t.Parallel()
	s := share(t, "branching", asks)
	a := create(t, s.link(t, "one"))
	id := start(t, a, "install")
	q := asked1(t, follow(t, a, id, isQuestion))
	b := attach(t, s.link(t, "two"), a.Target.Thread)
	if b.Running != id {
		t.Errorf("%q runs there, want %q", b.Running, id)
	}
	if _, err := b.Agent.Start(t.Context(), handoff.Turn{ID: "other", Input: handoff.TextInput("other")}); handoff.CodeOf(err) != handoff.CodeBusy {
		t.Errorf("another prompt: %v", err)
	}
	must(t, a.Agent.(handoff.Controls).Decide(t.Context(), q.ID, handoff.DecisionAccept))
	for _, at := range []handoff.Attached{a, b} {
		updates := follow(t, at, id, nil)
		if e := end(t, updates); e.Status != handoff.TurnCompleted || e.Text != "Done." {
			t.Errorf("ended with %+v", e)
		}
	}
	if err := b.Agent.(handoff.Controls).Decide(t.Context(), q.ID, handoff.DecisionDecline); handoff.CodeOf(err) != handoff.CodeNotPending {
		t.Errorf("decided twice: %v", err)
	}
}

// TestTakenOverByOtherInstance: an instance that adopts the turn of an instance that died, or hangs, gets its messages
// and the open question once, and may answer it, or cancel the turn.
func TestTakenOverByOtherInstance(t *testing.T) {
	t.Parallel()
	for name, dies := range map[string]bool{"died": true, "stands still": false} {
		for _, d := range []handoff.Decision{handoff.DecisionAccept, handoff.DecisionStop} {
			t.Run(name+" "+string(d), func(t *testing.T) {
				t.Parallel()
				s := share(t, "branching", asks)
				first := s.link(t, "one")
				a := create(t, first)
				id := start(t, a, "install")
				follow(t, a, id, isQuestion)
				if dies {
					_ = first.Conn.Close()
				}
				b := attach(t, s.link(t, "two"), a.Target.Thread)
				if found, err := b.Agent.(handoff.Reconciler).Reconcile(t.Context(), "", string(id)); found != id || err != nil {
					t.Fatalf("found %q, %v", found, err)
				}
				before := follow(t, b, id, isQuestion)
				q := asked1(t, before)
				must(t, b.Agent.(handoff.Controls).Decide(t.Context(), q.ID, d))
				all := append(before, follow(t, b, id, nil)...)
				want, status := []string{"I begin.", "Done."}, handoff.TurnCompleted
				if d == handoff.DecisionStop {
					want, status = want[:1], handoff.TurnInterrupted
				}
				if e := end(t, all); e.Status != status || !slices.Equal(said(all), want) {
					t.Errorf("%q, ended with %+v", said(all), e)
				}
				if n := len(slices.DeleteFunc(all, func(u handoff.Update) bool { return !isQuestion(u) })); n != 1 {
					t.Errorf("it is asked %d times", n)
				}
			})
		}
	}
}

// TestBusyElsewhere: a session that two instances have open takes one prompt at a time, and the other instance sees the
// running one when it attaches again.
func TestBusyElsewhere(t *testing.T) {
	t.Parallel()
	s := share(t, "branching", func(p machine.Prompt) []machine.Step {
		if strings.HasPrefix(p.Text, "begin") {
			return []machine.Step{machine.Say{Text: "I have begun."}}
		}
		return []machine.Step{machine.Say{Text: "I work."}, machine.Hang{}, machine.Say{Text: "It is over."}}
	})
	a := create(t, s.link(t, "one"))
	follow(t, a, start(t, a, "begin"), nil) // a session without a prompt is in no list
	two := s.link(t, "two")
	b := attach(t, two, a.Target.Thread)
	id := start(t, a, "work")
	_, err := b.Agent.Start(t.Context(), handoff.Turn{ID: "other", Input: handoff.TextInput("other")})
	if handoff.CodeOf(err) != handoff.CodeBusy {
		t.Fatalf("begun amid another's: %v", err)
	}
	b = attach(t, two, a.Target.Thread)
	if b.Running != id {
		t.Errorf("%q runs there, want %q", b.Running, id)
	}
	s.world.Release()
	for _, at := range []handoff.Attached{a, b} {
		if e := end(t, follow(t, at, id, nil)); e.Status != handoff.TurnCompleted || e.Text != "It is over." {
			t.Errorf("ended with %+v", e)
		}
	}
	next := start(t, b, "more")
	if e := end(t, follow(t, b, next, nil)); e.Status != handoff.TurnCompleted {
		t.Errorf("the next one ended with %+v", e)
	}
}

// TestTakenOverAmidWatch: a caller that only waits for the end of a turn takes no updates from one that adopts it at
// the same instance.
func TestTakenOverAmidWatch(t *testing.T) {
	t.Parallel()
	s := share(t, "branching", asks)
	first := s.link(t, "one")
	a := create(t, first)
	id := start(t, a, "install")
	follow(t, a, id, isQuestion)
	two := s.link(t, "two")
	waits := attach(t, two, a.Target.Thread)
	next, stop := iter.Pull2(waits.Agent.(handoff.Bystander).Watch(t.Context(), id))
	defer stop()
	ended := make(chan handoff.Update, 1)
	go func() {
		u, err, _ := next()
		if err != nil {
			t.Errorf("watching: %v", err)
		}
		ended <- u
	}()
	_ = first.Conn.Close()
	b := attach(t, two, a.Target.Thread)
	q := asked1(t, follow(t, b, id, isQuestion))
	must(t, b.Agent.(handoff.Controls).Decide(t.Context(), q.ID, handoff.DecisionAccept))
	if e := end(t, follow(t, b, id, nil)); e.Text != "Done." {
		t.Errorf("ended with %+v", e)
	}
	if e, is := (<-ended).(handoff.TurnEnded); !is || e.Status != handoff.TurnCompleted {
		t.Errorf("who waited was told %+v", e)
	}
}

// TestLateHistories: instances that open one session at the same time each get the history once, also if the agent
// sends it after its answer.
func TestLateHistories(t *testing.T) {
	t.Parallel()
	s := share(t, "load only", suiteScript)
	a := create(t, s.link(t, "first"))
	follow(t, a, start(t, a, serverstest.PromptHello), nil)
	var both sync.WaitGroup
	defer both.Wait()
	for _, instance := range []string{"one", "two", "three", "four"} {
		link := s.link(t, instance)
		both.Go(func() {
			if _, err := link.Conn.Attach(t.Context(), a.Target.Thread); err != nil {
				t.Errorf("%s: %v", instance, err)
			}
			text, err := link.Catalog.Read(t.Context(), a.Target.Thread, 40)
			want := []handoff.Line{{Role: "user", Text: serverstest.PromptHello}, {Role: "agent", Text: serverstest.TextHello}}
			if err != nil || !slices.Equal(text.Lines, want) {
				t.Errorf("%s reads %+v, %v", instance, text.Lines, err)
			}
		})
	}
}

package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/acp"
	acpsim "switchboard/servers/acp/simulator"
	"switchboard/servers/joined"
	"switchboard/servers/simulator"
	"switchboard/servers/transport"
)

// acpEnv is the variable that makes the test binary an agent of the Agent Client Protocol, on its standard streams.
const acpEnv = "TEST_HOST_ACP"

// acpAgent is an agent that asks before it runs a command. The prompt "wait" runs until there is a file of that name.
func acpAgent() {
	w := acpsim.NewWorld(acpsim.Config{
		Profile: acpsim.Profile{
			List: true, Load: true, Resume: true, Close: true, Names: true, Modes: []string{"auto", "default"},
		},
		Script: func(p simulator.Prompt) []simulator.Step {
			say := func(text string) simulator.Say { return simulator.Say{Text: text} }
			switch {
			case strings.HasPrefix(p.Text, "ask"):
				return []simulator.Step{simulator.Ask{Command: "make install", Accepted: []simulator.Step{say("Done.")},
					Declined: []simulator.Step{say("Not done.")}}}
			case strings.HasPrefix(p.Text, "wait"):
				return []simulator.Step{say("I wait."), simulator.Hang{}, say("It is over.")}
			}
			return []simulator.Step{say(fmt.Sprintf("I am %d.", os.Getpid()))}
		},
	})
	go func() {
		for _, err := os.Stat("go on"); err != nil; _, err = os.Stat("go on") {
			time.Sleep(5 * time.Millisecond)
		}
		w.Release()
	}()
	w.Serve(os.Stdin, os.Stdout, sync.OnceFunc(func() { _ = os.Stdin.Close() }))
}

// A hostWay reaches an agent of a machine without a line.
type hostWay struct{ agents *agents }

func (hostWay) Check(servers.Report, servers.Files) {}
func (hostWay) Describe(s *servers.Spec)            { s.Remote = true }
func (w hostWay) Open(ctx context.Context, end servers.End) (servers.Wire, error) {
	serve, err := w.agents.reach(ctx, joined.Opening{Agent: "claude", Apart: end.Apart})
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	go serve(far) // ends with near
	return transport.LinesOver(near), nil
}

// claude returns the agents of a machine with one of kind acp, under a policy.
func claude(t *testing.T, dir string, allow func(*Policy)) *agents {
	t.Helper()
	own, err := os.Executable()
	must(t, err)
	p := Policy{Answers: true, Dirs: []string{dir}, Agents: []Setting{{
		Name: "claude", Kind: kindACP, Command: []string{own}, Env: []string{acpEnv + "=1"},
	}}}
	if allow != nil {
		allow(&p)
	}
	return newAgents(Config{Dir: dir, Log: zap.NewNop(), Policy: p})
}

// linked opens a connection to the agent of a machine, as the service does.
func linked(t *testing.T, a *agents, mode string) *servers.Link {
	t.Helper()
	link, err := acp.Dialer(acp.Config{Name: "mini", Cwd: a.cfg.Dir, Way: hostWay{a}, Mode: mode, Rest: time.Millisecond})(t.Context())
	must(t, err)
	t.Cleanup(func() { _ = link.Conn.Close() })
	return link
}

// heard follows a turn to its end, and decides its questions.
func heard(t *testing.T, at handoff.Attached, turn handoff.TurnID, d handoff.Decision) (texts []string, end handoff.TurnEnded) {
	t.Helper()
	for u, err := range at.Agent.Follow(t.Context(), turn) {
		must(t, err)
		switch u := u.(type) {
		case handoff.Question:
			err := at.Agent.(handoff.Controls).Decide(t.Context(), u.ID, d)
			if d == handoff.DecisionAccept && u.There != "" { // it is told before, and the gate never has to refuse it
				if err == nil {
					t.Error("a yes is taken that does not count")
				}
				err = at.Agent.(handoff.Controls).Decide(t.Context(), u.ID, handoff.DecisionDecline)
			}
			must(t, err)
		case handoff.ItemDone:
			if u.Item.Kind == handoff.ItemMessage {
				texts = append(texts, u.Item.Text)
			}
		case handoff.TurnEnded:
			end = u
		}
	}
	return texts, end
}

func begun(t *testing.T, at handoff.Attached, words string) handoff.TurnID {
	t.Helper()
	turn, err := at.Agent.Start(t.Context(), handoff.Turn{ID: strings.ReplaceAll(words, " ", "-"), Input: handoff.TextInput(words)})
	must(t, err)
	return turn
}

// TestACPOutlivesUs: an agent on standard streams goes on with its work when the line and this process are gone. The
// next process finds it, and gets all updates.
func TestACPOutlivesUs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := claude(t, dir, nil)
	t.Cleanup(func() { first.end() })
	link := linked(t, first, "")
	at, err := link.Conn.Create(t.Context(), dir)
	must(t, err)
	who, _ := heard(t, at, begun(t, at, "hello"), "")
	turn := begun(t, at, "wait")
	must(t, link.Conn.Close()) // as when the service ends
	must(t, os.WriteFile(filepath.Join(dir, "go on"), nil, 0o600))

	next := claude(t, dir, nil)
	link = linked(t, next, "")
	again, err := link.Conn.Attach(t.Context(), at.Target.Thread)
	must(t, err)
	found, err := again.Agent.(handoff.Reconciler).Reconcile(t.Context(), "", string(turn))
	if err != nil || found != turn {
		t.Errorf("found %q, %v", found, err)
	}
	if texts, end := heard(t, again, turn, ""); end.Status != handoff.TurnCompleted || strings.Join(texts, " ") != "I wait. It is over." {
		t.Errorf("%q, %+v", texts, end)
	}
	if is, _ := heard(t, again, begun(t, again, "hello again"), ""); is[0] != who[0] {
		t.Errorf("another agent works: %q and %q", who, is)
	}
	text, err := link.Catalog.Read(t.Context(), at.Target.Thread, 50)
	if err != nil || len(text.Lines) == 0 {
		t.Errorf("read %+v, %v", text, err)
	}
	next.end()
	if _, err := connect(t.Context(), next.all()[0].socket); err == nil {
		t.Error("it was not ended")
	}
}

// TestACPGate: the policy of a machine's owner holds for agents of kind acp.
func TestACPGate(t *testing.T) {
	t.Parallel()
	t.Run("nothing is answered from elsewhere", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		a := claude(t, dir, func(p *Policy) { p.Answers = false })
		t.Cleanup(func() { a.end() })
		at, err := linked(t, a, "").Conn.Create(t.Context(), dir)
		must(t, err)
		if texts, _ := heard(t, at, begun(t, at, "ask"), handoff.DecisionAccept); strings.Join(texts, "") != "Not done." {
			t.Errorf("a yes: %q", texts)
		}
	})
	t.Run("no other directory, for reading too", func(t *testing.T) {
		t.Parallel()
		dir, other := t.TempDir(), t.TempDir()
		a := claude(t, dir, func(p *Policy) { p.Dirs = []string{dir, other} })
		t.Cleanup(func() { a.end() })
		link := linked(t, a, "")
		at, err := link.Conn.Create(t.Context(), other)
		must(t, err)
		heard(t, at, begun(t, at, "hello"), "")

		narrow := claude(t, dir, nil)
		link = linked(t, narrow, "")
		_, err = link.Conn.Create(t.Context(), other)
		refused(t, err, errElsewhere)
		if list, err := link.Catalog.List(t.Context(), 9); err != nil || len(list) != 0 {
			t.Errorf("listed %+v, %v", list, err)
		}
		_, err = link.Conn.Attach(t.Context(), at.Target.Thread)
		refused(t, err, errElsewhere)
		_, err = link.Catalog.Read(t.Context(), at.Target.Thread, 9)
		refused(t, err, errElsewhere)
	})
}

func refused(t *testing.T, err, why error) {
	t.Helper()
	if e, ok := errors.AsType[*handoff.Error](err); !ok || !strings.Contains(e.Detail, why.Error()) {
		t.Errorf("%v, want %q", err, why)
	}
}

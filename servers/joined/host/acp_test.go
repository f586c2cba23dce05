package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	conn, err := w.agents.dial(ctx, joined.Opening{Agent: "claude", Apart: end.Apart})
	if err != nil {
		return nil, err
	}
	return transport.LinesOver(conn), nil
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
	t.Run("no looser mode than the ceiling", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		a := claude(t, dir, func(p *Policy) { p.Ceiling = "workspace-write" })
		t.Cleanup(func() { a.end() })
		if _, err := linked(t, a, "auto").Conn.Create(t.Context(), dir); err == nil {
			at, err := linked(t, a, "auto").Conn.Create(t.Context(), dir)
			must(t, err)
			_, err = at.Agent.Start(t.Context(), handoff.Turn{ID: "x", Input: handoff.TextInput("hello")})
			refused(t, err, errLooser)
		}
		at, err := linked(t, a, "default").Conn.Create(t.Context(), dir)
		must(t, err)
		heard(t, at, begun(t, at, "hello"), "")
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

// TestACPGateJudges: of the service's messages to an agent of kind acp, only the listed methods pass, encoded anew.
func TestACPGateJudges(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, sent string
		want       string // what reaches the agent; "": nothing does
	}{
		{"a session", `{"id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`,
			`{"id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`},
		{"a session with a program", `{"id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[{"command":"id"}]}}`, ""},
		{"a session with a program in other letters",
			`{"id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[],"MCPSERVERS":[{"command":"id"}]}}`, ""},
		{"a session with options", `{"id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[],"_meta":{}}}`, ""},
		{"a looser mode", `{"id":1,"method":"session/set_mode","params":{"sessionId":"s","modeId":"auto"}}`, ""},
		{"a mode that asks", `{"id":1,"method":"session/set_mode","params":{"sessionId":"s","modeId":"default"}}`,
			`{"id":1,"method":"session/set_mode","params":{"modeId":"default","sessionId":"s"}}`},
		{"a setting", `{"id":1,"method":"session/set_config_option","params":{"sessionId":"s","configId":"model","value":"m"}}`, ""},
		{"work", `{"id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"t"}]}}`,
			`{"id":1,"method":"session/prompt","params":{"prompt":[{"text":"t","type":"text"}],"sessionId":"s"}}`},
		{"work of a trace", `{"id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[],"_meta":{"traceparent":"` + aSpan + `"}}}`,
			`{"id":1,"method":"session/prompt","params":{"_meta":{"traceparent":"` + aSpan + `"},"prompt":[],"sessionId":"s"}}`},
		{"work with options", `{"id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[],"_meta":{"claudeCode":{}}}}`, ""},
		{"a trace of a message", `{"id":1,"method":"session/list","params":{},"trace":{"traceparent":"` + aSpan + `"}}`, ""},
		{"work with a file", `{"id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"resource_link","uri":"file:///k"}]}}`, ""},
		{"work where the mode is not known", `{"id":1,"method":"session/prompt","params":{"sessionId":"x","prompt":[]}}`, ""},
		{"words for a turn", `{"id":1,"method":"_session/steering","params":{"sessionId":"s","prompt":[],"_meta":` + steersIdle + `}}`,
			`{"id":1,"method":"_session/steering","params":{"_meta":` + steersIdle + `,"prompt":[],"sessionId":"s"}}`},
		{"words for a turn, or else for a new one",
			`{"id":1,"method":"_session/steering","params":{"sessionId":"s","prompt":[],"_meta":{"steering":{"idleBehavior":"prompt Required"}}}}`, ""},
		{"words for none", `{"id":1,"method":"_session/steering","params":{"sessionId":"s","prompt":[],"_meta":{"steering":{}}}}`, ""},
		{"a key", `{"id":1,"method":"authenticate","params":{"methodId":"gateway"}}`, ""},
		{"that it is deleted", `{"id":1,"method":"session/delete","params":{"sessionId":"s"}}`, ""},
		{"an answer that nobody asked for", `{"id":7,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`, ""},
		{"many messages in one", `[{"id":1,"method":"session/list"}]`, ""},
	} {
		g := gateOf(Policy{Ceiling: "workspace-write", Answers: true}, "/")
		passes, _, err := g.fromService([]byte(row.sent))
		if string(passes) != row.want || (err == nil) != (row.want != "") {
			t.Errorf("%s: %s, %v", row.name, passes, err)
		}
	}
}

// gateOf returns the gate of an agent that has a session "s" in a directory, in a mode that asks.
func gateOf(p Policy, dir string) *acpGate {
	return &acpGate{policy: p, pending: map[string]pendingCall{}, questions: map[string]options{},
		places: &places{all: map[string]place{"s": {cwd: dir, mode: "default"}}}}
}

const (
	aPrompt = `{"id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`
	aLoad   = `{"id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/","mcpServers":[]}}`
	inAuto  = `{"id":1,"result":{"modes":{"currentModeId":"auto"}}}`
)

// TestACPGateMode: no work begins in a session that is being opened, since its mode is not known. Modes on a connection
// that only reads are not those of the working process.
func TestACPGateMode(t *testing.T) {
	t.Parallel()
	works := gateOf(Policy{Ceiling: "workspace-write"}, "/")
	reads := gateOf(works.policy, "/")
	reads.apart, reads.places = true, works.places
	for _, step := range []struct {
		name, sent string
		by         *acpGate
		answer     string
		want       error // of work then
	}{
		{"nothing", "", nil, "", nil},
		{"reading", aLoad, reads, "", nil},
		{"that it is read in another mode", "", reads, inAuto, nil},
		{"that another process changes", "", reads,
			`{"method":"session/update","params":{"sessionId":"s","update":{"currentModeId":"auto"}}}`, nil},
		{"opening", aLoad, works, "", errLooser},
		{"that it is open in another mode", "", works, inAuto, errLooser},
	} {
		if step.sent != "" {
			_, _, err := step.by.fromService([]byte(step.sent))
			must(t, err)
		}
		if step.answer != "" {
			step.by.fromAgent([]byte(step.answer))
		}
		if _, _, err := works.fromService([]byte(aPrompt)); err != step.want {
			t.Errorf("after %s: %v, want %v", step.name, err, step.want)
		}
		works.response("2", nil, nil)
	}
}

// TestACPGateNumbers: an answer is judged by its request.
func TestACPGateNumbers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := gateOf(Policy{Dirs: []string{dir}}, dir)
	_, _, err := g.fromService([]byte(`{"id":1,"method":"session/list","params":{}}`))
	must(t, err)
	if _, _, err := g.fromService([]byte(`{"id":1,"method":"initialize","params":{}}`)); err != errTwice {
		t.Errorf("a number that is in use: %v", err)
	}
	const list = `{"id":%s,"result":{"sessions":[{"sessionId":"x","cwd":"/","title":"secret"}]}}`
	for _, id := range []string{"1.0", `"1"`, "1", "1"} {
		if passes, _ := g.fromAgent(fmt.Appendf(nil, list, id)); strings.Contains(string(passes), "secret") {
			t.Errorf("heard as %s: %s", id, passes)
		}
	}
}

// TestACPGateYes: below a ceiling, a yes for good becomes a yes for this time, since it may also loosen the mode.
func TestACPGateYes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		policy Policy
		chosen string
		want   string // option; "": it is cancelled
	}{
		{"a yes", Policy{Answers: true, Ceiling: "workspace-write"}, "default", "default"},
		{"a yes for good", Policy{Answers: true, Ceiling: "workspace-write"}, "bypassPermissions", "default"},
		{"a no", Policy{Answers: true, Ceiling: "workspace-write"}, "plan", "plan"},
		{"what was not offered", Policy{Answers: true, Ceiling: "workspace-write"}, "auto", ""},
		{"a yes for good without a ceiling", Policy{Answers: true}, "bypassPermissions", "bypassPermissions"},
		{"a yes where nothing but reading may be", Policy{Answers: true, Ceiling: "read-only"}, "default", ""},
		{"a yes from elsewhere", Policy{}, "default", ""},
		{"a no from elsewhere", Policy{}, "plan", "plan"},
	} {
		g := gateOf(row.policy, "/")
		g.fromAgent([]byte(`{"id":0,"method":"session/request_permission","params":{"sessionId":"s","options":[` +
			`{"optionId":"bypassPermissions","kind":"allow_always"},{"optionId":"default","kind":"allow_once"},` +
			`{"optionId":"plan","kind":"reject_once"}]}}`))
		passes, _, err := g.fromService(fmt.Appendf(nil, `{"id":0,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, row.chosen))
		must(t, err)
		want := `{"outcome":{"outcome":"cancelled"}}`
		if row.want != "" {
			want = fmt.Sprintf(`{"outcome":{"optionId":%q,"outcome":"selected"}}`, row.want)
		}
		var got struct {
			Result struct{ Outcome map[string]string }
		}
		must(t, json.Unmarshal(passes, &got))
		text, err := json.Marshal(map[string]any{"outcome": got.Result.Outcome})
		must(t, err)
		if string(text) != want {
			t.Errorf("%s: %s, want %s", row.name, text, want)
		}
	}
}

// TestACPGateForgets: a request that the agent has withdrawn is no longer open.
func TestACPGateForgets(t *testing.T) {
	t.Parallel()
	g := gateOf(Policy{Answers: true}, "/")
	for range 2 * maxWatched {
		passes, answer := g.fromAgent([]byte(`{"id":5,"method":"elicitation/create","params":{"sessionId":"s"}}`))
		if passes == nil || answer != nil {
			t.Fatalf("it is answered %s", answer)
		}
		g.fromAgent([]byte(`{"method":"$/cancel_request","params":{"requestId":5}}`))
	}
	if len(g.questions) != 0 {
		t.Errorf("%d wait", len(g.questions))
	}
}

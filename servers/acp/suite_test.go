package acp

import (
	"context"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/acp/simulator"
	"switchboard/servers/serverstest"
	machine "switchboard/servers/simulator"
	"switchboard/servers/transport"
)

// profiles are the differences of four real agents, as recorded. The code under test does not know their names. Set
// once.
var profiles = map[string]simulator.Profile{
	"branching": { // claude-agent-acp
		List: true, Load: true, Resume: true, Fork: true, Close: true, Steering: true, Names: true, Elicits: true,
		Modes: []string{"auto", "default", "acceptEdits", "plan"}, Branches: true, Output: simulator.OutputText,
	},
	"one writer": { // codex-acp
		List: true, Load: true, Resume: true, Fork: true, Close: true, Steering: true, Names: true,
		Modes: []string{"agent", "read-only", "workspace-write"}, Forgets: true, OneWriter: true,
		RejectEnds: true, QuietFail: true,
	},
	"no steering": { // opencode
		List: true, Load: true, Resume: true, Fork: true, Close: true, Names: true,
		Modes: []string{"build", "plan"}, ModeOption: true, Output: simulator.OutputWhole,
	},
	"load only": { // gemini
		Load: true, Modes: []string{"default", "autoEdit", "yolo"}, LateReplay: true, Output: simulator.OutputWhole,
		NeedsAnswer: true, TitleOnly: true, NoUsage: true,
	},
}

// A pipeWay reaches a simulated process through memory.
type pipeWay struct{ world *simulator.World }

func (pipeWay) Check(servers.Report, servers.Files) {}
func (pipeWay) Describe(s *servers.Spec)            { s.EndsWithUs = true }
func (p pipeWay) Open(context.Context, servers.End) (servers.Wire, error) {
	ours, theirs := net.Pipe()
	w := &pipeWire{Lines: transport.NewLines(ours, ours), conn: ours}
	w.served.Go(func() { p.world.Serve(theirs, theirs, func() { _ = theirs.Close() }) })
	return w, nil
}

type pipeWire struct {
	*transport.Lines
	conn   net.Conn
	served sync.WaitGroup
}

func (w *pipeWire) Close() error {
	_ = w.conn.Close()
	w.served.Wait()
	return nil
}

// newWorld returns a world whose agent knows the prompts of the suite.
func newWorld(p simulator.Profile) *simulator.World {
	return simulator.NewWorld(simulator.Config{Profile: p, Script: suiteScript})
}

// dialer dials agents of a world, with the first mode that asks.
func dialer(t *testing.T, w *simulator.World, change func(*Config)) servers.Dial {
	cfg := Config{Name: "mac", Way: pipeWay{w}, Rest: 10 * time.Millisecond, Log: zaptest.NewLogger(t)}
	if change != nil {
		change(&cfg)
	}
	return Dialer(cfg)
}

// named sets a mode by its name, for agents without a mode that asks.
func named(p simulator.Profile) func(*Config) {
	return func(c *Config) {
		if p.ModeOption {
			c.Mode = "build"
		}
	}
}

// suiteScript returns the steps for the prompts of the suite.
func suiteScript(p machine.Prompt) []machine.Step {
	words, _ := unmark(p.Text)
	words, _, _ = strings.Cut(words, " ü")
	say := func(text string) machine.Say { return machine.Say{Text: text} }
	command := machine.Run{Command: serverstest.Command, Lines: linesOf(serverstest.CommandOutput),
		Exit: serverstest.CommandExit}
	switch strings.TrimSpace(words) {
	case serverstest.PromptHello:
		return []machine.Step{say(serverstest.TextHello)}
	case serverstest.PromptCommand:
		return []machine.Step{command, say(serverstest.TextCommand)}
	case serverstest.PromptBoth:
		return []machine.Step{machine.Both{command, {Command: serverstest.OtherCommand, Lines: linesOf(serverstest.OtherOutput)}},
			say(serverstest.TextBoth)}
	case serverstest.PromptEdit:
		return []machine.Step{machine.Edit{Changes: []machine.Change{{Path: serverstest.EditPath, Diff: "@@ -1 +1 @@\n-a\n+b\n"}}},
			say(serverstest.TextEdit)}
	case serverstest.PromptAsk:
		return []machine.Step{machine.Ask{Command: serverstest.AskCommand, Accepted: []machine.Step{say(serverstest.TextAccepted)},
			Declined: []machine.Step{say(serverstest.TextDeclined)}}}
	case serverstest.PromptInput:
		return []machine.Step{machine.Input{
			Queries:  []machine.Query{{Text: serverstest.InputQuestion, Options: serverstest.InputOptions}},
			Answered: func(a []string) []machine.Step { return []machine.Step{say(serverstest.TextInput + a[0])} },
		}}
	case serverstest.PromptWait:
		return []machine.Step{say(serverstest.TextWaiting), machine.Hang{}, say(serverstest.TextBack)}
	case serverstest.PromptMind:
		return []machine.Step{machine.Hang{}, say(serverstest.TextMinded)}
	case "environment":
		return []machine.Step{say("[" + os.Getenv("ANTHROPIC_API_KEY") + "]")}
	case serverstest.PromptFail:
		return []machine.Step{machine.Fail{Message: serverstest.DetailFail}}
	}
	return []machine.Step{say("I see.")}
}

func linesOf(output string) []machine.Line {
	var all []machine.Line
	for line := range strings.Lines(output) {
		all = append(all, machine.Line{Text: line})
	}
	return all
}

// Why cases of the suite are not for agents of this kind, or not for all of them.
const (
	whyAlone    = "the work of an agent process ends with its connection"
	whyWhole    = "the protocol copies whole sessions only"
	whySteers   = "this agent takes no words while it works"
	whyNoCopies = "this agent copies no sessions"
	whyNoWords  = "this agent asks for no words"
	whyEnds     = "a no ends the turn of this agent"
	whyTitle    = "this agent tells what it wants to run only as a title"
	whyHeld     = "a session stays with the process of this agent until that ends"
)

// lacks returns the cases that an agent with a profile cannot do, with the reasons.
func lacks(p simulator.Profile) map[string]string {
	all := map[string]string{
		"a running turn is found":                         whyAlone,
		"leaving a turn does not touch it":                whyAlone,
		"a turn outlives the connection":                  whyAlone,
		"a turn that ended meanwhile is read":             whyAlone,
		"what was missed of a running turn comes first":   whyAlone,
		"a question is asked again on another connection": whyAlone,
		"a thread is copied up to a turn":                 whyWhole,
	}
	for name, why := range map[string]string{
		"a running turn is steered":       whySteers,
		"steers are heard in their order": whySteers,
		"pictures are shown":              whySteers,
	} {
		if !p.Steering {
			all[name] = why
		}
	}
	if !p.Fork {
		all["a thread is copied while it runs"] = whyNoCopies
		all["a thread that is held elsewhere is copied"] = whyNoCopies
	}
	if !p.Elicits {
		all["a question is answered in words"] = whyNoWords
	}
	if p.RejectEnds {
		all["a question is declined"] = whyEnds
	}
	if p.OneWriter {
		all["attaching gives exactly the thread"] = whyHeld
	}
	if p.TitleOnly {
		for _, name := range []string{"a question is accepted once", "a question is declined", "a question stops the turn"} {
			all[name] = whyTitle
		}
	}
	if p.NoUsage {
		all["what a turn used is told"] = "this agent does not tell it"
	}
	return all
}

// TestConformance: agents of this kind pass the suite, as far as their capabilities go.
func TestConformance(t *testing.T) {
	for name, p := range profiles {
		t.Run(name, func(t *testing.T) {
			serverstest.TestServer(t, func(t *testing.T) serverstest.Harness {
				w := newWorld(p)
				h := serverstest.Harness{
					Dial: dialer(t, w, named(p)), Drop: w.Drop, Release: w.Release, Starts: w.Starts, Restart: w.Drop,
					Pictures: w.Pictures, Dir: t.TempDir(), Gone: "5e550000-0000-4000-8000-999999999999",
					Lacks: lacks(p), Unstreamed: true, EndsUntold: true, Terse: p.Output == simulator.OutputText,
					LoseStart: func(runs bool) {
						w.SetFault(map[bool]simulator.Fault{true: simulator.FaultCut, false: simulator.FaultLost}[runs])
					},
				}
				if p.OneWriter {
					h.Hold = func() {} // the first process has them
				}
				return h
			})
		})
	}
}

// linkTo dials until the test ends.
func linkTo(t *testing.T, dial servers.Dial) *servers.Link {
	t.Helper()
	link, err := dial(t.Context())
	must(t, err)
	t.Cleanup(func() { _ = link.Conn.Close() })
	return link
}

// must ends a test that cannot go on after err.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, link *servers.Link) handoff.Attached {
	t.Helper()
	a, err := link.Conn.Create(t.Context(), t.TempDir())
	must(t, err)
	return a
}

func attach(t *testing.T, link *servers.Link, id string) handoff.Attached {
	t.Helper()
	a, err := link.Conn.Attach(t.Context(), id)
	must(t, err)
	return a
}

// start sends a prompt, with its text as the id.
func start(t *testing.T, a handoff.Attached, words string) handoff.TurnID {
	t.Helper()
	id, err := a.Agent.Start(t.Context(), handoff.Turn{ID: strings.ReplaceAll(words, " ", "-"), Input: handoff.TextInput(words)})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	return id
}

// follow reads a turn up to its end, or to the update that enough accepts.
func follow(t *testing.T, a handoff.Attached, id handoff.TurnID, enough func(handoff.Update) bool) []handoff.Update {
	t.Helper()
	var all []handoff.Update
	for u, err := range a.Agent.Follow(t.Context(), id) {
		if err != nil {
			t.Fatalf("follow: %v after %#v", err, all)
		}
		if all = append(all, u); enough != nil && enough(u) {
			return all
		}
	}
	return all
}

func end(t *testing.T, updates []handoff.Update) handoff.TurnEnded {
	t.Helper()
	e, ok := updates[len(updates)-1].(handoff.TurnEnded)
	if !ok {
		t.Fatalf("the last update is %#v", updates[len(updates)-1])
	}
	return e
}

// said returns the texts of finished messages.
func said(updates []handoff.Update) []string {
	var all []string
	for _, u := range updates {
		if d, ok := u.(handoff.ItemDone); ok && d.Item.Kind == handoff.ItemMessage {
			all = append(all, d.Item.Text)
		}
	}
	return all
}

func wantSaid(t *testing.T, updates []handoff.Update, want ...string) {
	t.Helper()
	if got := said(updates); !slices.Equal(got, want) {
		t.Errorf("said %q, want %q", got, want)
	}
}

func wantCode(t *testing.T, what string, err error, want handoff.Code) {
	t.Helper()
	if err == nil || handoff.AsError(err).Code != want {
		t.Errorf("%s: %v, want %s", what, err, want)
	}
}

func isQuestion(u handoff.Update) bool { _, ok := u.(handoff.Question); return ok }

func asWaiting(u handoff.Update) bool {
	d, ok := u.(handoff.ItemDone)
	return ok && d.Item.Text == serverstest.TextWaiting
}

package responses

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers/responses/simulator"
	"switchboard/servers/responses/wire"
	"switchboard/servers/responses/workspace"
)

// A use is a made-up tool.
type use = func(ctx context.Context, out io.Writer) workspace.Result

// A stub has made-up tools.
type stub struct {
	use     map[string]use
	refused []string // tools that may not be used
}

func (s stub) Tools() []workspace.Tool {
	var all []workspace.Tool
	for _, name := range append(s.Allowed(), s.refused...) {
		all = append(all, workspace.Tool{Name: name, Description: name, Parameters: map[string]any{"type": "object"}})
	}
	return all
}

func (s stub) Allowed() []string {
	var names []string
	for name := range s.use {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s stub) Run(ctx context.Context, name string, _ json.RawMessage, call workspace.Call) workspace.Result {
	if use := s.use[name]; use != nil {
		return use(ctx, call.Out)
	}
	return workspace.Result{Text: "Error: no tool " + name, Failed: true}
}

// found returns a tool that returns a text.
func found(words string) use {
	return func(context.Context, io.Writer) workspace.Result { return workspace.Result{Text: words} }
}

// A talk is one thread of a rig.
type talk struct {
	*testing.T
	rig *rig
	handoff.Attached
	n int
}

func newTalk(t *testing.T, r *rig) *talk {
	t.Helper()
	link, err := r.dial(t.Context())
	must(t, err)
	a, err := link.Conn.Create(t.Context(), "")
	must(t, err)
	return &talk{T: t, rig: r, Attached: a}
}

func (k *talk) start(turn handoff.Turn) handoff.TurnID {
	k.Helper()
	id, err := k.Agent.Start(k.Context(), turn)
	if err != nil {
		k.Fatalf("start: %v", err)
	}
	return id
}

// end follows a turn to its end.
func (k *talk) end(id handoff.TurnID) ([]handoff.Update, handoff.TurnEnded) {
	k.Helper()
	var all []handoff.Update
	for u, err := range k.Agent.Follow(k.Context(), id) {
		if err != nil {
			k.Fatalf("follow: %v", err)
		}
		all = append(all, u)
	}
	end, ok := all[len(all)-1].(handoff.TurnEnded)
	if !ok {
		k.Fatalf("ended with %#v", all[len(all)-1])
	}
	return all, end
}

// say runs a turn to its end.
func (k *talk) say(parts ...handoff.Part) handoff.TurnEnded {
	k.Helper()
	k.n++
	_, end := k.end(k.start(handoff.Turn{ID: fmt.Sprint("turn", k.n), Input: parts}))
	return end
}

func (k *talk) record() threads.Record {
	k.Helper()
	record, err := k.rig.cfg.Threads.Read(k.Context(), "helper", k.Target.Thread)
	must(k, err)
	return record
}

const shot = "data:image/png;base64,AAAA"

// looksOnce is a script that calls a tool once in each turn and then repeats what the person said.
func looksOnce(tool string) func(simulator.Request) simulator.Reply {
	return func(req simulator.Request) simulator.Reply {
		words, answered := lastSaid(req)
		if answered || tool == "" {
			return simulator.Reply{Items: []simulator.Item{simulator.Say("done: " + words)}}
		}
		return simulator.Reply{Items: []simulator.Item{{JSON: object{"type": "reasoning", "summary": []object{}}},
			simulator.Call(fmt.Sprint("call_", len(req.History)), tool, object{})}}
	}
}

// TestInputStaysFlat: with response ids a request sends only new items, however long the thread is; without them
// everything. Pictures count too, those of people and those of tools.
func TestInputStaysFlat(t *testing.T) {
	screen := stub{use: map[string]use{
		"screenshot": func(context.Context, io.Writer) workspace.Result {
			return workspace.Result{Pictures: []string{shot}}
		},
	}}
	const turns = 8
	// What the two requests of each turn have: items, pictures.
	flat := func(int) string { return "1/1 1/1" }
	grown := func(turn int) string { // each turn adds a message, a call, its output and an answer
		return fmt.Sprintf("%d/%d %d/%d", 4*turn+1, 2*turn+1, 4*turn+3, 2*turn+2)
	}
	for _, c := range []struct {
		name  string
		set   func(*testing.T, *Config)
		turn  []handoff.Context
		want  func(turn int) string
		named bool
	}{
		{"on", nil, nil, flat, true},
		{"off by configuration", func(_ *testing.T, c *Config) { c.Model.Continuation = Replay }, nil, grown, false},
		{"off by encrypted reasoning, which is not stored", func(_ *testing.T, c *Config) { c.Model.Encrypted = true }, nil,
			grown, false},
		{"off by the environment", func(t *testing.T, _ *Config) { t.Setenv(disableVariable, "1") }, nil, grown, false},
		{"off for the turn", nil, []handoff.Context{{Key: handoff.DisableResponseThreading, Value: "true", Trusted: true}},
			grown, false},
		{"not off by somebody's words", nil, []handoff.Context{{Key: "disable", Value: "true"}},
			func(turn int) string { return "2/1 1/1" }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t, looksOnce("screenshot"))
			k := newTalk(t, newRig(t, f, func(cfg *Config) {
				cfg.Workspace = screen
				if c.set != nil {
					c.set(t, cfg)
				}
			}))
			for turn := range turns {
				id := k.start(handoff.Turn{ID: fmt.Sprint(turn),
					Input: []handoff.Part{handoff.Text("look"), handoff.Image{URL: shot}}, Context: c.turn})
				if _, end := k.end(id); end.Text != "done: look" {
					t.Fatalf("turn %d: %+v", turn, end)
				}
				reqs := f.Requests()[2*turn:]
				var got []string
				for _, req := range reqs {
					got = append(got, fmt.Sprintf("%d/%d", len(req.Input), pictures(req.Input)))
					if named := req.Previous != ""; named != (c.named && (turn > 0 || len(got) > 1)) || req.Store != c.named ||
						req.Instructions != "be brief" {
						t.Errorf("turn %d: previous %q, store %v, instructions %q", turn, req.Previous, req.Store, req.Instructions)
					}
				}
				if want := c.want(turn); strings.Join(got, " ") != want {
					t.Errorf("turn %d sends %v, want %s", turn, got, want)
				}
			}
		})
	}
}

// TestForgottenResponse: when the server does not know a response any more, everything is sent, exactly once.
func TestForgottenResponse(t *testing.T) {
	f := newFake(t, looksOnce(""))
	k := newTalk(t, newRig(t, f, nil))
	k.say(handoff.Text("one"))
	f.Forget()
	if end := k.say(handoff.Text("two")); end.Text != "done: two" {
		t.Fatalf("%+v", end)
	}
	reqs := f.Requests()
	if len(reqs) != 3 || reqs[1].Previous == "" || len(reqs[1].Input) != 1 || reqs[2].Previous != "" ||
		len(reqs[2].Input) != 3 {
		t.Errorf("sent %+v", reqs[1:])
	}
	if k.say(handoff.Text("three")); f.Requests()[3].Previous == "" {
		t.Error("it does not go on from the response that it got then")
	}
	forget := func(w http.ResponseWriter, _ simulator.Request) bool {
		simulator.Refuse(w, http.StatusNotFound, "previous_response_not_found", "gone")
		return true
	}
	f.Misbehave(forget)
	f.Misbehave(forget)
	if end := k.say(handoff.Text("four")); end.Status != handoff.TurnFailed || end.Code != handoff.CodeModelRefused ||
		!strings.Contains(end.Detail, "previous_response_not_found") {
		t.Errorf("a second refusal: %+v", end)
	}
	if n := len(f.Requests()); n != 6 {
		t.Errorf("%d requests", n)
	}
}

// TestCallsAreAnsweredInOrder: each call of an answer gets exactly one output, in the order of the calls, whatever its
// tool does, and the loop goes on.
func TestCallsAreAnsweredInOrder(t *testing.T) {
	slow := make(chan struct{})
	tools := stub{
		refused: []string{"secret"},
		use: map[string]use{
			"slow": func(_ context.Context, out io.Writer) workspace.Result {
				_, _ = out.Write([]byte("slow "))
				<-slow
				_, _ = out.Write([]byte("words"))
				return workspace.Result{Text: "slow words"}
			},
			"fast": func(context.Context, io.Writer) workspace.Result {
				close(slow)
				return workspace.Result{Text: "fast words"}
			},
			"panic": func(context.Context, io.Writer) workspace.Result { panic("out of luck") },
			"empty": found(""),
		},
	}
	f := newFake(t, func(req simulator.Request) simulator.Reply {
		if _, answered := lastSaid(req); answered {
			return simulator.Reply{Items: []simulator.Item{simulator.Say("done")}}
		}
		broken := simulator.Call("c3", "fast", object{})
		broken.JSON["arguments"] = `{"half`
		return simulator.Reply{Items: []simulator.Item{simulator.Say("working"), simulator.Call("c1", "slow", object{}),
			simulator.Call("c2", "panic", object{}), broken,
			simulator.Call("c4", "secret", object{}), simulator.Call("c5", "nothing", object{}),
			simulator.Call("c6", "fast", object{}), simulator.Call("c7", "empty", object{})}}
	})
	k := newTalk(t, newRig(t, f, func(c *Config) { c.Workspace = tools }))
	updates, end := k.end(k.start(handoff.Turn{ID: "a", Input: handoff.TextInput("go")}))
	if end.Status != handoff.TurnCompleted || end.Text != "done" {
		t.Fatalf("%+v", end)
	}
	reqs := f.Requests()
	if len(reqs) != 2 || reqs[1].Previous == "" {
		t.Fatalf("%d requests", len(reqs))
	}
	var got []string
	for _, raw := range reqs[1].Input {
		s := wire.Read(raw)
		got = append(got, s.CallID+" "+s.Text())
	}
	want := []string{"c1 slow words", "c2 Error: the tool broke down", "c3 Error: the arguments are no JSON",
		"c4 Error: no tool secret",
		"c5 Error: no tool nothing", "c6 fast words", "c7 ok"}
	if !slices.Equal(got, want) {
		t.Errorf("answered %q", got)
	}
	if string(reqs[0].Tools) != string(reqs[1].Tools) || !strings.Contains(string(reqs[0].Tools), "secret") ||
		strings.Contains(string(reqs[0].Choice), "secret") {
		t.Errorf("tools %s, choice %s", reqs[0].Tools, reqs[0].Choice)
	}
	inOrder(t, updates)
}

// inOrder checks that tools are shown one at a time, and that the streamed output of each is what it printed.
func inOrder(t *testing.T, updates []handoff.Update) {
	t.Helper()
	open, shown, streamed := "", []string{}, ""
	for _, u := range updates {
		switch u := u.(type) {
		case handoff.ItemStarted:
			if u.Item.Kind == handoff.ItemToolCall {
				if open != "" {
					t.Errorf("%s begins inside of %s", u.Item.ID, open)
				}
				open = u.Item.ID
				shown = append(shown, u.Item.Text)
			}
		case handoff.Delta:
			if u.Kind == handoff.DeltaOutput {
				streamed += u.Text
			}
		case handoff.ItemDone:
			if u.Item.ID == open {
				open = ""
			}
		}
	}
	if want := []string{"slow", "panic", "fast", "secret", "nothing", "fast", "empty"}; !slices.Equal(shown, want) ||
		streamed != "slow words" || open != "" {
		t.Errorf("shown %v, streamed %q, open %q", shown, streamed, open)
	}
}

// TestCap: after a number of answers with calls the model is asked once more, without tools, and the turn is
// incomplete.
func TestCap(t *testing.T) {
	f := newFake(t, func(req simulator.Request) simulator.Reply {
		if string(req.Choice) == `"none"` {
			return simulator.Reply{Items: []simulator.Item{simulator.Say("that is all")}}
		}
		return simulator.Reply{Items: []simulator.Item{simulator.Call("c", "look", object{})}}
	})
	k := newTalk(t, newRig(t, f, func(c *Config) {
		c.Iterations = 4
		c.Workspace = stub{use: map[string]use{"look": found("the same")}}
	}))
	if end := k.say(handoff.Text("go")); end.Status != handoff.TurnCompleted || end.Text != "that is all" {
		t.Errorf("%+v", end)
	}
	reqs := f.Requests()
	if len(reqs) != 5 || k.record().Turns[0].Status != threads.Incomplete {
		t.Errorf("%d requests, %s", len(reqs), k.record().Turns[0].Status)
	}
	if text := wire.Read(reqs[3].Input[0]).Text(); !strings.Contains(text, "3 times") {
		t.Errorf("the third same call is answered %q", text)
	}
}

// TestCapHoldsAgainstTheModel: if the model then calls tools all the same, none runs, and the thread can go on.
func TestCapHoldsAgainstTheModel(t *testing.T) {
	var used atomic.Int32
	f := newFake(t, func(req simulator.Request) simulator.Reply {
		if said, _ := lastSaid(req); said == "go on" {
			return simulator.Reply{Items: []simulator.Item{simulator.Say("done")}}
		}
		return simulator.Reply{Items: []simulator.Item{simulator.Call(fmt.Sprint("call_", req.N), "look", object{})}}
	})
	k := newTalk(t, newRig(t, f, func(c *Config) {
		c.Iterations = 2
		c.Workspace = stub{use: map[string]use{"look": func(context.Context, io.Writer) workspace.Result {
			used.Add(1)
			return workspace.Result{Text: "seen"}
		}}}
	}))
	k.say(handoff.Text("go"))
	if n := used.Load(); n != 2 || k.record().Turns[0].Status != threads.Incomplete {
		t.Errorf("tools ran %d times, %s", n, k.record().Turns[0].Status)
	}
	if end := k.say(handoff.Text("go on")); end.Text != "done" {
		t.Errorf("then %+v", end)
	}
}

// TestUsageIsSummed: the usage of a turn is the sum of its answers.
func TestUsageIsSummed(t *testing.T) {
	f := newFake(t, looksOnce("look"))
	k := newTalk(t, newRig(t, f, func(c *Config) {
		c.Workspace = stub{use: map[string]use{"look": found("x")}}
	}))
	updates, _ := k.end(k.start(handoff.Turn{ID: "a", Input: handoff.TextInput("go")}))
	var last handoff.Usage
	for _, u := range updates {
		if used, ok := u.(handoff.Usage); ok {
			last = used
		}
	}
	kept := k.record().Turns[0].Usage
	if last.Input != 50 || last.Output != 14 || usageOf(kept) != last {
		t.Errorf("%+v, kept %s", last, kept)
	}
}

// TestFullContext: a full context is compacted once, and the turn goes on; if it is full again, the turn fails.
func TestFullContext(t *testing.T) {
	f := newFake(t, looksOnce(""))
	k := newTalk(t, newRig(t, f, nil))
	for i := range 4 {
		k.say(handoff.Text(fmt.Sprint(i, strings.Repeat(" word", 2000))))
	}
	full := func(w http.ResponseWriter, _ simulator.Request) bool {
		simulator.Refuse(w, http.StatusBadRequest, "context_length_exceeded",
			"Your input exceeds the context window of this model.")
		return true
	}
	f.Misbehave(full)
	if end := k.say(handoff.Text("now")); end.Text != "done: now" {
		t.Fatalf("%+v", end)
	}
	reqs := f.Requests()
	last := reqs[len(reqs)-1]
	if len(reqs) != 6 || last.Previous != "" || len(last.Input) >= 9 ||
		!strings.Contains(wire.Read(last.Input[0]).Text(), "Summary of this session") {
		t.Errorf("%d requests, the last has %d items after %q", len(reqs), len(last.Input), last.Previous)
	}
	if k.say(handoff.Text("more")); f.Requests()[6].Previous == "" || len(f.Requests()[6].Input) != 1 {
		t.Error("it does not go on by id after that")
	}
	f.Misbehave(full)
	f.Misbehave(full)
	if end := k.say(handoff.Text("again")); end.Status != handoff.TurnFailed || end.Code != handoff.CodeContextFull {
		t.Errorf("%+v", end)
	}
}

// TestChangesAreKept: the changes of an edit are shown as they happen and when the turn is read later, and are never
// sent.
func TestChangesAreKept(t *testing.T) {
	for _, continuation := range []string{Replay, ResponseIDs} {
		t.Run(continuation, func(t *testing.T) {
			script, calm := untilCalm("edit")
			f := newFake(t, script)
			change := handoff.FileChange{Path: "a", Kind: "add", Diff: "@@ -0,0 +1 @@\n+a\n", Added: 1}
			k := newTalk(t, newRig(t, f, func(c *Config) {
				c.Model.Continuation = continuation
				c.Workspace = stub{use: map[string]use{"edit": func(context.Context, io.Writer) workspace.Result {
					return workspace.Result{Text: "Done.", Changes: []handoff.FileChange{change}}
				}}}
			}))
			id := k.start(handoff.Turn{ID: "a", Input: handoff.TextInput("go")})
			for _, when := range []string{"as it happens", "as it is kept"} {
				updates, end := k.end(id)
				shown := slices.ContainsFunc(updates, func(u handoff.Update) bool {
					done, ok := u.(handoff.ItemDone)
					return ok && slices.Equal(done.Item.Changes, []handoff.FileChange{change})
				})
				if !shown || when == "as it happens" && end.Text != "done: go" {
					t.Errorf("%s: %+v, %+v", when, updates, end)
				}
			}
			calm.Store(true)
			k.say(handoff.Text("on"))
			for _, req := range f.Requests() {
				if strings.Contains(string(wire.Encode(req.Input)), typeChanges) {
					t.Errorf("the model is sent %s", wire.Encode(req.Input))
				}
			}
		})
	}
}

package simulator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers/responses/wire"
	"switchboard/servers/responses/workspace"
	machines "switchboard/servers/simulator"
)

// laptop is a machine of the built-in world.
func laptop(t *testing.T) machines.Machine {
	t.Helper()
	for _, m := range machines.NewWorld(machines.Config{}).Machines() {
		if m.Name == "laptop" {
			return m
		}
	}
	t.Fatal("there is no laptop")
	panic("unreachable")
}

// A scene is a session as the agent gets it: its messages and calls, and the outputs of its tools.
type scene struct {
	*testing.T
	history []json.RawMessage
	tools   *Tools
	allow   bool // what it asks for
	asked   []handoff.Question
	changes []handoff.FileChange
}

// say sends the agent a prompt, plays its turn to the end, and returns its messages and calls.
func (s *scene) say(prompt string) string {
	s.history = append(s.history, wire.Encode(object{"type": "message", "role": "user", "content": prompt}))
	var did []string
	for calls := 1; calls > 0; {
		calls = 0
		for i, it := range Actor(s.tools.machine)(Request{History: s.history}).Items {
			said := it.withID(fmt.Sprint("i", len(s.history), i))
			s.history = append(s.history, wire.Encode(said))
			if said["type"] != wire.Call {
				did = append(did, wire.Read(wire.Encode(said)).Text())
				continue
			}
			calls++
			s.history = append(s.history, s.use(said))
		}
	}
	return strings.Join(did, "\n")
}

// use runs a call and returns its output.
func (s *scene) use(call object) json.RawMessage {
	result := s.tools.Run(s.Context(), call["name"].(string), json.RawMessage(call["arguments"].(string)), workspace.Call{
		Out: io.Discard,
		Ask: func(_ context.Context, q handoff.Question) (bool, error) {
			s.asked = append(s.asked, q)
			return s.allow, nil
		},
	})
	s.changes = append(s.changes, result.Changes...)
	return wire.Encode(object{"type": wire.Output, "call_id": call["call_id"], "output": result.Text})
}

// TestActor: the behaviour of the agent depends only on the history, over several turns.
func TestActor(t *testing.T) {
	s := &scene{T: t, tools: NewTools(laptop(t), 1000)}
	for _, c := range []struct {
		prompt, says string
		allow        bool
	}{
		{"what changed?", "Nothing has been changed in this session yet.", false},
		{"run the tests", "All tests pass.", false},
		{"write the release notes", "The release notes for version 2.4 are written", false},
		{"what changed?", "In this session I ran the tests, and all passed, and last I wrote the release notes", false},
		{"push it", "I did not push the branch, because you said no.", false},
		{"push it", "The branch release-2.4 is pushed.", true},
		{"push it", "is pushed already", true},
		{"publish the notes", "Which version are the release notes for?", false},
		{"2.5", "published for version 2.5", false},
		{"publish the notes", "Which version", false},
		{"run the tests", "All tests pass.", false}, // the question is left
		{"sing a song", "I am only a simulated agent", false},
	} {
		s.allow = c.allow
		if said := s.say(c.prompt); !strings.Contains(said, c.says) {
			t.Errorf("%q: %q, want %q", c.prompt, said, c.says)
		}
	}
	if len(s.asked) != 2 || s.asked[0].Command != "git push origin release-2.4" || s.asked[0].Reason == "" {
		t.Errorf("asked %+v", s.asked)
	}
	if len(s.changes) != 1 || s.changes[0].Added != 6 ||
		!strings.HasPrefix(s.changes[0].Diff, "@@ -0,0 +1,6 @@\n+# Version 2.4\n") {
		t.Errorf("changed %+v", s.changes)
	}
}

// TestActorIsInterrupted: the agent does not go on with interrupted work.
func TestActorIsInterrupted(t *testing.T) {
	m := laptop(t)
	var history []json.RawMessage
	add := func(v any) { history = append(history, wire.Encode(v)) }
	add(object{"type": "message", "role": "user", "content": "run the benchmarks"})
	call := Call("c", "exec", object{}).withID("f")
	add(call)
	add(object{"type": wire.Output, "call_id": "c", "output": interrupted + " before it had a result"})
	add(object{"type": "message", "role": "user", "content": "what changed?"})
	said := Actor(m)(Request{History: history}).Items
	if text := wire.Read(wire.Encode(said[len(said)-1].JSON)).Text(); text != "Nothing has been changed in this "+
		"session yet." {
		t.Error(text)
	}
	history[2] = wire.Encode(object{"type": wire.Output, "call_id": "c", "output": "Exit code: 0"})
	history[3] = wire.Encode(object{"type": "message", "role": "user", "content": "stop it"})
	said = Actor(m)(Request{History: history[:4]}).Items
	if text := wire.Read(wire.Encode(said[len(said)-1].JSON)).Text(); text != "All right, I stop here." &&
		text != "Nothing is running here, so there is nothing to stop." {
		t.Error(text)
	}
}

// TestRemember: the initial sessions of a machine exist and can be continued.
func TestRemember(t *testing.T) {
	store, m := threads.NewMemory(), laptop(t)
	for range 2 { // also if they exist already
		if err := Remember(t.Context(), store, m); err != nil {
			t.Fatal(err)
		}
	}
	list, err := store.List(t.Context(), m.Name, 10)
	if err != nil || len(list) != 2 || list[0].Title != "Release notes 2.4" || list[1].Title != "Invoice PDF spike" {
		t.Fatalf("%+v, %v", list, err)
	}
	record, err := store.Read(t.Context(), m.Name, list[0].ID)
	if err != nil || len(record.Items) != 4 || record.Turns[0].Status != threads.Completed {
		t.Fatalf("%+v, %v", record, err)
	}
	s := &scene{T: t, tools: NewTools(m, 1000)}
	for _, it := range record.Items {
		s.history = append(s.history, it.JSON)
	}
	if said := s.say("what changed?"); !strings.Contains(said, "collected what goes into version 2.4") {
		t.Error(said)
	}
}

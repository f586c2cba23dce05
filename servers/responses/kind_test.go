package responses

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers"
)

// A findings is what a check reported, by row.
type findings []string

func (f *findings) Bad(row, format string, args ...any) {
	*f = append(*f, row+": "+fmt.Sprintf(format, args...))
}

func (f *findings) OneOf(row, word string, known ...string) {
	if !slices.Contains(known, word) {
		*f = append(*f, row+": "+word+" is unknown")
	}
}

func TestCheck(t *testing.T) {
	good := servers.Settings{URL: "https://api.openai.com/v1", Model: "m", Workspace: t.TempDir()}
	for _, c := range []struct {
		name   string
		change func(*servers.Settings)
		want   string // how the only finding begins; "" for none
	}{
		{"good", func(*servers.Settings) {}, ""},
		{"everything", func(s *servers.Settings) {
			s.Continuation, s.Verbosity, s.Reasoning = ResponseIDs, "low", servers.Reasoning{Effort: "low", Summary: "auto"}
		}, ""},
		{"on this machine", func(s *servers.Settings) { s.URL = "http://127.0.0.1:8000/v1" }, ""},
		{"no address", func(s *servers.Settings) { s.URL = "" }, "url: must be"},
		{"a socket", func(s *servers.Settings) { s.URL = "ws://127.0.0.1:1" }, "url: must be"},
		{"a password", func(s *servers.Settings) { s.URL = "https://me:pw@host/v1" }, "url: has a user name"},
		{"a query", func(s *servers.Settings) { s.URL = "https://host/v1?version=1" }, "url: has a query"},
		{"in the clear", func(s *servers.Settings) { s.URL = "http://host/v1" }, "url: http:// to another"},
		{"allowed in the clear", func(s *servers.Settings) { s.URL, s.AllowPlaintext = "http://host/v1", true }, ""},
		{"nothing in the clear", func(s *servers.Settings) { s.AllowPlaintext = true }, "allow_plaintext: "},
		{"no model", func(s *servers.Settings) { s.Model = "" }, "model: is missing"},
		{"no directory", func(s *servers.Settings) { s.Workspace = "" }, "workspace: must be"},
		{"a directory that is not there", func(s *servers.Settings) { s.Workspace += "/none" }, "workspace: must be"},
		{"a continuation", func(s *servers.Settings) { s.Continuation = "magic" }, "continuation: magic"},
		{"an effort", func(s *servers.Settings) { s.Reasoning.Effort = "huge" }, "reasoning.effort: huge"},
		{"a summary", func(s *servers.Settings) { s.Reasoning.Summary = "none" }, "reasoning.summary: none"},
		{"a verbosity", func(s *servers.Settings) { s.Verbosity = "loud" }, "verbosity: loud"},
		{"encrypted", func(s *servers.Settings) { s.Reasoning.Encrypted = true }, ""},
		{"encrypted and kept", func(s *servers.Settings) { s.Reasoning.Encrypted, s.Continuation = true, ResponseIDs }, "continuation: response_ids needs"},
		{"another directory", func(s *servers.Settings) { s.Dir = "/" }, "cwd: is not for"},
		{"a command", func(s *servers.Settings) { s.Command = []string{"x"} }, "command: is not for"},
		{"a ceiling", func(s *servers.Settings) { s.Ceiling = "read-only" }, "ceiling: is not for"},
		{"a sandbox, and no trust", func(s *servers.Settings) { s.Sandbox = "read-only" }, "sandbox: goes with trusted"},
		{"approvals, and no trust", func(s *servers.Settings) { s.Approval = "never" }, "approval: goes with trusted"},
		{"variables, and no trust", func(s *servers.Settings) { s.Env = []string{"A"} }, "env: goes with trusted"},
		{"more to read, and no trust", func(s *servers.Settings) { s.Readable = []string{"/"} }, "readable: goes with trusted"},
		{"trust", func(s *servers.Settings) {
			s.Trusted, s.Sandbox, s.Approval, s.Env, s.Readable = true, "read-only", "untrusted", []string{"A", "B=c"}, []string{"/opt"}
		}, ""},
		{"trust in a word", func(s *servers.Settings) { s.Trusted, s.Sandbox = true, "none" }, "sandbox: none"},
		{"trust in another word", func(s *servers.Settings) { s.Trusted, s.Approval = true, "always" }, "approval: always"},
		{"trust with our variables", func(s *servers.Settings) { s.Trusted, s.Env = true, []string{"SWITCHBOARD_KEY"} }, "env[0]: SWITCHBOARD_KEY"},
		{"trust and nothing to read", func(s *servers.Settings) { s.Trusted, s.Readable = true, []string{"/none"} }, "readable[0]: must be"},
		{"trust everywhere", func(s *servers.Settings) { s.Trusted, s.Workspace = true, "/" }, "workspace: is the whole machine"},
	} {
		var found findings
		s := good
		c.change(&s)
		checkSettings(s, &found)
		if len(found) > 1 || (len(found) == 1) != (c.want != "") || len(found) == 1 && !strings.HasPrefix(found[0], c.want) {
			t.Errorf("%s: %q, want %q", c.name, []string(found), c.want)
		}
	}
}

// TestAgents: what is configured answers with the model, the key and the directory it was given, in all its threads,
// and ends with the stage.
func TestAgents(t *testing.T) {
	f := newFake(t, looksOnce("list_dir"))
	agents := NewAgents(threads.NewMemory())
	dir := t.TempDir()
	dial, metrics := agents.Kind().Dial(servers.Settings{
		Name: "helper", URL: f.server.URL + "/v1", Model: "m-1", Workspace: dir, Continuation: ResponseIDs, Token: func() (string, error) { return "k3y", nil },
	}, zaptest.NewLogger(t))
	lost, _ := agents.Kind().Dial(servers.Settings{Name: "lost", Workspace: dir + "/none"}, zaptest.NewLogger(t))
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	work.Go(func() { _ = agents.Run(ctx) })
	if _, err := lost(t.Context()); err == nil || handoff.AsError(err).Code != handoff.CodeUnreachable {
		t.Errorf("an agent without a workspace: %v", err)
	}
	link, err := dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a, err := link.Conn.Create(t.Context(), dir)
	if err != nil || !agents.Kind().IsThread(a.Target.Thread) || a.Workspace != dir {
		t.Fatalf("%+v, %v", a, err)
	}
	var id handoff.TurnID
	for { // until the stage runs
		if id, err = a.Agent.Start(t.Context(), handoff.Turn{ID: "a", Input: handoff.TextInput("look")}); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	text := ""
	for u, err := range a.Agent.Follow(t.Context(), id) {
		if end, ok := u.(handoff.TurnEnded); ok && err == nil {
			text = end.Text
		}
	}
	req := f.Requests()[0]
	if text != "done: look" || req.Model != "m-1" || req.Key != "Bearer k3y" || !strings.Contains(req.Instructions, "workspace") || req.CacheKey != a.Target.Thread {
		t.Errorf("%q after %+v", text, req)
	}
	turns := 0.0
	for m := range metrics {
		if m.Name == "switchboard_responses_turns_total" {
			turns = m.Value
		}
	}
	if turns != 1 {
		t.Errorf("%v turns were counted", turns)
	}
	if _, err := link.Conn.Create(t.Context(), "/"); err == nil || handoff.AsError(err).Code != handoff.CodeUnsupported {
		t.Errorf("a thread elsewhere: %v", err)
	}
}

package responses

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zaptest"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers"
	"switchboard/servers/responses/sandbox"
	"switchboard/servers/responses/workspace"
	"switchboard/servers/serverstest"
)

func TestCheck(t *testing.T) {
	good := Settings{URL: "https://api.openai.com/v1", Model: "m", Workspace: t.TempDir()}
	for _, c := range []struct {
		name   string
		change func(*Settings)
		want   string // how the only finding begins; "" for none
	}{
		{"good", func(*Settings) {}, ""},
		{"everything", func(s *Settings) {
			s.Continuation, s.Verbosity, s.Reasoning = ResponseIDs, "low", Reasoning{Effort: "low", Summary: "auto"}
		}, ""},
		{"on this machine", func(s *Settings) { s.URL = "http://127.0.0.1:8000/v1" }, ""},
		{"no address", func(s *Settings) { s.URL = "" }, "url: must be"},
		{"a socket", func(s *Settings) { s.URL = "ws://127.0.0.1:1" }, "url: must be"},
		{"a password", func(s *Settings) { s.URL = "https://me:pw@host/v1" }, "url: has a user name"},
		{"a query", func(s *Settings) { s.URL = "https://host/v1?version=1" }, "url: has a query"},
		{"in the clear", func(s *Settings) { s.URL = "http://host/v1" }, "url: http:// to another"},
		{"allowed in the clear", func(s *Settings) { s.URL, s.AllowPlaintext = "http://host/v1", true }, ""},
		{"nothing in the clear", func(s *Settings) { s.AllowPlaintext = true }, "allow_plaintext: "},
		{"no model", func(s *Settings) { s.Model = "" }, "model: is missing"},
		{"no directory", func(s *Settings) { s.Workspace = "" }, "workspace: must be"},
		{"a directory that is not there", func(s *Settings) { s.Workspace += "/none" }, "workspace: must be"},
		{"a continuation", func(s *Settings) { s.Continuation = "magic" }, `continuation: "magic"`},
		{"an effort", func(s *Settings) { s.Reasoning.Effort = "huge" }, `reasoning.effort: "huge"`},
		{"a summary", func(s *Settings) { s.Reasoning.Summary = "none" }, `reasoning.summary: "none"`},
		{"a verbosity", func(s *Settings) { s.Verbosity = "loud" }, `verbosity: "loud"`},
		{"encrypted", func(s *Settings) { s.Reasoning.Encrypted = true }, ""},
		{"encrypted and kept", func(s *Settings) { s.Reasoning.Encrypted, s.Continuation = true, ResponseIDs }, "continuation: response_ids needs"},
		{"encrypted, and kept all the same", func(s *Settings) {
			s.Reasoning.Encrypted, s.Continuation, s.Store, s.Include = true, ResponseIDs, new(true), []string{"message.output_text.logprobs"}
		}, ""},
		{"not kept", func(s *Settings) { s.Store = new(false) }, ""},
		{"not kept, by ids", func(s *Settings) { s.Continuation, s.Store = ResponseIDs, new(false) }, "store: response_ids needs"},
		{"a sandbox, and no trust", func(s *Settings) { s.Sandbox = "read-only" }, "sandbox: goes with trusted"},
		{"approvals, and no trust", func(s *Settings) { s.Approval = "never" }, "approval: goes with trusted"},
		{"variables, and no trust", func(s *Settings) { s.Env = []string{"A"} }, "env: goes with trusted"},
		{"more to read, and no trust", func(s *Settings) { s.Readable = []string{"/"} }, "readable: goes with trusted"},
		{"trust", func(s *Settings) {
			s.Trusted, s.Sandbox, s.Approval, s.Env, s.Readable = true, "read-only", "untrusted", []string{"A", "B=c"}, []string{"/opt"}
		}, ""},
		{"trust in a word", func(s *Settings) { s.Trusted, s.Sandbox = true, "none" }, `sandbox: "none"`},
		{"trust in another word", func(s *Settings) { s.Trusted, s.Approval = true, "always" }, `approval: "always"`},
		{"trust with our variables", func(s *Settings) { s.Trusted, s.Env = true, []string{"SWITCHBOARD_KEY"} }, "env[0]: SWITCHBOARD_KEY"},
		{"trust and nothing to read", func(s *Settings) { s.Trusted, s.Readable = true, []string{"/none"} }, "readable[0]: must be"},
		{"limits, and no trust", func(s *Settings) { s.Limits.Processes = 9 }, "limits: goes with trusted"},
		{"trust and no such user", func(s *Settings) { s.Trusted, s.User = true, "no-such-user" }, "user: there is no user"},
		{"trust and limits", func(s *Settings) {
			s.Trusted, s.Limits = true, Limits{Processes: 1, MemoryMiB: 2, TmpMiB: 3}
		}, ""},
		{"trust everywhere", func(s *Settings) { s.Trusted, s.Workspace = true, "/" }, "workspace: must not be the root"},
	} {
		s := good
		c.change(&s)
		found := serverstest.Check(&s)
		if len(found) > 1 || (len(found) == 1) != (c.want != "") || len(found) == 1 && !strings.HasPrefix(found[0], c.want) {
			t.Errorf("%s: %q, want %q", c.name, found, c.want)
		}
	}
}

// TestNotRun: nobody connects to an agent that does not run.
func TestNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(Config{Name: "unborn", Threads: threads.NewMemory(), Workspace: stub{}, Log: zaptest.NewLogger(t)})
		within, done := context.WithTimeout(t.Context(), time.Second)
		defer done()
		if _, err := s.Dial(within); err == nil || handoff.AsError(err).Code != handoff.CodeUnreachable {
			t.Errorf("what never runs: %v", err)
		}
	})
}

// TestAgents: a configured agent answers with its model, key and directory, in all its threads, and ends with the
// service.
func TestAgents(t *testing.T) {
	f := newFake(t, looksOnce("list_dir"))
	agents := NewAgents(threads.NewMemory(), nil)
	dir := t.TempDir()
	dial, metrics := agents.Kind().Dial(servers.Spec{Name: "helper", Own: &Settings{
		URL: f.server.URL + "/v1", Model: "m-1", Workspace: dir, Continuation: ResponseIDs,
		Key:       func() (string, error) { return "k3y", nil },
		Reasoning: Reasoning{Encrypted: true}, Store: new(true), Include: []string{"message.output_text.logprobs"},
	}}, zaptest.NewLogger(t))
	lost, _ := agents.Kind().Dial(servers.Spec{Name: "lost", Own: &Settings{Workspace: dir + "/none"}}, zaptest.NewLogger(t))
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	work.Go(func() { _ = agents.Run(ctx) })
	if _, err := lost(t.Context()); err == nil || handoff.AsError(err).Code != handoff.CodeUnreachable {
		t.Errorf("an agent without a workspace: %v", err)
	}
	link, err := dial(t.Context())
	must(t, err)
	a, err := link.Conn.Create(t.Context(), dir)
	if err != nil || !agents.Kind().IsThread(a.Target.Thread) || a.Workspace != dir {
		t.Fatalf("%+v, %v", a, err)
	}
	id, err := a.Agent.Start(t.Context(), handoff.Turn{ID: "a", Input: handoff.TextInput("look")})
	must(t, err)
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
	if want := []string{"message.output_text.logprobs", "reasoning.encrypted_content"}; !req.Store || !slices.Equal(req.Include, want) {
		t.Errorf("store %t, include %q", req.Store, req.Include)
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

// forCommands makes a workspace, and returns the user for its commands: nil unless the tests are root.
func forCommands(t *testing.T) (dir, user string) {
	t.Helper()
	dir = t.TempDir()
	if os.Geteuid() != 0 {
		return dir, ""
	}
	u, err := sandbox.LookupUser("nobody")
	must(t, err)
	must(t, errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chown(dir, u.UID, u.GID)))
	return dir, "nobody"
}

// TestAsRoot: as root no command runs until the configuration names a user for commands, and the card of the machine
// says so.
func TestAsRoot(t *testing.T) {
	work, as := forCommands(t)
	if as == "" {
		t.Log("the tests are not root")
		return
	}
	s := Settings{URL: "http://127.0.0.1:1/v1", Model: "m", Workspace: work, Trusted: true, Env: []string{"PATH"}}
	agents := NewAgents(threads.NewMemory(), nil)
	agents.Kind().Dial(servers.Spec{Name: "helper", Own: &s}, zaptest.NewLogger(t))
	if w := agents.workspaces[0]; !strings.Contains(w.About(), "It runs no commands: there is no sandbox for commands: this Switchboard runs as root") ||
		slices.Contains(w.Allowed(), "exec") || agents.servers[0].cfg.Note != w.About() {
		t.Error(w.About())
	}
	api := httptest.NewServer(http.NotFoundHandler())
	defer api.Close()
	s.URL = api.URL
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	running.Go(func() { _ = agents.Run(ctx) })
	check := func() error {
		dial, _ := agents.Kind().Dial(servers.Spec{Name: "helper", Own: &s}, zaptest.NewLogger(t))
		link, err := dial(ctx)
		must(t, err)
		return link.Check(ctx)
	}
	if err := check(); err == nil || !strings.Contains(err.Error(), "in the setting user") {
		t.Error(err)
	}
	s.User = as
	must(t, check())
}

// TestHidden: no command of an agent sees hidden directories, even without a sandbox.
func TestHidden(t *testing.T) {
	hidden := t.TempDir()
	must(t, os.WriteFile(filepath.Join(hidden, "secret"), []byte("secret"), 0o600))
	agents := NewAgents(threads.NewMemory(), func() []string { return []string{hidden} })
	work, as := forCommands(t)
	must(t, os.Chmod(filepath.Dir(hidden), 0o755))
	agents.Kind().Dial(servers.Spec{Name: "helper", Own: &Settings{
		URL: "http://127.0.0.1:1/v1", Model: "m", Workspace: work, Trusted: true, Sandbox: "danger-full-access",
		Approval: "never", User: as, Env: []string{"PATH"}, Key: func() (string, error) { return "", nil },
	}}, zaptest.NewLogger(t))
	w := agents.workspaces[0]
	t.Cleanup(func() { _ = w.Close() })
	if !slices.Contains(w.Allowed(), "exec") && os.Getenv("CI") != "true" {
		t.Skip(w.About())
	}
	got := w.Run(t.Context(), "exec", json.RawMessage(fmt.Sprintf(`{"command": "ls -a %s && cat %[1]s/secret"}`, hidden)), workspace.Call{Out: io.Discard})
	if !got.Failed || !strings.Contains(got.Text, ".\n..\n") || strings.Contains(got.Text, "\nsecret\n") {
		t.Errorf("it sees %q", got.Text)
	}
}

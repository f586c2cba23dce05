package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/codex"
	"switchboard/servers/transport"
	"switchboard/sessions/sessionstest"
)

// A realCodex is the real codex app-server with a fake model behind it.
type realCodex struct {
	t        testing.TB
	provider *fakeProvider
	home     string // CODEX_HOME
	work     string // where threads work
	url      string
	program  string // "": the newest
	kill     func() // ends it at once, as kill -9 does
}

// startCodex starts one, with more settings.
func startCodex(t testing.TB, more ...string) *realCodex { return startCodexOf(t, "", more...) }

// startCodexOf starts one of another version; "": the newest.
func startCodexOf(t testing.TB, program string, more ...string) *realCodex {
	t.Helper()
	return startCodexAt(t, program, fmt.Sprintf("ws://127.0.0.1:%d", sessionstest.FreePort(t)), more...)
}

// startCodexAt starts one that listens at an address, ws://… or unix://PATH.
func startCodexAt(t testing.TB, program, address string, more ...string) *realCodex {
	t.Helper()
	c := &realCodex{t: t, provider: newProvider(t), work: t.TempDir(), program: program, url: address}
	c.home = codexHome(t, c.provider, "thread_unload_delay_secs = 1\n"+strings.Join(more, "\n"), "")
	c.begin()
	return c
}

// codexHome makes a home for codex with a model that is played, and more settings: for the top of the file, and for its
// end. Plugins, of which none is used, and the looks at the shell of the user take half of the time of a thread.
func codexHome(t testing.TB, provider *fakeProvider, top, more string) string {
	t.Helper()
	home := t.TempDir()
	write(t, filepath.Join(home, "config.toml"), fmt.Sprintf(`model = "fake-model"
model_provider = "fake"
check_for_update_on_startup = false
features.plugins = false
features.shell_snapshot = false
%s
[analytics]
enabled = false
[model_providers.fake]
name = "fake"
base_url = "%s/v1"
wire_api = "responses"
requires_openai_auth = false
%s`, top, provider.URL, more))
	return home
}

// begin starts the app-server, also again after a kill.
func (c *realCodex) begin() {
	c.t.Helper()
	var lines <-chan string
	lines, c.kill = spawn(c.t, c.env(), c.work, cmp.Or(c.program, codexProgram(c.t)), "app-server", "--listen", c.url)
	path, socket := strings.CutPrefix(c.url, "unix://")
	if !socket {
		listens(c.t, lines, "listening on: "+c.url)
		return
	}
	for { // it prints nothing then
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case line, ok := <-lines:
			if !ok {
				c.t.Fatal("the app-server ended without its socket")
			}
			c.t.Log(line)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// env gives it a home of its own: what the shell of this machine's user prints at its start is no output of a command.
func (c *realCodex) env() []string { return codexEnv(c.home) }

func codexEnv(home string) []string { return []string{"CODEX_HOME=" + home, "HOME=" + home} }

// other is a client of the app-server that has nothing to do with Switchboard.
func (c *realCodex) other(cfg codex.Config) *servers.Link {
	c.t.Helper()
	cfg.Name = "other"
	link, err := codex.Dialer(cfg)(c.t.Context())
	must(c.t, err)
	c.t.Cleanup(func() { _ = link.Conn.Close() })
	return link
}

// asChild is one more app-server in the same home, as a child.
func (c *realCodex) asChild() codex.Config {
	way := &transport.Child{Command: []string{codexProgram(c.t), "app-server"}, Env: append(os.Environ(), c.env()...)}
	return codex.Config{Way: way, Cwd: c.work}
}

// thread makes a thread by another client, with one turn in it.
func (c *realCodex) thread(prompt string) string {
	c.t.Helper()
	return c.threadBy(*codexAt(c.url), prompt)
}

func (c *realCodex) threadBy(cfg codex.Config, prompt string) string {
	c.t.Helper()
	at, err := c.other(cfg).Conn.Create(c.t.Context(), c.work)
	must(c.t, err)
	turn, err := at.Agent.Start(c.t.Context(), handoff.Turn{ID: "other-1", Input: handoff.TextInput(prompt)})
	must(c.t, err)
	for u, err := range at.Agent.Follow(c.t.Context(), turn) {
		must(c.t, err)
		if end, ok := u.(handoff.TurnEnded); ok && end.Status != handoff.TurnCompleted {
			c.t.Fatalf("the first turn ended with %+v", end)
		}
	}
	must(c.t, at.Agent.Close())
	return at.Target.Thread
}

// plan points a service at the codex, under the name bigpc.
func (c *realCodex) plan(p *plan, approval, sandbox string) {
	p.Servers = []servers.Spec{{
		Name: "bigpc", Kind: "codex", Dir: c.work,
		Own: &codex.Config{Way: byURL(c.url), Approval: approval, Sandbox: sandbox},
	}}
}

// call begins a call of a new service that uses the codex, which asks before each command.
func (c *realCodex) call() (*running, *phone) {
	c.t.Helper()
	voice := scriptedVoice(c.t)
	r := start(c.t, func(p *plan) { p.Model = voice; c.plan(p, "untrusted", "danger-full-access") })
	r.up("bigpc")
	return r, r.call()
}

// TestRealCodex continues another client's thread from a voice call, by id and then without one, also after a restart.
func TestRealCodex(t *testing.T) {
	t.Parallel()
	c := startCodex(t)
	thread := c.thread("the first words")
	state, voice := t.TempDir(), scriptedVoice(t)
	begin := func() *running {
		return start(t, func(p *plan) {
			p.StateDir, p.Model = state, voice
			c.plan(p, "", "")
		})
	}
	r := begin()
	r.up("bigpc")
	p := r.call()
	p.say(fmt.Sprintf(`codex {"server":"bigpc","thread_id":%q,"prompt":"go on"}`, thread))
	p.hear("answer to: go on")
	p.say(`codex {"server":"bigpc","prompt":"and more"}`)
	p.hear("answer to: and more")
	r.allHeard()
	p.hangUp()
	first := p.spoken()
	r.stop()

	r = begin()
	r.up("bigpc")
	p = r.call()
	p.say(`codex {"server":"bigpc","prompt":"held"}`)
	p.hear(" on bigpc") // "Working on it", or "Getting ready" where codex takes its time to open the session
	c.provider.letsGo()
	p.hear("held answer to: held")
	p.hangUp()
	works := r.handoffs() // those from before the restart, too
	last := slices.IndexFunc(works, func(w handoff.Record) bool { return w.Prompt == "held" })
	if len(works) != 3 || last < 0 || works[last].ThreadID != thread || works[last].Why != "continued" {
		t.Errorf("after a restart the sticky session was not continued: %+v", works)
	}
	c.checkOnce(append(first, p.spoken()...), "go on", "and more", "held")
	if got := c.provider.prompts(); !slices.Equal(got, []string{"the first words", "go on", "and more", "held"}) {
		t.Errorf("turns: %q", got)
	}
	c.openElsewhere(thread)
}

// checkOnce holds that each answer was spoken once, and nothing of what the thread held before.
func (c *realCodex) checkOnce(said []string, prompts ...string) {
	c.t.Helper()
	all := strings.Join(said, "\n")
	for _, prompt := range prompts {
		if n := strings.Count(all, "answer to: "+prompt); n != 1 {
			c.t.Errorf("the answer to %q was spoken %d times: %q", prompt, n, said)
		}
	}
	if strings.Contains(all, "answer to: the first words") {
		c.t.Errorf("an old message was repeated: %q", said)
	}
}

// openElsewhere holds that after the call another codex process can open the thread.
func (c *realCodex) openElsewhere(thread string) {
	c.t.Helper()
	second := c.other(c.asChild())
	until(c.t, "another codex to open the session", func() bool {
		ctx, cancel := context.WithTimeout(c.t.Context(), patience)
		defer cancel()
		at, err := second.Conn.Attach(ctx, thread)
		if err != nil {
			if code := handoff.AsError(err).Code; code != handoff.CodeSessionInUse {
				c.t.Fatalf("opening it elsewhere: %v", err)
			}
			return false
		}
		return at.Agent.Close() == nil
	})
}

// TestRealCodexKeepsToTheCeiling: no work runs in a session that exceeds the ceiling, and a new session gets the
// configured policy.
func TestRealCodexKeepsToTheCeiling(t *testing.T) {
	t.Parallel()
	c := startCodex(t)
	thread := c.threadBy(codex.Config{Way: byURL(c.url), Sandbox: "danger-full-access", Approval: "never"}, "first")
	link := c.other(codex.Config{Way: byURL(c.url), Ceiling: "workspace-write"})
	at, err := link.Conn.Attach(t.Context(), thread)
	must(t, err)
	_, err = at.Agent.Start(t.Context(), handoff.Turn{ID: "ours-1", Input: handoff.TextInput("not here")})
	if e := handoff.AsError(err); e.Code != handoff.CodeRefused || !strings.HasPrefix(e.Detail, "ceiling: ") {
		t.Errorf("above the ceiling: %v", err)
	}
	_, err = link.Conn.Create(t.Context(), c.work) // the server's own default is stricter
	if err != nil {
		t.Errorf("a new session: %v", err)
	}
	if got := c.provider.prompts(); !slices.Equal(got, []string{"first"}) {
		t.Errorf("the model was asked %q", got)
	}
}

// TestOldestCodex continues a session of the oldest codex that Switchboard works with, and answers what it asks.
func TestOldestCodex(t *testing.T) {
	t.Parallel()
	c := startCodexOf(t, oldestCodex(t))
	r := start(t, func(p *plan) { c.plan(p, "untrusted", "danger-full-access") })
	r.up("bigpc")
	first := r.hand(`{"server":"bigpc","prompt":"the first words"}`)
	if rec := r.outcome(first); rec.Text != "answer to: the first words" {
		t.Errorf("%s %q", rec.Outcome, rec.Text)
	}
	file := filepath.Join(c.work, "made.md")
	next := r.hand(fmt.Sprintf(`{"server":"bigpc","prompt":"run touch %s"}`, file))
	r.decide(r.question(), "accept")
	if rec := r.outcome(next); rec.Why != handoff.WhyContinued || rec.ThreadID != r.whole(first).ThreadID {
		t.Errorf("%s %s in %s", rec.Outcome, rec.Why, rec.ThreadID)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// TestRealCodexSocket works with the real codex over a socket of this machine. A connection that is lost leaves its
// work running: whoever connects next has its result, and the model was asked once.
func TestRealCodexSocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "sb") // a socket's path has at most 107 bytes
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "codex.sock")
	c, state := startCodexAt(t, "", "unix://"+path), t.TempDir()
	on := func(p *plan) {
		p.StateDir = state
		p.Servers = []servers.Spec{{Name: "box", Kind: codex.Name, Dir: c.work, Own: &codex.Config{Way: &transport.Unix{Path: path}}}}
	}
	r := start(t, on)
	r.up("box")
	id := r.hand(`{"server":"box","prompt":"held"}`)
	until(t, "the agent to speak", func() bool { return len(r.whole(id).Items) > 0 })
	r.stop()
	r = start(t, on)
	r.up("box")
	c.provider.letsGo()
	if rec := r.outcome(id); rec.Outcome != handoff.OutcomeResult || rec.Text != "held answer to: held" {
		t.Errorf("%s %q", rec.Outcome, rec.Text)
	}
	if got := c.provider.prompts(); !slices.Equal(got, []string{"held"}) {
		t.Errorf("the model was asked %q", got)
	}
}

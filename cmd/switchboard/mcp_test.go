package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/handoff"
)

// bearer sends a key with each request.
type bearer string

func (key bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(key))
	return http.DefaultTransport.RoundTrip(r)
}

// agent connects another agent to /mcp.
func (r *running) agent(key, version string) *mcp.ClientSession {
	r.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "some-agent", Version: "1"}, nil)
	s, err := client.Connect(r.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: r.base + "/mcp", HTTPClient: &http.Client{Transport: bearer(key)}, MaxRetries: -1,
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	must(r.t, err)
	r.t.Cleanup(func() { _ = s.Close() })
	return s
}

// callTool calls a tool; the structured result says what the text says.
func callTool(t testing.TB, s *mcp.ClientSession, tool string, args map[string]any) (string, map[string]any) {
	t.Helper()
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	structure, _ := result.StructuredContent.(map[string]any)
	if structure == nil {
		t.Errorf("%s: no structure", tool)
	}
	return result.Content[0].(*mcp.TextContent).Text, structure
}

// TestMCP: another agent finds the machines, gives work and answers questions; the page, the history, the audit and the
// metrics name it.
func TestMCP(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			state := t.TempDir()
			r := start(t, func(p *plan) { p.Hurry, p.StateDir = 5, state })
			r.up("bigpc")
			s := r.agent(testKey, version)
			text, _ := callTool(t, s, "list_servers", nil)
			if !strings.Contains(text, "bigpc") || !strings.Contains(text, "attic") {
				t.Errorf("machines: %s", text)
			}
			text, structure := callTool(t, s, "codex", map[string]any{"server": "bigpc", "prompt": "run the tests"})
			for structure["status"] == "running" {
				text, structure = callTool(t, s, "wait", map[string]any{"work_id": structure["work_id"]})
			}
			if !strings.Contains(text, "TestRefreshExpiredToken") ||
				!strings.Contains(fmt.Sprint(structure["result"]), "TestRefreshExpiredToken") {
				t.Errorf("the tests: %s, %v", text, structure)
			}
			text, _ = callTool(t, s, "codex", map[string]any{"server": "cellar", "prompt": "x"})
			if !strings.Contains(text, "cellar") {
				t.Errorf("an unknown machine: %s", text)
			}
			text, structure = callTool(t, s, "codex", map[string]any{"server": "bigpc", "prompt": "push it"})
			if structure["question"] == nil || !strings.Contains(text, "git push") {
				t.Fatalf("a question: %s", text)
			}
			answer := map[string]any{"question": structure["question"], "decision": "decline"}
			if text, _ = callTool(t, s, "answer_agent", answer); text == "" {
				t.Error("nothing is said about an answer")
			}
			_, structure = callTool(t, s, "wait", map[string]any{"work_id": structure["work_id"]})
			if structure["status"] == "waiting" {
				t.Errorf("it still waits: %v", structure)
			}
			for _, rec := range r.allHeard() {
				if rec.Client != "some-agent" {
					t.Errorf("%q was asked by %q", rec.Prompt, rec.Client)
				}
			}
			audit, err := os.ReadFile(filepath.Join(state, "audit.jsonl"))
			must(t, err)
			var history []byte
			until(t, "the work to be history", func() bool { // a moment after it was heard
				_, history = r.ask(http.MethodGet, "/fleet/history", "")
				return strings.Contains(string(history), `"prompt":"push it"`)
			})
			_, figures := r.ask(http.MethodGet, "/metrics", "")
			for want, in := range map[string][]byte{
				`"client":"some-agent","server":"bigpc"`:                            audit,
				`"client":"some-agent","why":"continued","prompt":"push it"`:        history,
				`switchboard_mcp_calls_total{outcome="asked",tool="codex"} 1`:       figures,
				`switchboard_mcp_calls_total{outcome="done",tool="list_servers"} 1`: figures,
				`switchboard_mcp_calls_total{outcome="refused",tool="codex"} 1`:     figures,
				`switchboard_mcp_client_calls_total{client="other"} `:               figures,
			} {
				if !strings.Contains(string(in), want) {
					t.Errorf("%s is not in %.3000s", want, in)
				}
			}
		})
	}
}

// TestMCPKeys: /mcp takes only keys, refuses others without the header that would begin OAuth, shows a key the tools
// that it may use, and answers pages of other origins, since a key is in the request.
func TestMCPKeys(t *testing.T) {
	t.Parallel()
	few := ownersTestKey()
	few.Sum, few.Approve = sha256.Sum256([]byte("few-few-few-few-few")), handoff.ApproveNone
	few.Servers, few.Tools = []string{"laptop"}, []string{"codex", "list_servers"}
	r := start(t, func(p *plan) { p.Access = append(p.Access, few) })
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp",
		"/mcp/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/oauth/authorize", "/oauth/token"} {
		if status, _ := r.ask(http.MethodGet, path, ""); status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}
	list := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	resp, err := http.Post(r.base+"/mcp", "application/json", list)
	must(t, err)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("WWW-Authenticate") != "" {
		t.Errorf("without a key: %d, %q", resp.StatusCode, resp.Header.Get("WWW-Authenticate"))
	}
	s := r.agent("few-few-few-few-few", "2025-11-25")
	if listed, err := s.ListTools(t.Context(), nil); err != nil || len(listed.Tools) != 2 {
		t.Errorf("the tools of a key that has two: %v, %v", listed, err)
	}
	text, _ := callTool(t, s, "list_servers", nil)
	if strings.Contains(text, "bigpc") || !strings.Contains(text, "laptop") {
		t.Errorf("its machines: %s", text)
	}
	text, _ = callTool(t, s, "codex", map[string]any{"server": "bigpc", "prompt": "x"})
	if !strings.Contains(text, "I don't know a machine") {
		t.Errorf("work on a machine that it may not use: %s", text)
	}
}

// codexExec runs the real codex once, with its model played, and returns what it prints.
func codexExec(t *testing.T, provider *fakeProvider, servers, prompt string, env ...string) string {
	t.Helper()
	home, work := codexHome(t, provider, `approval_policy = "never"`, servers), t.TempDir()
	cmd := exec.CommandContext(t.Context(), codexProgram(t), "exec", "--skip-git-repo-check", "--cd", work, prompt)
	cmd.Env = append(append(codexEnv(home), "PATH="+os.Getenv("PATH")), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("codex exec: %v\n%s", err, out)
	}
	return string(out)
}

// TestRealCodexAsksByMCP: the real codex gives work by MCP, over HTTP with a key, and over standard input and output.
func TestRealCodexAsksByMCP(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"http", "stdio"} {
		t.Run(way, func(t *testing.T) {
			state := t.TempDir()
			r := start(t, func(p *plan) { p.Hurry, p.StateDir = 5, filepath.Join(state, "switchboard") })
			r.up("bigpc")
			provider := newProvider(t)
			provider.script = func(s *providerStream, items []providerItem) bool {
				if len(items) > 0 && items[len(items)-1].Type == "function_call_output" {
					s.say("It said: "+string(items[len(items)-1].Output), 0)
					return true
				}
				s.tool("mcp__sb", "codex", map[string]any{"server": "bigpc", "prompt": "run the tests"})
				return true
			}
			servers := fmt.Sprintf("[mcp_servers.sb]\nurl = %q\nbearer_token_env_var = \"SB_KEY\"\n", r.base+"/mcp")
			if way == "stdio" {
				const command = "[mcp_servers.sb]\ncommand = %q\nargs = [\"mcp\"]\nenv = {XDG_STATE_HOME = %q, %s = \"mcp\"}\n"
				servers = fmt.Sprintf(command, os.Args[0], state, childEnv)
			}
			servers += "required = true\nstartup_timeout_sec = 120\n" // codex begins once it has the tools, however late
			out := codexExec(t, provider, servers, "have the tests run on bigpc", "SB_KEY="+testKey)
			if !strings.Contains(out, "TestRefreshExpiredToken") {
				t.Errorf("codex says:\n%s", out)
			}
			works := r.handoffs()
			if len(works) != 1 || works[0].Client != "codex-mcp-client" {
				t.Errorf("works: %+v", works)
			}
		})
	}
}

// TestMCPPipe: the verb gives a program on this machine the tools as the owner; it ends with the program, and fails if
// no service runs.
func TestMCPPipe(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	start(t, func(p *plan) { p.StateDir = state })
	in, program := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- mcpPipe(t.Context(), state, in, out) }()
	lines := json.NewDecoder(answers)
	for i, ask := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_servers","arguments":{}}}`,
	} {
		_, err := io.WriteString(program, ask+"\n")
		must(t, err)
		var answer struct {
			ID     int
			Result json.RawMessage
		}
		if err := lines.Decode(&answer); err != nil || answer.ID != i || len(answer.Result) == 0 {
			t.Fatalf("%d: %+v, %v", i, answer, err)
		}
	}
	_ = program.Close()
	if err := <-ended; err != nil {
		t.Errorf("the program ended: %v", err)
	}
	err := mcpPipe(context.Background(), t.TempDir(), in, out)
	if err == nil || err.Error() != errNotRunning.Error() {
		t.Errorf("no service: %v", err)
	}
}

// TestProofMCPApart: by MCP, two keys on the same machines see nothing of each other.
func TestProofMCPApart(t *testing.T) {
	t.Parallel()
	other := ownersTestKey()
	other.Principal, other.Sum = "bob", sha256.Sum256([]byte("bobs-key-for-the-tests"))
	r := start(t, func(p *plan) { p.Hurry, p.Access = 20, append(p.Access, other) })
	r.up("bigpc")
	type person struct {
		agent  *mcp.ClientSession
		secret string
		works  []any
	}
	people := []*person{
		{agent: r.agent(testKey, "2025-11-25"), secret: "xylophone"},
		{agent: r.agent("bobs-key-for-the-tests", "2026-07-28"), secret: "zeppelin"},
	}
	for n := range scale(200, 10_000) {
		me, you := people[n%2], people[(n+1)%2]
		var yours any = "none"
		if len(you.works) > 0 {
			yours = you.works[n%len(you.works)]
		}
		ask := []struct {
			tool string
			args map[string]any
		}{
			{"status", nil}, {"list_sessions", nil}, {"list_sessions", map[string]any{"query": you.secret}},
			{"list_servers", nil}, {"wait", map[string]any{"work_id": yours}},
			{"read_session", map[string]any{"server": "bigpc", "thread_id": you.secret}},
			{"answer_agent", map[string]any{"question": "q1", "decision": "accept"}},
			{"stop_work", map[string]any{"server": "all"}},
		}[n/2%8]
		if n/2%20 == 0 {
			ask.tool, ask.args = "codex", map[string]any{
				"server": "bigpc", "thread_id": "new", "prompt": fmt.Sprintf("say %s %d", me.secret, n),
			}
		}
		text, structure := callTool(t, me.agent, ask.tool, ask.args)
		if id := structure["work_id"]; id != nil && ask.tool == "codex" {
			me.works = append(me.works, id)
		}
		whole := text + fmt.Sprint(structure)
		if strings.Contains(whole, you.secret+" ") || ask.tool == "wait" && structure["error"] == nil {
			t.Fatalf("%s %v: %s", ask.tool, ask.args, whole)
		}
	}
	if len(people[0].works) < 5 || len(people[1].works) < 5 {
		t.Errorf("works: %d and %d", len(people[0].works), len(people[1].works))
	}
}

package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/handoff"
)

// programID is the address of a program's document, and programBack where it is told.
const (
	programID   = "https://app.example/oauth/client.json"
	programBack = "https://app.example/back"
)

// programDocuments serves the document of one program, with one more address where it may be told.
type programDocuments string

func (more programDocuments) RoundTrip(r *http.Request) (*http.Response, error) {
	body := fmt.Sprintf(`{"client_id":%q,"client_name":"Some chat","redirect_uris":[%q,%q],"token_endpoint_auth_method":"none",`+
		`"grant_types":["authorization_code","refresh_token"]}`, programID, programBack, string(more))
	return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// letsIn starts a service into which programs may be let.
func letsIn(t testing.TB, more string, change func(*plan)) *running {
	return start(t, func(p *plan) {
		p.MCP.OAuth, p.Documents, p.Hurry = true, programDocuments(more), 5
		if change != nil {
			change(p)
		}
	})
}

// loggedIn logs a page in, by a link or with a key, and returns its token.
func (r *running) loggedIn(key string) string {
	r.t.Helper()
	body := `{"key":"` + key + `"}`
	if key == "" {
		link, err := r.link(r.t.Context(), "")
		must(r.t, err)
		_, code, _ := strings.Cut(link, "#login=")
		body = `{"code":"` + code + `"}`
	}
	var made struct{ Token string }
	status, got := r.ask(http.MethodPost, "/login", body, "Authorization", "", "Origin", r.base)
	if err := json.Unmarshal(got, &made); err != nil || status != http.StatusOK {
		r.t.Fatalf("login: %d %s", status, got)
	}
	return made.Token
}

// consent is what a person's page does with the address that a program opened; it returns where the browser goes then.
func (r *running) consent(page, address string, allow, answers bool) *url.URL {
	r.t.Helper()
	at, err := url.Parse(address)
	must(r.t, err)
	if !strings.HasPrefix(address, r.base+"/oauth/authorize?") {
		r.t.Fatalf("the program opens %s", address)
	}
	var asked struct {
		Program struct{ ID, Name, Host string }
		Tools   []string
	}
	status, got := r.ask(http.MethodPost, "/oauth/requests", handoff.Encode(map[string]string{"query": at.RawQuery}),
		"Authorization", "Bearer "+page, "Origin", r.base)
	must(r.t, json.Unmarshal(got, &asked))
	if status != http.StatusOK || asked.Program.Name != "Some chat" || asked.Program.Host != "app.example" || len(asked.Tools) < 9 {
		r.t.Fatalf("asked: %d %s", status, got)
	}
	status, got = r.ask(http.MethodPost, "/oauth/requests/"+asked.Program.ID, fmt.Sprintf(`{"allow":%v,"answers":%v}`, allow, answers),
		"Authorization", "Bearer "+page, "Origin", r.base)
	var to struct{ Redirect string }
	must(r.t, json.Unmarshal(got, &to))
	back, err := url.Parse(to.Redirect)
	if err != nil || status != http.StatusOK {
		r.t.Fatalf("decided: %d %s", status, got)
	}
	return back
}

// letInProgram is the SDK's own client of OAuth, and a session that it opened.
type letInProgram struct {
	*mcp.ClientSession
	oauth *auth.AuthorizationCodeHandler
}

// program connects, is let in by a person, and works.
func (r *running) program(page string, answers bool) letInProgram {
	r.t.Helper()
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		ClientIDMetadataDocumentConfig: &auth.ClientIDMetadataDocumentConfig{URL: programID}, RedirectURL: programBack,
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			q := r.consent(page, args.URL, true, answers).Query()
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
	})
	must(r.t, err)
	s, err := mcp.NewClient(&mcp.Implementation{Name: "some-chat", Version: "1"}, nil).Connect(r.t.Context(),
		&mcp.StreamableClientTransport{Endpoint: r.base + "/mcp", OAuthHandler: handler, MaxRetries: -1}, nil)
	must(r.t, err)
	r.t.Cleanup(func() { _ = s.Close() })
	return letInProgram{s, handler}
}

// tokens are those that the client has.
func (p letInProgram) tokens(t *testing.T) (access, refresh string) {
	t.Helper()
	source, err := p.oauth.TokenSource(t.Context())
	must(t, err)
	token, err := source.Token()
	must(t, err)
	return token.AccessToken, token.RefreshToken
}

// comesIn fails the test unless /mcp answers a bearer with this status.
func (r *running) comesIn(bearer string, want int) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.base+"/mcp",
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	must(r.t, err)
	req.Header = http.Header{"Authorization": {"Bearer " + bearer}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/list"}, "Origin": {"https://chat.example"}}
	resp, err := http.DefaultClient.Do(req)
	must(r.t, err)
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	challenge := fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp", scope="switchboard"`, r.base)
	if resp.StatusCode != want || (want == http.StatusUnauthorized) != (resp.Header.Get("WWW-Authenticate") == challenge) {
		r.t.Errorf("%d, %q, %s; want %d", resp.StatusCode, resp.Header.Get("WWW-Authenticate"), body, want)
	}
}

// apps are the programs that are let in, as a list shows them.
func (r *running) apps(headers ...string) (all []struct{ ID, Name, Host string }) {
	r.t.Helper()
	status, got := r.ask(http.MethodGet, "/fleet/apps", "", headers...)
	var list struct {
		Items []struct{ ID, Name, Host string }
	}
	if err := json.Unmarshal(got, &list); err != nil || status != http.StatusOK {
		r.t.Fatalf("%d %s", status, got)
	}
	return list.Items
}

// TestOAuth: a program that takes no key is let in on the page, works as a person does, may do no more than was
// allowed, and is disconnected in the terminal.
func TestOAuth(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	state := filepath.Join(home, "switchboard")
	r := letsIn(t, programBack, func(p *plan) { p.StateDir = state })
	r.up("bigpc")
	r.comesIn("", http.StatusUnauthorized)
	page := r.loggedIn("")
	s := r.program(page, false)
	text, structure := callTool(t, s.ClientSession, "codex", map[string]any{"server": "bigpc", "prompt": "run the tests"})
	for structure["status"] == "running" {
		text, structure = callTool(t, s.ClientSession, "wait", map[string]any{"work_id": structure["work_id"]})
	}
	if !strings.Contains(text, "TestRefreshExpiredToken") {
		t.Errorf("the tests: %s", text)
	}
	_, structure = callTool(t, s.ClientSession, "codex", map[string]any{"server": "bigpc", "prompt": "push it"})
	text, _ = callTool(t, s.ClientSession, "answer_agent", map[string]any{"question": structure["question"], "decision": "accept"})
	if !strings.Contains(text, "may not") && !strings.Contains(text, "page") {
		t.Errorf("it says yes where that was not allowed: %s", text)
	}
	callTool(t, s.ClientSession, "answer_agent", map[string]any{"question": structure["question"], "decision": "decline"})
	callTool(t, s.ClientSession, "wait", map[string]any{"work_id": structure["work_id"]})
	for _, rec := range r.allHeard() {
		if rec.Client != "some-chat" {
			t.Errorf("%q was asked by %q", rec.Prompt, rec.Client)
		}
	}
	access, _ := s.tokens(t)
	r.comesIn(access, http.StatusOK)
	for method, path := range map[string]string{"/fleet/servers": "GET", "/v1/models": "GET", "/fleet/apps": "GET", "/metrics": "GET", "/login": "GET", "/oauth/requests": "POST"} {
		if status, got := r.ask(path, method, `{}`, "Authorization", "Bearer "+access, "Origin", r.base); status != http.StatusUnauthorized {
			t.Errorf("the token at %s: %d %s", method, status, got)
		}
	}
	if all := r.apps("Authorization", "Bearer "+page, "Origin", r.base); len(all) != 1 || all[0].Name != "Some chat" || all[0].Host != "app.example" {
		t.Errorf("let in: %v", all)
	}
	if all := r.apps(); len(all) != 0 {
		t.Errorf("a key sees what a person let in: %v", all)
	}
	sh := &shell{t: t, r: r, env: map[string]string{"XDG_STATE_HOME": home}}
	out := sh.wants(0, []string{"Some chat", "app.example"}, "apps")
	id := regexp.MustCompile(`[a-z2-7]{12}`).FindString(out)
	sh.wants(0, []string{"disconnected"}, "apps", "--revoke", id)
	sh.wants(0, []string{"no program"}, "apps")
	sh.wants(1, []string{"There is no such program"}, "apps", "--revoke", id)
	r.comesIn(access, http.StatusUnauthorized)
	audit, err := os.ReadFile(filepath.Join(state, "audit.jsonl"))
	must(t, err)
	for what, want := range map[string]int{`"decision":"let_in"`: 1, `"decision":"disconnect"`: 1, `"client":"` + programID: 2} {
		if got := strings.Count(string(audit), what); got != want {
			t.Errorf("%s is %d times in the audit, want %d", what, got, want)
		}
	}
	_, figures := r.ask(http.MethodGet, "/metrics", "")
	if want := `switchboard_oauth_total{outcome="connected"} 1`; !strings.Contains(string(figures), want) {
		t.Errorf("%s is not in the metrics", want)
	}
}

// TestOAuthOverInstances: of two instances each takes any step of letting a program in. It works at both then, and is
// disconnected at both.
func TestOAuthOverInstances(t *testing.T) {
	t.Parallel()
	var all []*url.URL
	var turn atomic.Uint64
	balancer := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(all[turn.Add(1)%uint64(len(all))])
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(balancer.Close)
	address := startRedis(t)
	var r *running
	for range 2 {
		r = letsIn(t, programBack, func(p *plan) {
			p.Redis, p.Peers, p.PublicURL = newSecret(address), peerSettings{Listen: "127.0.0.1:0"}, balancer.URL
		})
		at, err := url.Parse(r.own)
		must(t, err)
		all = append(all, at)
	}
	page := r.loggedIn("")
	s := r.program(page, false)
	callTool(t, s.ClientSession, "list_servers", map[string]any{})
	access, _ := s.tokens(t)
	let := r.apps("Authorization", "Bearer "+page, "Origin", r.base)
	if len(let) != 1 {
		t.Fatalf("let in: %v", let)
	}
	comes := func(want int) {
		t.Helper()
		for range all {
			r.comesIn(access, want)
		}
	}
	comes(http.StatusOK)
	status, got := r.ask(http.MethodDelete, "/fleet/apps/"+let[0].ID, "{}", "Authorization", "Bearer "+page, "Origin", r.base)
	if status/100 != 2 {
		t.Errorf("disconnected: %d %s", status, got)
	}
	comes(http.StatusUnauthorized)
}

// TestOAuthByPrograms: no program lets another one in: not with a key, nor with a login that a program can make, nor
// from another page. What tells the way in is for anybody.
func TestOAuthByPrograms(t *testing.T) {
	t.Parallel()
	voice := ownersTestKey()
	voice.Sum, voice.Approve = sha256.Sum256([]byte("voice-voice-voice-voice")), handoff.ApproveVoice
	r := letsIn(t, programBack, func(p *plan) { p.Access = append(p.Access, voice) })
	query := url.Values{"response_type": {"code"}, "client_id": {programID}, "redirect_uri": {programBack}, "resource": {r.base + "/mcp"},
		"code_challenge": {strings.Repeat("x", 43)}, "code_challenge_method": {"S256"}}.Encode()
	body := handoff.Encode(map[string]string{"query": query})
	page := r.loggedIn("")
	for name, c := range map[string]struct {
		bearer, origin string
		want           int
	}{
		"the page":                        {page, r.base, 200},
		"a key":                           {testKey, r.base, 403},
		"nobody":                          {"", r.base, 401},
		"a login that a program can make": {r.loggedIn("voice-voice-voice-voice"), r.base, 403},
		"another page":                    {page, "https://evil.example", 403},
	} {
		bearer := "Bearer " + c.bearer
		if c.bearer == "" {
			bearer = ""
		}
		if status, got := r.ask(http.MethodPost, "/oauth/requests", body, "Authorization", bearer, "Origin", c.origin); status != c.want {
			t.Errorf("%s: %d %s", name, status, got)
		}
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server"} {
		if status, got := r.ask(http.MethodGet, path, "", "Authorization", "", "Origin", "https://chat.example"); status != http.StatusOK || !strings.Contains(string(got), r.base) {
			t.Errorf("%s: %d %s", path, status, got)
		}
	}
	if status, _ := r.ask(http.MethodGet, "/.well-known/openid-configuration", ""); status != http.StatusNotFound {
		t.Errorf("OpenID: %d", status)
	}
}

// TestOAuthInspector: the protocol's own inspector, which is a program on the person's computer, is let in.
func TestOAuthInspector(t *testing.T) {
	t.Parallel()
	port := loopback(t)
	back := "http://" + port.Addr().String() + "/oauth/callback"
	r := letsIn(t, back, nil)
	r.up("bigpc")
	page := r.loggedIn("")
	must(t, port.Close())
	cmd := exec.CommandContext(t.Context(), modernNode(t), npmFile(t, "@modelcontextprotocol/inspector/clients/launcher/build/index.js"),
		"--cli", r.base+"/mcp", "--transport", "http", "--client-metadata-url", programID, "--callback-url", back,
		"--method", "tools/call", "--tool-name", "list_servers")
	cmd.Env = append(cmd.Environ(), "HOME="+t.TempDir(), "MCP_AUTO_OPEN_ENABLED=true")
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		_ = in.Close()
		ended <- err
	}()
	var said strings.Builder
	address := regexp.MustCompile(regexp.QuoteMeta(r.base) + `/oauth/authorize\?\S+`)
	let := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if at := address.FindString(lines.Text()); at != "" && !let {
			let = true
			resp, err := http.Get(r.consent(page, at, true, false).String())
			must(t, err)
			_ = resp.Body.Close()
		}
	}
	if err := <-ended; err != nil || !let || !strings.Contains(said.String(), "bigpc") {
		t.Errorf("%v\n%s", err, said.String())
	}
}

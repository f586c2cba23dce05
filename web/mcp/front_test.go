package mcp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/handoff"
	"switchboard/handoff/tools"
	"switchboard/web/mcp"
)

// frontOf returns a front over a fleet.
func frontOf(t testing.TB, f *fleet, adjust func(*mcp.Config)) *mcp.Front {
	cfg := mcp.Config{
		Backend: tools.Backend{Directory: f, Resolver: f, Work: f, Questions: f, Handoffs: f, Decisions: f},
		Trace:   func(_ string, from http.Header) handoff.Span { return span(from.Get("Traceparent")) },
		Work:    f, Version: "1", Page: func() string { return "http://page.example/" },
	}
	if adjust != nil {
		adjust(&cfg)
	}
	front := mcp.New(cfg)
	t.Cleanup(front.Close)
	return front
}

// serve serves a fleet over HTTP. The header X-Who of a request names its caller.
func serve(t testing.TB, f *fleet, patience time.Duration) string {
	front := frontOf(t, f, func(cfg *mcp.Config) { cfg.Patience = patience })
	return serveWith(t, func(w http.ResponseWriter, r *http.Request) error {
		who := r.Header.Get("X-Who")
		g := handoff.Grant{Caller: handoff.Caller{Principal: who}, Key: who, Approve: handoff.ApproveAll}
		if who == "guest" {
			g.Approve, g.Tools = handoff.ApproveNone, []string{tools.ListServers, tools.Codex, tools.Status}
		}
		return front.Serve(w, r, g)
	})
}

// owner is the grant of the owner.
var owner = handoff.Grant{Caller: handoff.Caller{Principal: "owner"}, Approve: handoff.ApproveAll}

// serveWith serves requests over HTTP, and returns the address.
func serveWith(t testing.TB, serve func(http.ResponseWriter, *http.Request) error) string {
	s := httptest.NewServer(handler(serve))
	t.Cleanup(s.Close)
	return s.URL
}

func handler(serve func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := serve(w, r); err != nil {
			handoff.AsError(err).Reply(w, false)
		}
	})
}

// as is a transport that sends requests as a caller.
type as string

func (who as) RoundTrip(r *http.Request) (*http.Response, error) {
	return with{"X-Who": string(who)}.RoundTrip(r)
}

// with is a transport that sends requests with these headers.
type with map[string]string

func (headers with) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// connect begins a session of a client. answer answers the forms that its user gets; nil: the client has no forms.
func connect(
	t *testing.T, url string, who as, version string, answer func(*sdk.ElicitParams) *sdk.ElicitResult,
) *sdk.ClientSession {
	t.Helper()
	var options sdk.ClientOptions
	if answer != nil {
		options.ElicitationHandler = func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return answer(r.Params), nil
		}
	}
	session, err := connectOver(t, &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: who}}, version, &options)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// connectOver begins a session over a transport, which tries nothing twice.
func connectOver(
	t *testing.T, way *sdk.StreamableClientTransport, version string, options *sdk.ClientOptions,
) (*sdk.ClientSession, error) {
	way.MaxRetries = -1
	client := sdk.NewClient(&sdk.Implementation{Name: "some-agent", Version: "7"}, options)
	session, err := client.Connect(t.Context(), way, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err == nil {
		t.Cleanup(func() { _ = session.Close() })
	}
	return session, err
}

// say calls a tool and returns the text of its result, with the prefix "error: " if it is an error.
func say(t *testing.T, s *sdk.ClientSession, tool string, args map[string]any) string {
	t.Helper()
	result, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	text := result.Content[0].(*sdk.TextContent).Text
	if result.IsError {
		text = "error: " + text
	}
	if result.StructuredContent == nil {
		t.Errorf("%s: no structured content", tool)
	}
	return text
}

// says is say, and holds that the text has these words.
func says(t *testing.T, s *sdk.ClientSession, tool string, args map[string]any, want ...string) string {
	t.Helper()
	got := say(t, s, tool, args)
	for _, words := range want {
		if !strings.Contains(got, words) {
			t.Errorf("%s %v: %q is missing in: %s", tool, args, words, got)
		}
	}
	return got
}

// onBigpc are the arguments of work there.
func onBigpc(prompt string) map[string]any {
	return map[string]any{"server": "bigpc", "prompt": prompt}
}

func versions() []string { return []string{"2025-06-18", "2025-11-25", "2026-07-28"} }

// TestVersions: every version of the protocol offers the tools of the grant, and they work.
func TestVersions(t *testing.T) {
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			f := newFleet()
			s := connect(t, serve(t, f, time.Minute), "owner", version, nil)
			if sessionless := version >= "2026"; (s.ID() == "") != sessionless ||
				s.InitializeResult().ProtocolVersion != version {
				t.Fatalf("session %q of version %s", s.ID(), s.InitializeResult().ProtocolVersion)
			}
			list, err := s.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range list.Tools {
				names = append(names, tool.Name)
			}
			want := []string{
				"answer_agent", "codex", "list_servers", "list_sessions", "name_session", "queue_next", "read_session",
				"remove_worktree", "run_on_server", "status", "stop_work", "wait", "watch",
			}
			if diff := cmp.Diff(want, names); diff != "" {
				t.Errorf("tools: -want +got:\n%s", diff)
			}
			says(t, s, "codex", onBigpc("run the tests"), "Done: run the tests")
			says(t, s, "codex", map[string]any{"server": "nowhere", "prompt": "x"}, "error: ")
			says(t, s, "codex", map[string]any{"server": "bigpc", "sandbox": "none", "prompt": "x"}, "sandbox")
		})
	}
}

// TestAnnotations: by the hints, Codex does not ask its user before a tool that reads or gives work, and asks before
// one that stops work or allows a command.
func TestAnnotations(t *testing.T) {
	s := connect(t, serve(t, newFleet(), time.Minute), "owner", "2025-11-25", nil)
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		a := tool.Annotations
		unasked := a.ReadOnlyHint ||
			a.DestructiveHint != nil && !*a.DestructiveHint && a.OpenWorldHint != nil && !*a.OpenWorldHint
		if want := tool.Name != "stop_work" && tool.Name != "answer_agent"; unasked != want {
			t.Errorf("%s: runs unasked %v, want %v", tool.Name, unasked, want)
		}
		reads := []string{"list_servers", "list_sessions", "read_session", "status", "wait"}
		if a.ReadOnlyHint != slices.Contains(reads, tool.Name) {
			t.Errorf("%s: read only %v", tool.Name, a.ReadOnlyHint)
		}
	}
}

// TestWait: work that takes longer is answered with its id; wait returns its outcome, once.
func TestWait(t *testing.T) {
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			f := newFleet()
			s := connect(t, serve(t, f, 20*time.Millisecond), "owner", version, nil)
			says(t, s, "codex", onBigpc("wait for it"), "work_id: w-1")
			if got := says(t, s, "wait", map[string]any{"work_id": "w-1"}, "work_id: w-1"); strings.Contains(got, "waited") {
				t.Errorf("wait: %s", got)
			}
			f.finish("w-1", handoff.OutcomeResult, "I waited.")
			says(t, s, "wait", map[string]any{"work_id": "w-1"}, "I waited.")
			says(t, s, "wait", map[string]any{"work_id": "w-9"}, "error: ")
		})
	}
}

// TestNamesTheWay: outcomes do not come by themselves here, so a text about a later outcome names the tool wait.
func TestNamesTheWay(t *testing.T) {
	f := newFleet()
	s := connect(t, serve(t, f, 20*time.Millisecond), "owner", "2026-07-28", nil)
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if strings.Contains(tool.Description, "by itself") {
			t.Errorf("%s: %s", tool.Name, tool.Description)
		}
	}
	says(t, s, "codex", onBigpc("wait for it"), "Call wait with this work_id")
	f.change(func() {
		f.questions = []handoff.RecordQuestion{{Handoff: "w-1", Server: "bigpc", Label: "q1", Tap: "it is risky"}}
	})
	if got := say(t, s, "status", nil); strings.Count(got, "work_id w-1") != 2 {
		t.Errorf("status: %s", got)
	}
	f.change(func() { f.questions = nil })
	stopped := says(t, s, "stop_work", nil, "Stopping")
	says(t, s, "status", nil, "stopped, just now; work_id w-1")
	f.change(func() {
		f.records = append(f.records, handoff.Record{
			ID: "w-2", Server: "bigpc", Title: "owner", Why: handoff.WhyAdded, Outcome: handoff.OutcomeResult,
		})
	})
	added := says(t, s, "wait", map[string]any{"work_id": "w-2"}, "Call wait with this work_id")
	if strings.Contains(stopped+added, "by itself") {
		t.Errorf("%s\n%s", stopped, added)
	}
}

// TestWaitsForThePage: a client that waits for work with a question that only the page can answer learns that once, and
// then waits.
func TestWaitsForThePage(t *testing.T) {
	f := newFleet()
	s := connect(t, serve(t, f, time.Minute), "owner", "2025-11-25", nil)
	says(t, s, "codex", onBigpc("danger"), "q1")
	says(t, s, "answer_agent", map[string]any{"question": "q1", "decision": "accept"}, "http://page.example/")
	go func() {
		f.until(func() bool { return f.followers == 1 })
		_ = f.Decide(t.Context(), handoff.Grant{Page: true}, "question of w-1", handoff.DecisionAccept)
	}()
	if got := says(t, s, "wait", map[string]any{"work_id": "w-1"}, "It was accepted."); strings.Contains(got, "page.example") {
		t.Errorf("wait: %s", got)
	}
}

// TestSameWords: an equal request is the same work until its outcome was read, over any connection.
func TestSameWords(t *testing.T) {
	f := newFleet()
	url := serve(t, f, 20*time.Millisecond)
	ask := onBigpc("wait for it")
	first := connect(t, url, "owner", "2025-11-25", nil)
	say(t, first, "codex", ask)
	say(t, first, "codex", ask)
	say(t, connect(t, url, "owner", "2026-07-28", nil), "codex", ask)
	if n := f.count(); n != 1 {
		t.Errorf("asked three times: %d works", n)
	}
	say(t, connect(t, url, "guest", "2025-11-25", nil), "codex", ask)
	if n := f.count(); n != 2 {
		t.Errorf("somebody else asks: %d works", n)
	}
	f.finish("w-1", handoff.OutcomeResult, "I waited.")
	says(t, first, "codex", ask, "I waited.", "the same request, made")
	f.until(func() bool { return f.told == 1 }) // a moment after the client has it
	say(t, first, "codex", ask)
	if n := f.count(); n != 3 {
		t.Errorf("asked after the outcome was told: %d works", n)
	}
}

// TestGoneClient: when a client leaves, its work goes on, and an outcome that it has not read waits.
func TestGoneClient(t *testing.T) {
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			f := newFleet()
			s := connect(t, serve(t, f, time.Minute), "owner", version, nil)
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan error, 1)
			go func() {
				_, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "codex", Arguments: onBigpc("wait for it")})
				gone <- err
			}()
			f.until(func() bool { return f.followers == 1 })
			cancel()
			if err := <-gone; err == nil {
				t.Error("a cancelled call was answered")
			}
			f.until(func() bool { return f.followers == 0 })
			f.finish("w-1", handoff.OutcomeResult, "I waited.")
			says(t, s, "codex", onBigpc("wait for it"), "I waited.")
			if n := f.count(); n != 1 {
				t.Errorf("asked again: %d works", n)
			}
		})
	}
}

// TestForms: a client with forms gets those questions that an API may answer; a form that is declined
// declines, and one that is put away decides nothing; only the page answers dangerous ones.
func TestForms(t *testing.T) {
	allow := func(*sdk.ElicitParams) *sdk.ElicitResult {
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "accept"}}
	}
	fill := func(*sdk.ElicitParams) *sdk.ElicitResult {
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "here", "answer2": "it is late"}}
	}
	decline := func(*sdk.ElicitParams) *sdk.ElicitResult { return &sdk.ElicitResult{Action: "decline"} }
	putAway := func(*sdk.ElicitParams) *sdk.ElicitResult { return &sdk.ElicitResult{Action: "cancel"} }
	for _, version := range versions() {
		for _, tc := range []struct {
			name, prompt string
			who          as
			answer       func(*sdk.ElicitParams) *sdk.ElicitResult
			asked        int
			decided      string
			says         []string
		}{
			{"allowed", "ask", "owner", allow, 1, "accept", []string{"It was accepted."}},
			{"declined", "ask", "owner", decline, 1, "decline", []string{"It was declineed."}},
			{"put away", "ask", "owner", putAway, 1, "", []string{"q1", "go test", "work_id: w-1"}},
			{"no forms", "ask", "owner", nil, 0, "", []string{"q1", "go test", "answer_agent"}},
			{"a key whose yes does not count", "ask", "guest", allow, 0, "", []string{
				"q1", "go test", "A yes counts only on the page: this key may not answer for you.", "http://page.example/",
				"switchboard login guest",
			}},
			{"a field for each", "form", "owner", fill, 1, "[[here] [it is late]]", []string{"It was [[here] [it is late]]ed."}},
			{"a secret", "secret", "owner", fill, 0, "", []string{"q1", "Where?"}},
			{"danger", "danger", "owner", allow, 0, "", []string{"rm -rf", "page", "http://page.example/"}},
		} {
			t.Run(version+" "+tc.name, func(t *testing.T) {
				f := newFleet()
				asked, answer := 0, tc.answer
				if answer != nil {
					answer = func(p *sdk.ElicitParams) *sdk.ElicitResult {
						asked++
						if !strings.Contains(p.Message, "go test") || !strings.Contains(p.Message, "medium") {
							t.Errorf("the form says %q", p.Message)
						}
						return tc.answer(p)
					}
				}
				got := says(t, connect(t, serve(t, f, time.Minute), tc.who, version, answer), "codex", onBigpc(tc.prompt), tc.says...)
				if strings.Contains(got, "nothing was begun") {
					t.Errorf("its own work counts as a repetition: %s", got)
				}
				if asked != tc.asked || strings.Join(f.decided, " ") != tc.decided || f.count() != 1 {
					t.Errorf("asked %d times, decided %q, %d works", asked, f.decided, f.count())
				}
			})
		}
	}
}

// TestSessions: a session cannot be used by another caller, and the number of sessions is limited.
func TestSessions(t *testing.T) {
	f := newFleet()
	url := serve(t, f, time.Minute)
	s := connect(t, url, "owner", "2025-11-25", nil)
	r, err := http.NewRequestWithContext(
		t.Context(), http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{
		"Content-Type":   {"application/json"},
		"Accept":         {"application/json, text/event-stream"},
		"Mcp-Session-Id": {s.ID()},
	}
	resp, err := as("guest").RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode < 400 {
		t.Errorf("a foreign session: %d", resp.StatusCode)
	}
	refused := 0
	for range 70 {
		way := &sdk.StreamableClientTransport{
			Endpoint: url, HTTPClient: &http.Client{Transport: as("greedy")}, DisableStandaloneSSE: true,
		}
		if _, err := connectOver(t, way, "2025-11-25", nil); err != nil {
			refused++
		}
	}
	if refused != 6 {
		t.Errorf("%d of 70 sessions refused, want 6", refused)
	}
	says(t, s, "list_servers", nil, "bigpc") // the others' sessions do not end it
}

// TestSessionNamesTheInstance: with several instances, the id of a session contains that of its instance.
func TestSessionNamesTheInstance(t *testing.T) {
	f := newFleet()
	for _, instance := range []string{"", "AB2"} {
		front := frontOf(t, f, func(cfg *mcp.Config) { cfg.Instance = instance })
		url := serveWith(t, func(w http.ResponseWriter, r *http.Request) error { return front.Serve(w, r, owner) })
		before, rest, found := strings.Cut(connect(t, url, "owner", "2025-11-25", nil).ID(), "_")
		if instance == "" && (found || len(before) < 20) || instance != "" && (before != instance || len(rest) < 20) {
			t.Errorf("instance %q: session %s %s", instance, before, rest)
		}
	}
}

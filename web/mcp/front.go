// Package mcp offers the table of tools to other agents by the Model Context Protocol: Codex, other coding agents,
// editors and desktop apps use the machines as a person does by voice. It is a front over the same table, with the
// protocol's sessions, progress, questions and limits around it.
//
// It must not know a router, a voice call or a page: it gives work through [tools.Backend], and passes on the results.
//
// # What clients of today need
//
// Several clients give up after 60 seconds without an answer, so every call is answered within [patience]: with the
// outcome if there is one, or else with the id of the work, for the tool wait. A client that leaves or cancels ends its
// wait, but not the work. Models repeat their request when a connection broke, so the same call is the same work for 24
// hours, until its outcome was written to the client. A call that is repeated with the answer of the client's user to a
// form only waits for the work that asked.
//
// Some clients give their model only the structured result, others only the text, so each of them is complete. Versions
// of the protocol up to 2025-11-25 have sessions, 2026-07-28 has none; one address serves both, by the header
// MCP-Protocol-Version (specification 2026-07-28, "Transports").
package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

const (
	// patience bounds the time for one answer: some clients give up after 60 s.
	patience = 45 * time.Second
	// sessionIdle is when a session ends that has no request and no open stream. Its client can begin another one.
	sessionIdle = 10 * time.Minute
	// maxSessions bounds the open sessions of one caller, and maxKeySessions those of one key with all the callers that
	// it names; more are refused.
	maxSessions    = 64
	maxKeySessions = 512
	// sessionless is the first version of the protocol without sessions.
	sessionless = "2026-07-28"
)

// Work is what the front needs beside the tools.
type Work interface {
	// Told records that the client that asked for work was told its outcome.
	Told(ctx context.Context, g handoff.Grant, id handoff.ID) error
	// Recovered waits until the work of an earlier process has been read, for at most within.
	Recovered(ctx context.Context, within time.Duration) error
}

// Config is what a front needs. All but Page and Log are required.
type Config struct {
	Backend tools.Backend
	Work    Work
	Version string        // of Switchboard, for clients
	Page    func() string // the address of the page, for questions that only a tap answers; nil or "": not shown
	Log     *zap.Logger   // nil: none

	Trace handoff.Tracer // for calls that give work

	// Instance is the id of this instance, which is part of the ids of its sessions, so that requests are forwarded to
	// it; "" for a single instance.
	Instance string

	// Patience is how long one answer may take; 0: [patience]. Idle and Beat are [sessionIdle] and [beat] in the same
	// way. Tests shorten them.
	Patience, Idle, Beat time.Duration
}

// A Front serves the protocol. It is safe for concurrent use.
type Front struct {
	cfg      Config       // Set once
	sessions http.Handler // Set once: for versions of the protocol with sessions
	requests http.Handler // Set once: for versions without
	calls    tally        // safe for concurrent use

	mu   sync.Mutex
	open map[*mcp.Server]*session // Guarded by mu: the open sessions, at most maxSessions for each caller
}

// New returns a front.
func New(cfg Config) *Front {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	cfg.Patience = cmp.Or(cfg.Patience, patience)
	cfg.Idle, cfg.Beat = cmp.Or(cfg.Idle, sessionIdle), cmp.Or(cfg.Beat, beat)
	cfg.Backend.WorkIDs = true // for [Wait]
	f := &Front{cfg: cfg, open: map[*mcp.Server]*session{}}
	server := func(r *http.Request) *mcp.Server {
		s, _ := r.Context().Value(serverKey{}).(*mcp.Server)
		return s
	}
	// The edge has checked Host and Origin, and bounded the body.
	f.sessions = bound(mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		DisableLocalhostProtection: true, MaxRequestBodyBytes: -1,
	}))
	f.requests = bound(mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, DisableLocalhostProtection: true, MaxRequestBodyBytes: -1,
	}))
	return f
}

// serverKey is the context key of the server for a request that begins a session, or has none.
type serverKey struct{}

// An asker is who sent a request.
type asker struct {
	grant   handoff.Grant
	telling *telling // of the answer
}

// askerKey is the context key of the [asker] of an HTTP request, and its name in a request of the library.
type askerKey struct{}

const askerName = "asker"

// bound binds sessions to the key and caller that began them: nobody else can use a session's id.
func bound(h http.Handler) http.Handler {
	verify := func(_ context.Context, _ string, r *http.Request) (*auth.TokenInfo, error) {
		who, _ := r.Context().Value(askerKey{}).(asker)
		user := who.grant.Key + " " + who.grant.Caller.String()
		return &auth.TokenInfo{UserID: user, Extra: map[string]any{askerName: who}}, nil
	}
	return auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(h)
}

// Patterns returns the routes of the front.
func (f *Front) Patterns() []string { return []string{"POST /mcp", "GET /mcp", "DELETE /mcp"} }

// Serve answers a request that the edge has authorised.
func (f *Front) Serve(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	who := asker{g, new(telling)}
	ctx, server, handler := context.WithValue(r.Context(), askerKey{}, who), f.server(who), f.sessions
	if r.Header.Get("Mcp-Protocol-Version") >= sessionless {
		handler = f.requests
	} else if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" { // the request begins a session
		if err := f.keep(server, g); err != nil {
			return err
		}
		defer f.begun(server)
	} else {
		defer f.use(r.Header.Get("Mcp-Session-Id"))()
	}
	r = r.Clone(context.WithValue(ctx, serverKey{}, server))
	r.Header.Set("Authorization", "Bearer known") // the library requires one; the edge has checked the key
	out, end := newStream(w, f.cfg.Beat)
	defer end()
	handler.ServeHTTP(watchedAnswer{out, r, who.telling, f.told}, r)
	return nil
}

// Pipe serves one session over a connection with one message in each line, until the connection or ctx ends.
func (f *Front) Pipe(ctx context.Context, conn io.ReadWriteCloser, g handoff.Grant) error {
	who := asker{g, new(telling)}
	server := f.server(who)
	if err := f.keep(server, g); err != nil {
		return err
	}
	defer f.begun(server)
	watched := watchedPipe{conn, who.telling, f.told}
	return server.Run(ctx, &mcp.IOTransport{Reader: watched, Writer: watched})
}

// newSessionID returns a random id, with the id of the instance if there are several.
func (f *Front) newSessionID() string {
	if f.cfg.Instance == "" {
		return rand.Text()
	}
	return f.cfg.Instance + "_" + rand.Text()
}

// server returns a server with the tools of who asks, for one session, or for one request without a session.
func (f *Front) server(who asker) *mcp.Server {
	s := mcp.NewServer(
		&mcp.Implementation{Name: "switchboard", Title: "Switchboard", Version: f.cfg.Version},
		&mcp.ServerOptions{
			Instructions: instructions, GetSessionID: f.newSessionID,
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}, // the list does not change
			SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
		},
	)
	for _, t := range tools.All() {
		if who.grant.AllowsTool(t.Name) && !t.InCall {
			s.AddTool(describe(t), f.handler(who, t))
		}
	}
	if who.grant.AllowsTool(tools.Status) {
		s.AddTool(waitTool(), f.waitHandler(who))
	}
	return s
}

// Package mcp offers the table of tools to other agents by the Model Context Protocol: Codex, other coding agents,
// editors and desktop apps use the machines as a person does by voice. It is a front over the same table, with the
// protocol's sessions, progress, questions and limits around it.
//
// It must not know a router, a call or a page: it has work done through [tools.Backend], and gives on what comes of it.
//
// # What clients of today need
//
// Several give up after 60 seconds of silence, whatever happens, so every call is answered within [patience]: with the
// outcome if there is one, else with the id of the work, for the tool wait. A client that goes away, or cancels, ends
// its waiting and never the work. A model repeats its request when the connection broke. The same words for the same
// machine are one piece of work until somebody was told its outcome.
//
// Some clients give their model the structured result alone, others the text alone: each says everything. Versions up
// to 2025-11-25 keep a session, 2026-07-28 has none; one address serves both, by the header MCP-Protocol-Version
// (specification 2026-07-28, "Transports").
package mcp

import (
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
	// sessionIdle ends a session that nobody uses. Its client begins another by itself.
	sessionIdle = 10 * time.Minute
	// maxSessions bounds the sessions of one caller; more are refused until some are idle or closed.
	maxSessions = 64
	// sessionless is the first version of the protocol without sessions.
	sessionless = "2026-07-28"
)

// Work is what the front asks of work beside what the tools do.
type Work interface {
	// Heard notes that somebody was told the outcome.
	Heard(ctx context.Context, c handoff.Caller, id handoff.RunID) error
	// Recovered waits until it is known what a former life of the process left, for at most within.
	Recovered(ctx context.Context, within time.Duration) error
}

// Config is what a front needs. All but Page and Log are required.
type Config struct {
	Backend tools.Backend
	Work    Work
	Version string        // of Switchboard, for clients
	Page    func() string // the address of the page, for what only a tap answers; nil or "": it is not told
	Log     *zap.Logger   // nil: none

	Trace handoff.Tracer // of calls that give work

	// Instance is the id of this instance where there are several: it stands in the ids of sessions, which are here.
	// "": there is one.
	Instance string

	// Patience is how long one answer may take; 0: [patience]. Tests shorten it.
	Patience time.Duration
}

// A Front serves the protocol. It is safe for concurrent use.
type Front struct {
	cfg      Config       // Set once
	sessions http.Handler // Set once: versions that keep a session
	requests http.Handler // Set once: versions without
	same     sameWords    // safe by itself
	calls    tally        // safe by itself

	mu   sync.Mutex
	open map[*mcp.Server]session // Guarded by mu: the sessions of clients, at most maxSessions a caller
}

// A session is what is known of one session of a client.
type session struct {
	caller handoff.Caller
	begun  bool // the request that begins it is answered
}

// New returns a front.
func New(cfg Config) *Front {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Patience == 0 {
		cfg.Patience = patience
	}
	cfg.Backend.WorkIDs = true // for [Wait]
	f := &Front{cfg: cfg, open: map[*mcp.Server]session{}}
	server := func(r *http.Request) *mcp.Server {
		s, _ := r.Context().Value(serverKey{}).(*mcp.Server)
		return s
	}
	// The edge has compared Host and Origin, and bounded the body.
	f.sessions = known(mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		SessionTimeout: sessionIdle, DisableLocalhostProtection: true, MaxRequestBodyBytes: -1,
	}))
	f.requests = known(mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, DisableLocalhostProtection: true, MaxRequestBodyBytes: -1,
	}))
	return f
}

// serverKey is where a request carries the server that a session of its begins with.
type serverKey struct{}

// grantKey is where a request carries what its sender may do.
type grantKey struct{}

// known ties sessions to who began them: a session's id is of no use to anybody else.
func known(h http.Handler) http.Handler {
	verify := func(_ context.Context, _ string, r *http.Request) (*auth.TokenInfo, error) {
		g, _ := r.Context().Value(grantKey{}).(handoff.Grant)
		return &auth.TokenInfo{UserID: g.Key + " " + g.Caller.String(), Extra: map[string]any{"grant": g}}, nil
	}
	return auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(h)
}

// Patterns returns the routes of the front.
func (f *Front) Patterns() []string { return []string{"POST /mcp", "GET /mcp", "DELETE /mcp"} }

// Serve answers a request that the edge has let in: POST, GET and DELETE of one address.
func (f *Front) Serve(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	ctx, server, handler := context.WithValue(r.Context(), grantKey{}, g), f.server(g), f.sessions
	if r.Header.Get("Mcp-Protocol-Version") >= sessionless {
		handler = f.requests
	} else if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" { // it begins one
		if err := f.keep(server, g.Caller); err != nil {
			return err
		}
		defer f.begun(server)
	}
	r = r.Clone(context.WithValue(ctx, serverKey{}, server))
	r.Header.Set("Authorization", "Bearer known") // the edge has read the key, wherever it was
	handler.ServeHTTP(w, r)
	return nil
}

// Pipe serves one session over a connection that carries a message a line, until it ends or ctx does.
func (f *Front) Pipe(ctx context.Context, conn io.ReadWriteCloser, g handoff.Grant) error {
	server := f.server(g)
	if err := f.keep(server, g.Caller); err != nil {
		return err
	}
	defer f.begun(server)
	return server.Run(ctx, &mcp.IOTransport{Reader: conn, Writer: conn})
}

// keep remembers the server of a session that begins, unless its caller has too many.
func (f *Front) keep(server *mcp.Server, c handoff.Caller) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	count := 0
	for s, its := range f.open {
		if its.begun && !used(s) { // it has ended since
			delete(f.open, s)
		} else if its.caller == c {
			count++
		}
	}
	if count >= maxSessions {
		return handoff.Fault(handoff.CodeOverloaded, "MCP sessions", "")
	}
	f.open[server] = session{caller: c}
	return nil
}

// begun notes that the request which begins a session is answered. Of one that began none nothing is kept.
func (f *Front) begun(server *mcp.Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if its, ok := f.open[server]; ok && used(server) {
		its.begun = true
		f.open[server] = its
	} else {
		delete(f.open, server)
	}
}

// used reports whether a session of the server is open.
func used(s *mcp.Server) bool {
	for range s.Sessions() {
		return true
	}
	return false
}

// Close ends all sessions.
func (f *Front) Close() {
	f.mu.Lock()
	open := f.open
	f.open = map[*mcp.Server]session{}
	f.mu.Unlock()
	for s := range open {
		for its := range s.Sessions() {
			_ = its.Close() // the client sees the end of its stream
		}
	}
}

// newSessionID returns an id that nobody guesses.
func (f *Front) newSessionID() string {
	if f.cfg.Instance == "" {
		return rand.Text()
	}
	return f.cfg.Instance + "_" + rand.Text()
}

// server makes the server of one session, or of one request without any, with the tools of a grant.
func (f *Front) server(g handoff.Grant) *mcp.Server {
	s := mcp.NewServer(
		&mcp.Implementation{Name: "switchboard", Title: "Switchboard", Version: f.cfg.Version},
		&mcp.ServerOptions{
			Instructions: instructions, GetSessionID: f.newSessionID,
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}, // the list does not change
			SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
		},
	)
	for _, t := range tools.All() {
		if g.AllowsTool(t.Name) && !t.InCall {
			s.AddTool(shown(t), f.handler(g, t))
		}
	}
	if g.AllowsTool(tools.Status) {
		s.AddTool(waitTool(), f.waitHandler(g))
	}
	return s
}

package web

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

// Server is the HTTP edge: the routes, and the checks before each of them. The handlers belong to the types of their
// subjects. It is safe for concurrent use.
type Server struct {
	access  accessPolicy // Set once
	auth    auth
	times   deadlines        // Set once
	mux     *http.ServeMux   // Set once
	known   map[string]route // Set once: routes by pattern
	streams *streams         // Set once
	secrets *clientSecrets   // Set once
	mounted []Mounted        // Set once
	bodies  *bodies          // Set once
	rates   Rates            // Set once
	scrape  http.Handler     // Set once; nil without metrics
	// challenge is the WWW-Authenticate of /mcp for requests that are not authorised. Set once; "": none.
	challenge string
	peers     Peers          // Set once; nil for a single instance
	requests  openRequests   // safe for concurrent use; empty for a single instance
	trace     handoff.Tracer // Set once: for requests that give work
	ready     func(context.Context) error
	refused   *handoff.Tally[handoff.Code] // Set once: counts refused requests by code
	log       *zap.Logger                  // Set once
	drains    atomic.Bool                  // set by Drain
	closing   sync.Once
	closed    chan struct{} // closed by Close
}

// access says what a request needs to be authorised for a route.
type access int

const (
	accessCaller access = iota // a key or a login
	accessPublic               // nothing; the route shows nothing of any caller
	accessCall                 // a key, a login or a client secret
)

// A handler serves a route for a caller. If it returns an error, it has answered nothing, and the error is answered.
type handler func(w http.ResponseWriter, r *http.Request, g handoff.Grant) error

// A route is a pattern of [http.ServeMux] with its checks and its handler.
type route struct {
	pattern string
	access  access
	body    int64 // the largest body in bytes; 0: the route needs none
	// act is what the route does. Whoever serves it asks the grant, too, except for what only the edge has: the
	// conversation, the history, subscriptions. For POST /fleet/handoffs it depends on the mode: see [work.give].
	act   handoff.Act
	serve handler
}

// routes registers all routes.
func (s *Server) routes(cfg Config) {
	backend := tools.Backend{Directory: cfg.Fleet, Work: cfg.Router, Giver: cfg.Router}
	logins := logins{&s.auth, cfg.Store, cfg.PublicURL, new(slowdown)}
	calls := calls{cfg.VoiceFront}
	work := work{cfg.Router, cfg.Store, backend}
	questions := questions{cfg.Router, cfg.Decisions}
	history := history{cfg.Router, cfg.Store}
	pushes := pushes{cfg.Push, &s.auth}
	joining := machines{cfg.Ownership, s.access}
	fleet := fleet{backend, cfg.Fleet, cfg.Router, cfg.Router, cfg.Voice, cfg.Instances, joining, cfg.Store}
	for _, r := range []route{
		{"GET /{$}", accessPublic, 0, handoff.ActNone, ofFile("index.html")},
		{"GET /page/{file}", accessPublic, 0, handoff.ActNone, ofFile("")},
		{"GET /worker.js", accessPublic, 0, handoff.ActNone, ofFile("worker.js")},
		{"GET /help", accessPublic, 0, handoff.ActNone, ofPage(pages.helpList)},
		{"GET /help/{name}", accessPublic, 0, handoff.ActNone, ofPage(pages.helpPage)},
		{"GET /healthz", accessPublic, 0, handoff.ActNone, s.healthz},
		{"GET /readyz", accessPublic, 0, handoff.ActNone, s.readyz},
		{"GET /metrics", accessCaller, 0, handoff.ActNone, s.metrics},

		{"POST /login", accessPublic, maxJSON, handoff.ActNone, logins.create},
		{"POST /login/proof", accessPublic, maxJSON, handoff.ActNone, logins.proof},
		{"GET /login", accessCaller, 0, handoff.ActNone, logins.list},
		{"DELETE /login/{id}", accessCaller, maxJSON, handoff.ActNone, logins.logout},
		{"POST /login/code", accessCaller, maxJSON, handoff.ActNone, logins.deviceCode},

		{"GET /v1/realtime", accessCall, 0, handoff.ActNone, calls.realtime},
		{"POST /v1/realtime/calls", accessCall, maxCall, handoff.ActNone, calls.create},
		{"POST /v1/realtime/client_secrets", accessCaller, maxSecretBody, handoff.ActNone, s.secrets.create},
		{"POST /v1/realtime/attach", accessCaller, maxJSON, handoff.ActNone, calls.attach},
		{"POST /v1/realtime/calls/{id}/hangup", accessCaller, maxJSON, handoff.ActNone, calls.hangup},
		{"GET /fleet/calls", accessCaller, 0, handoff.ActNone, calls.list},
		{"POST /fleet/calls/{id}/say", accessCaller, maxRun, handoff.ActNone, calls.say},
		{"DELETE /fleet/calls/{id}", accessCaller, maxJSON, handoff.ActNone, calls.hangup},
		{"GET /fleet/updates", accessCaller, 0, handoff.ActNone, calls.updates},
		{"PUT /fleet/updates", accessCaller, maxJSON, handoff.ActLevel, calls.setUpdates},

		{"GET /fleet/servers", accessCaller, 0, handoff.ActList, fleet.servers},
		{"GET /fleet/machines", accessCaller, 0, handoff.ActList, fleet.listMachines},
		{"POST /fleet/machines", accessCaller, maxJSON, handoff.ActNone, joining.invite},
		{"DELETE /fleet/machines/{server}", accessCaller, maxJSON, handoff.ActNone, joining.remove},
		{"GET /fleet/machines/{server}/log", accessCaller, 0, handoff.ActNone, joining.logLines},
		{"POST /fleet/machines/{server}/rename", accessCaller, maxJSON, handoff.ActNone, joining.rename},
		{"POST /fleet/settings/reload", accessCaller, maxJSON, handoff.ActNone, joining.reload},
		{"GET /node", accessPublic, 0, handoff.ActNone, joining.takeLine},
		{"POST /fleet/machines/{server}/test", accessCaller, maxJSON, handoff.ActList, fleet.testMachine},
		{"GET /fleet/sessions", accessCaller, 0, handoff.ActSessions, fleet.sessions},
		{"GET /fleet/sessions/{server}/{thread}", accessCaller, 0, handoff.ActTranscript, fleet.session},
		{"POST /fleet/sessions/{server}/{thread}/archive", accessCaller, maxJSON, handoff.ActGive, fleet.archive},
		{"POST /fleet/sessions/{server}/{thread}/rename", accessCaller, maxJSON, handoff.ActRename, fleet.rename},
		{"DELETE /fleet/sessions/{server}/{thread}/archive", accessCaller, maxJSON, handoff.ActGive, fleet.archive},
		{"DELETE /fleet/sessions/{server}/{thread}/worktree", accessCaller, maxJSON, handoff.ActGive, fleet.removeWorktree},
		{"GET /fleet/sticky", accessCaller, 0, handoff.ActSessions, fleet.listStickies},
		{"PUT /fleet/sticky/{server...}", accessCaller, maxJSON, handoff.ActGive, fleet.putSticky},
		{"DELETE /fleet/sticky/{server...}", accessCaller, maxJSON, handoff.ActGive, fleet.clearSticky},

		{"GET /fleet/status", accessCaller, 0, handoff.ActRead, work.status},
		{"GET /fleet/handoffs", accessCaller, 0, handoff.ActRead, work.list},
		{"POST /fleet/handoffs", accessCaller, maxRun, handoff.ActNone, work.give},
		{"GET /fleet/handoffs/{id}", accessCaller, 0, handoff.ActRead, work.read},
		{"GET /fleet/handoffs/{id}/items/{item}", accessCaller, 0, handoff.ActRead, work.item},
		{"GET /fleet/handoffs/{id}/events", accessCaller, 0, handoff.ActRead, s.whileGranted(s.streams.work)},
		{"POST /fleet/handoffs/{id}/steer", accessCaller, maxRun, handoff.ActGive, work.steer},
		{"POST /fleet/handoffs/{id}/stop", accessCaller, maxJSON, handoff.ActStop, work.stop},
		{"POST /fleet/handoffs/{id}/move", accessCaller, maxJSON, handoff.ActMove, work.move},
		{"POST /fleet/handoffs/{id}/heard", accessCaller, maxJSON, handoff.ActNone, work.heard},
		{"GET /fleet/cleared", accessCaller, 0, handoff.ActRead, work.cleared},
		{"PUT /fleet/cleared", accessCaller, maxJSON, handoff.ActPersonal, work.setCleared},
		{"GET /fleet/events", accessCaller, 0, handoff.ActRead, s.whileGranted(s.streams.feed)},

		{"GET /fleet/questions", accessCaller, 0, handoff.ActRead, questions.list},
		{"POST /fleet/questions/{id}", accessCaller, maxJSON, handoff.ActDecline, questions.decide},
		{"GET /fleet/decisions", accessCaller, 0, handoff.ActRead, questions.decisions},

		{"GET /fleet/history", accessCaller, 0, handoff.ActRead, history.list},
		{"GET /fleet/history/{id}", accessCaller, 0, handoff.ActRead, history.work},
		{"POST /fleet/render", accessCaller, maxRender, handoff.ActNone, render},
		{"GET /fleet/conversation", accessCaller, 0, handoff.ActPersonal, history.said},
		{"POST /fleet/conversation", accessCaller, maxSaidBody, handoff.ActPersonal, history.addSaid},
		{"DELETE /fleet/conversation", accessCaller, maxJSON, handoff.ActPersonal, history.dropSaid},

		{"GET /fleet/push", accessCaller, 0, handoff.ActNone, pushes.key},
		{"POST /fleet/push", accessCaller, maxJSON, handoff.ActRead, pushes.subscribe},
		{"DELETE /fleet/push", accessCaller, maxJSON, handoff.ActNone, pushes.unsubscribe},
	} {
		s.handle(r)
	}
	s.mount(cfg.Responses, maxResponse, apiAct)
	s.mount(cfg.MCP, maxRun, func(string) handoff.Act { return handoff.ActNone }) // it offers the tools of the grant
	s.oauthRoutes(cfg)
	if cfg.MCPPipe != nil {
		s.handle(route{"GET /mcp/pipe", accessCaller, 0, handoff.ActNone, s.asProgram(mcpPipe(cfg.MCPPipe))})
	}
}

// mount registers the routes of a front, behind the checks. act returns that of a pattern, as in [route].
func (s *Server) mount(front Mounted, body int64, act func(pattern string) handoff.Act) {
	if front == nil {
		return
	}
	s.mounted = append(s.mounted, front)
	for _, pattern := range front.Patterns() {
		s.handle(route{pattern, accessCaller, body, act(pattern), s.asProgram(front.Serve)})
	}
}

func (s *Server) handle(r route) {
	s.known[r.pattern] = r
	s.mux.Handle(r.pattern, s.chain(r))
}

// betaPaths has the replacements of paths that ended with the beta of the Realtime API. Set once.
var betaPaths = map[string]string{
	"/v1/realtime/sessions":               betaSecrets,
	"/v1/realtime/transcription_sessions": betaSecrets,
}

const betaSecrets = " since the beta ended: POST /v1/realtime/client_secrets makes secrets"

// ServeHTTP checks a request by the access policy, and serves its route.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.drains.Load() && r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	_, pattern := s.mux.Handler(r)
	_, found := s.known[pattern]
	found = found && path.Clean(r.URL.Path) == r.URL.Path // the mux would redirect other paths
	v := newVisitor(r)
	if err := s.access.check(v); err != nil && !inside(r) && !forwarded(r) {
		setHeaders(w.Header(), "")
		s.refuse(w, r, err)
		return
	}
	if v.api { // OpenAI's clients report this id in errors
		w.Header().Set("X-Request-Id", "req_"+strings.ToLower(rand.Text()))
		setHeaders(w.Header(), "")
		if share(w, r) {
			return
		}
	} else {
		setHeaders(w.Header(), r.Host)
	}
	if !found {
		s.refuse(
			w, r, handoff.Fault(handoff.CodeNotFound, r.Method+" "+handoff.Clip(r.URL.Path, 80)+betaPaths[r.URL.Path], ""),
		)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// chain returns a route's handler behind the checks of the key and the limits.
func (s *Server) chain(to route) http.Handler {
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var g handoff.Grant
		if to.access != accessPublic {
			var err error
			if g, err = s.auth.grant(r, time.Now()); err != nil {
				s.refuse(w, r, err)
				return
			}
			markKnown(r)
			if g.Secret && to.access != accessCall {
				s.refuse(w, r, handoff.Fault(handoff.CodeNotGranted, "a client secret begins calls, and nothing else", ""))
				return
			}
			if err := mayUse(g, to); err != nil {
				s.refuse(w, r, err)
				return
			}
			g.Revoked = s.auth.revoked(r, g)
		}
		entered, leave := r, func() {}
		if s.peers != nil { // before the caller's home is known, because it may change a moment later
			entered, leave = s.requests.enter(r, g.Caller)
		}
		defer func() { leave() }()
		forward, err := s.route(r, g, to)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		body, err := s.admit(r, g, to, forward != nil)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		defer body.leave()
		if err := readBody(w, r, to.body); err != nil {
			s.refuse(w, r, err)
			return
		}
		body.fit(r.ContentLength)
		if forward != nil {
			leave()
			served, err := resendable(r, func() (bool, error) { return forward(w, r) })
			if err != nil {
				s.fail(w, r, err)
			}
			if served || err != nil {
				return
			}
			entered, leave = s.requests.enter(r, g.Caller)
		}
		r = r.WithContext(entered.Context())
		out, end := packed(w, r)
		defer end()
		if err := s.traced(to, out, r, g); err != nil {
			s.fail(w, r, err)
		}
	})
	if _, path, _ := strings.Cut(to.pattern, " "); to.body == 0 || isAPI(path) {
		return inner
	}
	// The access policy has checked the Origin; the check of the standard library is a second line of defence.
	protection := http.NewCrossOriginProtection()
	if s.access.publicHost != "" {
		_ = protection.AddTrustedOrigin(s.access.publicScheme + "://" + s.access.publicHost) // New parsed it
	}
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, r, handoff.Fault(handoff.CodeForbidden, "a request from another page", "cross-origin"))
	}))
	return protection.Handler(inner)
}

// traced serves a request, in a trace if it gives work.
func (s *Server) traced(to route, w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	if s.trace == nil || !giving[to.pattern] { // POST /mcp begins a trace for each call of a tool
		return to.serve(w, r, g)
	}
	ctx, span := s.trace.Begin(r.Context(), "request", r.Header)
	err := to.serve(w, r.WithContext(ctx), g)
	span.End(handoff.CodeOf(err), "route", to.pattern)
	return err
}

// admit takes room for the body of a request, which the caller releases when the request is answered. A request that
// gives work beyond a limit is refused before a large body is read, unless it may be a repetition of an earlier one,
// which does not count again, or another instance serves it and checks the limit.
func (s *Server) admit(r *http.Request, g handoff.Grant, to route, elsewhere bool) (*room, error) {
	again := r.Header.Get("Idempotency-Key") != "" || r.Header.Get("X-Stainless-Retry-Count") > "0"
	if giving[to.pattern] && !again && !elsewhere && (r.ContentLength < 0 || r.ContentLength > smallBody) {
		if err := s.rates.MayGive(g); err != nil {
			return nil, err
		}
	}
	return s.bodies.take(r, to.body)
}

// refuse is fail for a request whose body was not read.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	s.times.takeRest(w, r)
	s.fail(w, r, err)
}

// fail answers with an error, counts it and logs it.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := handoff.AsError(err)
	if r.URL.Path == "/mcp" { // clients of MCP would begin OAuth because of this header
		w.Header()["Www-Authenticate"] = nil
		if s.challenge != "" && e.Meaning().HTTP == http.StatusUnauthorized {
			w.Header().Set("Www-Authenticate", s.challenge)
		}
	}
	e.Reply(w, inside(r)) // the user who runs this may read the log as well
	s.refused.Add(e.Code)
	level := zap.DebugLevel
	if e.Code == handoff.CodeInternal {
		level = zap.WarnLevel
	}
	s.log.Log(level, "request refused", zap.String("method", r.Method),
		zap.String("path", handoff.Clip(r.URL.Path, 80)), zap.String("code", string(e.Code)),
		zap.String("detail", e.Detail), zap.String("request", w.Header().Get("X-Request-Id")))
}

// Close ends the event streams, for which a shutdown would wait for ever. [Server.HTTPServer] calls it on shutdown.
func (s *Server) Close() {
	s.closing.Do(func() {
		close(s.closed)
		if s.peers != nil {
			s.peers.Close()
		}
		for _, front := range s.mounted {
			front.Close()
		}
	})
}

// HTTPServer returns an http.Server for the server, with bounds for slow and greedy clients. Its Shutdown ends the
// event streams.
func (s *Server) HTTPServer() *http.Server {
	h := &http.Server{Handler: s, MaxHeaderBytes: 32 << 10, ErrorLog: zap.NewStdLog(s.log)}
	s.times.apply(h)
	h.RegisterOnShutdown(s.Close)
	return h
}

// asProgram is whileGranted for an API: an answer there is not a person's tap, even with a login.
func (s *Server) asProgram(serve handler) handler {
	return s.whileGranted(func(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
		g.Page = false
		return serve(w, r, g)
	})
}

// whileGranted returns a handler that ends the request's context, with the reason as its cause, when its key or login
// is revoked. It is for what lasts: event streams, and APIs.
func (s *Server) whileGranted(serve handler) handler {
	return func(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
		ctx, cancel := context.WithCancelCause(r.Context())
		var watching sync.WaitGroup
		defer watching.Wait()
		defer cancel(nil)
		watching.Go(func() {
			tick := time.NewTicker(s.times.asks)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					if err := g.Revoked(); err != nil {
						cancel(err)
						return
					}
				case <-ctx.Done():
					return
				}
			}
		})
		return serve(w, r.WithContext(ctx), g)
	}
}

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request, _ handoff.Grant) error {
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
	if s.ready != nil {
		if err := s.ready(r.Context()); err != nil {
			return err
		}
	}
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

// setHeaders sets the security headers of every answer. host is "" if it is not trusted.
func setHeaders(h http.Header, host string) {
	sockets := ""
	if host != "" { // for older browsers, 'self' does not include sockets
		sockets = fmt.Sprintf(" ws://%s wss://%s", host, host)
	}
	h.Set(
		"Content-Security-Policy",
		"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; "+
			"manifest-src 'self'; connect-src 'self'"+sockets+"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "+
			"require-trusted-types-for 'script'; trusted-types switchboard-worker",
	)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set(
		"Permissions-Policy", "microphone=(self), speaker-selection=(self), camera=(), geolocation=(), display-capture=()",
	)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
}

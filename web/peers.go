package web

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"

	"switchboard/handoff"
)

// Peers are the other instances of this Switchboard, each of which takes any request.
type Peers interface {
	// Route says who serves a request of a caller that was let in: nil: this instance; else what has another one serve
	// it. That is false where the request is to be served here after all; nothing was answered then.
	Route(r *http.Request, c handoff.Caller) (func(w http.ResponseWriter, r *http.Request) (served bool, err error), error)
	Close() // ends the requests that others serve
}

// An InstanceInfo is what the owner is told of one of several instances that live.
type InstanceInfo struct {
	ID       string `json:"id"`      // of its life
	Address  string `json:"address"` // where the others reach it, as host:port
	Draining bool   `json:"draining,omitempty"`
	Here     bool   `json:"here,omitempty"` // it has the caller who asks, and has answered
}

// forwardedKey is where a request says that another instance forwarded it.
type forwardedKey struct{}

// insideHeader is where an instance tells the next one as which principal somebody is inside. From anywhere else it is
// taken away.
const insideHeader = "Switchboard-Inside"

// guests are the requests that are served here of callers whom another instance may come to have. It is safe for
// concurrent use.
type guests struct {
	mu     sync.Mutex
	of     map[handoff.Caller]map[*guest]struct{} // Guarded by mu
	drains bool                                   // Guarded by mu: nobody only listens here any more
}

// A guest is one of those requests.
type guest struct {
	end     context.CancelCauseFunc
	listens bool // it only waits for what there may be to tell: its client asks for it again by itself
}

// enter notes a request, until leave is called.
func (g *guests) enter(r *http.Request, c handoff.Caller) (_ *http.Request, leave func()) {
	ctx, end := context.WithCancelCause(r.Context())
	one := &guest{end, r.Method == http.MethodGet && r.URL.Path == "/mcp"}
	g.mu.Lock()
	defer g.mu.Unlock()
	if one.listens && g.drains {
		end(ending())
	}
	if g.of[c] == nil {
		g.of[c] = map[*guest]struct{}{}
	}
	g.of[c][one] = struct{}{}
	return r.WithContext(ctx), func() {
		end(nil)
		g.mu.Lock()
		defer g.mu.Unlock()
		if delete(g.of[c], one); len(g.of[c]) == 0 {
			delete(g.of, c)
		}
	}
}

// drain ends those who only listen, and do so from now on.
func (g *guests) drain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drains = true
	for _, all := range g.of {
		for one := range all {
			if one.listens {
				one.end(ending())
			}
		}
	}
}

func ending() error { return handoff.Fault(handoff.CodeShutdown, "", "this instance ends") }

// Leave ends the requests and streams that are served here of a caller whom another instance has. Their clients come
// again, and are led there.
func (s *Server) Leave(c handoff.Caller) {
	s.guests.mu.Lock()
	defer s.guests.mu.Unlock()
	for one := range s.guests.of[c] {
		one.end(handoff.Fault(handoff.CodeShutdown, "", "another instance has the caller"))
	}
}

// Drain has clients make their next request to another instance, which the balancer chooses: the next answer on each
// connection closes it. Who only listens is sent away, since a caller who is served stays here.
func (s *Server) Drain() {
	s.drains.Store(true)
	s.guests.drain()
}

// Forwarded serves what other instances forward. They have compared Host and Origin, and these are not asked for again:
// the key is, and whoever is inside there counts as inside here.
func (s *Server) Forwarded() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), forwardedKey{}, true)
		if principal := r.Header.Get(insideHeader); principal != "" {
			ctx = context.WithValue(ctx, insideKey{}, principal)
		}
		s.ServeHTTP(w, r.WithContext(ctx))
	})
}

// forwarded reports whether a request came by [Server.Forwarded].
func forwarded(r *http.Request) bool { return r.Context().Value(forwardedKey{}) != nil }

// route says who serves a request that was let in: nil: this instance. What is of a process, such as its numbers and
// its settings, is served where it is asked for.
func (s *Server) route(
	r *http.Request, g handoff.Grant, to route,
) (func(http.ResponseWriter, *http.Request) (bool, error), error) {
	r.Header.Del(insideHeader)
	_, path, _ := strings.Cut(to.pattern, " ")
	ofCaller := strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/fleet/") || strings.HasPrefix(path, "/mcp") ||
		strings.HasPrefix(path, "/oauth/requests") // which wait where they were made
	if s.peers == nil || to.access == accessPublic || !ofCaller || path == "/fleet/settings/reload" {
		return nil, nil
	}
	forward, err := s.peers.Route(r, g.Caller)
	if principal, ok := r.Context().Value(insideKey{}).(string); ok && forward != nil {
		r.Header.Set(insideHeader, principal)
	}
	return forward, err
}

// resendable lets a request be sent more than once while something is done with it: its body is in memory.
func resendable(r *http.Request, do func() (bool, error)) (bool, error) {
	if held, ok := r.Body.(*heldBody); ok {
		r.GetBody = func() (io.ReadCloser, error) { return &heldBody{held.rest}, nil }
		defer func() { r.GetBody = nil }()
	}
	return do()
}

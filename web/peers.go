package web

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"

	"switchboard/handoff"
)

// Peers are the other instances of this Switchboard. Any instance takes any request.
type Peers interface {
	// Route returns nil if this instance serves an authorised request of a caller, or else a function that has another
	// instance serve it. That reports false, and has answered nothing, if the request has to be served here after all.
	Route(r *http.Request, c handoff.Caller) (func(w http.ResponseWriter, r *http.Request) (served bool, err error), error)
	Close() // ends the requests that other instances serve
}

// Several has the other instances.
type Several struct {
	Peers Peers // nil for a single instance
	// Instances returns the living instances, including this one. Nil for a single instance.
	Instances func() []InstanceInfo
}

// An InstanceInfo describes one of several living instances to the owner.
type InstanceInfo struct {
	ID       string `json:"id"`      // of the process
	Address  string `json:"address"` // for the other instances, host:port
	Draining bool   `json:"draining,omitempty"`
	Here     bool   `json:"here,omitempty"` // the instance that answers; the home of the owner
}

// forwardedKey is the context key of requests that another instance forwarded.
type forwardedKey struct{}

// insideHeader has the principal of a forwarded request that came by [Server.Inside] of the first instance. It is
// removed from all other requests.
const insideHeader = "Switchboard-Inside"

// openRequests has the requests that this instance serves. They must end when another instance becomes the home of
// their caller. It is safe for concurrent use.
type openRequests struct {
	mu     sync.Mutex
	of     map[handoff.Caller]map[*openRequest]struct{} // Guarded by mu
	drains bool                                         // Guarded by mu: requests that only listen end at once
}

// An openRequest is a request that is being served.
type openRequest struct {
	end     context.CancelCauseFunc
	listens bool // it only waits for messages; its client repeats it by itself
}

// enter adds a request, until leave is called.
func (g *openRequests) enter(r *http.Request, c handoff.Caller) (_ *http.Request, leave func()) {
	ctx, end := context.WithCancelCause(r.Context())
	one := &openRequest{end, r.Method == http.MethodGet && r.URL.Path == "/mcp"}
	g.mu.Lock()
	defer g.mu.Unlock()
	if one.listens && g.drains {
		end(ending())
	}
	if g.of[c] == nil {
		g.of[c] = map[*openRequest]struct{}{}
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

// drain ends the requests that only listen, now and from now on.
func (g *openRequests) drain() {
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

// Leave ends the open requests and streams of a caller whose home is now another instance. Their clients repeat them,
// and are forwarded there.
func (s *Server) Leave(c handoff.Caller) {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	for one := range s.requests.of[c] {
		one.end(handoff.Fault(handoff.CodeShutdown, "", "another instance has the caller"))
	}
}

// Drain makes clients send their next request to another instance, which the load balancer chooses: each connection is
// closed with its next answer. Requests that only listen end at once, because they would keep their caller here.
func (s *Server) Drain() {
	s.drains.Store(true)
	s.requests.drain()
}

// Forwarded serves the requests that other instances forward. They have checked Host and Origin, which are not checked
// again; the key is. A request that came by [Server.Inside] there counts as inside here.
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

// route returns a function that forwards an authorised request, or nil if this instance serves it. Requests about the
// process, such as its metrics and settings, are never forwarded.
func (s *Server) route(
	r *http.Request, g handoff.Grant, to route,
) (func(http.ResponseWriter, *http.Request) (bool, error), error) {
	r.Header.Del(insideHeader)
	_, path, _ := strings.Cut(to.pattern, " ")
	ofCaller := strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/fleet/") || strings.HasPrefix(path, "/mcp") ||
		strings.HasPrefix(path, "/oauth/requests") // pending requests are in the memory of one instance
	if s.peers == nil || to.access == accessPublic || !ofCaller || path == "/fleet/settings/reload" {
		return nil, nil
	}
	forward, err := s.peers.Route(r, g.Caller)
	if principal, ok := r.Context().Value(insideKey{}).(string); ok && forward != nil {
		r.Header.Set(insideHeader, principal)
	}
	return forward, err
}

// resendable lets do send a request more than once, since its body is in memory.
func resendable(r *http.Request, do func() (bool, error)) (bool, error) {
	if held, ok := r.Body.(*heldBody); ok {
		r.GetBody = func() (io.ReadCloser, error) { return &heldBody{held.rest}, nil }
		defer func() { r.GetBody = nil }()
	}
	return do()
}

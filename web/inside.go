package web

import (
	"context"
	"net/http"

	"switchboard/handoff"
)

// insideKey is where a request says that it came from inside, and as whom.
type insideKey struct{}

// Inside serves the same routes to whoever is trusted without a key, such as the programs of the user who runs us,
// over a socket that is closed to others. A request that brings a key counts as that key's; any other one counts as
// a program with the first of the principal's [Key]s, never as a tap on the page. Host and Origin are not checked.
func (s *Server) Inside(principal string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), insideKey{}, principal)))
	})
}

// inside reports whether a request came by [Server.Inside].
func inside(r *http.Request) bool {
	_, ok := r.Context().Value(insideKey{}).(string)
	return ok
}

// insider is what somebody inside may do.
func (a *auth) insider(r *http.Request) (handoff.Grant, error) {
	principal, _ := r.Context().Value(insideKey{}).(string)
	key, ok := a.of(principal)
	if !ok {
		return handoff.Grant{}, handoff.Fault(handoff.CodeUnauthorized, "", "there is no key of that name any more")
	}
	return key.grant(), nil
}

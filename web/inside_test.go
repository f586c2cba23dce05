package web

import (
	"net/http"
	"testing"
)

// TestInside: a request from inside needs no key, and has the rights of a program with the first key of the principal.
// A key in the request counts, even a wrong one. No request can claim to come from inside.
func TestInside(t *testing.T) {
	s := newServer(t, newWorld(), nil)
	for _, tc := range []struct {
		name string
		from http.Handler
		key  string
		want int
	}{
		{"inside", s.Inside("owner"), "", http.StatusOK},
		{"inside with a key", s.Inside("owner"), otherKey, http.StatusOK},
		{"inside with a wrong key", s.Inside("owner"), "wrong", http.StatusUnauthorized},
		{"inside as nobody", s.Inside("nobody"), "", http.StatusUnauthorized},
		{"outside", s, "", http.StatusForbidden}, // of that Host
	} {
		if got := ask(tc.from, http.MethodGet, "/fleet/servers", "", atControl(tc.key)); got.Code != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got.Code, tc.want)
		}
	}
	if g, err := s.auth.insideGrant(t.Context()); err == nil {
		t.Errorf("somebody is inside by nothing: %+v", g)
	}
	// A code is what only a login makes.
	if got := ask(s.Inside("owner"), http.MethodPost, "/login/code", "", atControl("")); got.Code != http.StatusForbidden {
		t.Errorf("who is inside counts as the page: %d %s", got.Code, got.Body)
	}
}

// atControl makes a request one for the host of the verbs, with a key or without: "".
func atControl(key string) func(*http.Request) {
	return func(r *http.Request) {
		r.Host = "control"
		if r.Header.Set("Authorization", "Bearer "+key); key == "" {
			r.Header.Del("Authorization")
		}
	}
}

package web

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestInside: from inside somebody needs no key, and is a program with the first key of the principal; a key that is
// brought counts, a wrong one too; and what a request itself says never brings it inside.
func TestInside(t *testing.T) {
	s := newServer(t, newWorld(), nil)
	get := func(h http.Handler, key string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://control/fleet/servers", nil)
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
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
		if got := get(tc.from, tc.key); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/login/code", nil)
	if g, err := s.auth.insider(r); err == nil {
		t.Errorf("somebody is inside by nothing: %+v", g)
	}
	w := httptest.NewRecorder()
	r = httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://control/login/code", nil)
	s.Inside("owner").ServeHTTP(w, r)
	if w.Code != http.StatusForbidden { // which only a login makes
		t.Errorf("who is inside counts as the page: %d %s", w.Code, w.Body)
	}
}

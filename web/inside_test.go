package web

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
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

// TestTypedAtATerminal: the word that a person types to allow what is risky counts from inside alone, without a key,
// and only if it is the word of that question.
func TestTypedAtATerminal(t *testing.T) {
	w := newWorld()
	s := newServer(t, w, nil)
	for _, tc := range []struct {
		name, key, typed string
		from             http.Handler
		want             int
		decided          string
	}{
		{"at a terminal", "", "sudo", s.Inside("owner"), http.StatusNoContent, "decide owner q accept at a terminal"},
		{"nothing typed", "", "", s.Inside("owner"), http.StatusNoContent, "decide owner q accept"},
		{"another word", "", "yes", s.Inside("owner"), http.StatusBadRequest, ""},
		{"with a key", ownerKey, "sudo", s.Inside("owner"), http.StatusForbidden, ""},
		{"from outside", ownerKey, "sudo", s, http.StatusForbidden, ""},
	} {
		w.change(func(w *world) {
			w.asked, w.questions = nil, []handoff.RecordQuestion{{ID: "q", Server: "bigpc", Command: "sudo reboot"}}
		})
		body := `{"decision":"accept","typed":"` + tc.typed + `"}`
		how := atControl(tc.key)
		got := ask(tc.from, http.MethodPost, "/fleet/questions/q", body, func(r *http.Request) {
			if how(r); tc.name == "from outside" {
				r.Host = "127.0.0.1:8080"
			}
		})
		decided := ""
		w.change(func(w *world) {
			if i := slices.IndexFunc(w.asked, func(s string) bool { return strings.HasPrefix(s, "decide") }); i >= 0 {
				decided = w.asked[i]
			}
		})
		if got.Code != tc.want || decided != tc.decided {
			t.Errorf("%s: %d %s, %q", tc.name, got.Code, got.Body, decided)
		}
	}
	w.change(func(w *world) { w.asked = nil })
	body := `{"decision":"accept","typed":"sudo"}`
	got := ask(s.Inside("owner"), http.MethodPost, "/fleet/questions/gone", body, atControl(""))
	decides := func(s string) bool { return strings.HasPrefix(s, "decide") }
	if got.Code != http.StatusConflict || slices.ContainsFunc(w.log(), decides) {
		t.Errorf("a word for a question that is not open: %d, %q", got.Code, w.log())
	}
}

package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"switchboard/handoff"
)

// Invite implements [Joining].
func (w *world) Invite(_ context.Context, by handoff.Caller, name string) (string, error) {
	return "code-of-" + name + "-for-" + by.Principal, nil
}

// Remove implements [Joining].
func (w *world) Remove(_ context.Context, _ handoff.Caller, name string) error {
	if name != "mini" && name != "studio" {
		return handoff.Fault(handoff.CodeNotFound, name, "")
	}
	return nil
}

// Rename implements [Joining].
func (w *world) Rename(ctx context.Context, by handoff.Caller, name, to string) error {
	if to == "taken" {
		return handoff.Malformed("name", "the name taken is taken")
	}
	return w.Remove(ctx, by, name)
}

// TestJoining: only the owner adds, renames and removes machines, with a key or login that may do everything.
func TestJoining(t *testing.T) {
	keys := []Key{
		{Principal: "owner", Approve: handoff.ApproveAll},
		{Principal: "owner", Approve: handoff.ApproveVoice},
		{Principal: "owner", Approve: handoff.ApproveAll, Servers: []string{"bigpc"}},
		{Principal: "owner", Approve: handoff.ApproveAll, Tools: []string{"codex"}},
		{Principal: "owner", Approve: handoff.ApproveAll, NamesCallers: true},
		{Principal: "guest", Approve: handoff.ApproveAll},
	}
	for i := range keys {
		keys[i].Sum = NewKey("", strings.Repeat(string(rune('a'+i)), 32)).Sum
	}
	s := newServer(t, newWorld(), func(cfg *Config) {
		cfg.Keys, cfg.Address = keys, func() string { return "http://127.0.0.1:8080/" }
	})
	ask := func(h http.Handler, host, method, path, key string) (int, string) {
		w := ask(h, method, path, `{"name":"mini"}`, func(r *http.Request) {
			atControl(key)(r)
			r.Host = host
		})
		return w.Code, w.Body.String()
	}
	for _, route := range []struct {
		method, path string
		want         int
	}{
		{http.MethodPost, "/fleet/machines", http.StatusCreated},
		{http.MethodPost, "/fleet/machines/mini/rename", http.StatusNoContent},
		{http.MethodDelete, "/fleet/machines/mini", http.StatusNoContent},
		{http.MethodGet, "/fleet/machines/mini/log", http.StatusOK},
	} {
		for i := range keys {
			want := http.StatusForbidden
			if i == 0 {
				want = route.want
			}
			key := strings.Repeat(string(rune('a'+i)), 32)
			if got, text := ask(s, "127.0.0.1:8080", route.method, route.path, key); got != want {
				t.Errorf("%s %s with key %d: %d %s, want %d", route.method, route.path, i, got, text, want)
			}
		}
		if got, text := ask(s.Inside("owner"), "control", route.method, route.path, ""); got != route.want {
			t.Errorf("%s %s from inside: %d %s", route.method, route.path, got, text)
		}
	}
	if got, _ := ask(s.Inside("guest"), "control", http.MethodPost, "/fleet/machines", ""); got != http.StatusForbidden {
		t.Errorf("a guest from inside: %d", got)
	}
	for _, row := range []struct{ host, public, want string }{
		{"127.0.0.1:8080", "", "http://127.0.0.1:8080"}, {"localhost:8080", "", "http://localhost:8080"},
		{"bigpc.ts.net", "https://bigpc.ts.net", "https://bigpc.ts.net"},
		{"127.0.0.1:8080", "https://bigpc.ts.net", "https://bigpc.ts.net"},
	} {
		s := newServer(t, newWorld(), func(cfg *Config) { cfg.Keys, cfg.PublicURL = keys, row.public })
		_, text := ask(s, row.host, http.MethodPost, "/fleet/machines", strings.Repeat("a", 32))
		var answer struct{ Command, Code, Name string }
		must(t, json.Unmarshal([]byte(text), &answer))
		if want := "switchboard join " + row.want + " code-of-mini-for-owner"; answer.Command != want || answer.Name != "mini" {
			t.Errorf("by %s: %+v, want %s", row.host, answer, want)
		}
	}
}

// TestLine: a machine can open its line from any address and at any Host; a page cannot.
func TestLine(t *testing.T) {
	took := 0
	s := newServer(t, newWorld(), func(cfg *Config) {
		cfg.Line = func(http.ResponseWriter, *http.Request, netip.Addr, func()) error { took++; return nil }
	})
	for _, row := range []struct {
		origin, upgrade string
		want            int
	}{
		{"", "websocket", 1}, {"http://evil.example", "websocket", 0}, {"http://127.0.0.1:8080", "websocket", 0}, {"", "", 0},
	} {
		took = 0
		ask(s, http.MethodGet, "/node", "", func(r *http.Request) {
			r.Host = "tunnel.example:9"
			r.Header = given("Origin", row.origin, "Upgrade", row.upgrade)
		})
		if took != row.want {
			t.Errorf("origin %q, upgrade %q: taken %d times, want %d", row.origin, row.upgrade, took, row.want)
		}
	}
}

package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/cmd/switchboard/verbs"
	"switchboard/sessions/sessionstest"
)

// TestStoreGoneIsToldEverywhere: while the store is away, the service is healthy and not ready, each front says that it
// is the store, and those of the user who runs Switchboard say where it is and what it said.
func TestStoreGoneIsToldEverywhere(t *testing.T) {
	t.Parallel()
	server := sessionstest.StartRedis(t)
	home := t.TempDir()
	sh := &shell{t: t, env: map[string]string{"XDG_STATE_HOME": home, "REDIS_URL": server.URL}}
	sh.r = start(t, func(p *plan) {
		p.StateDir, p.Redis, p.Hurry = filepath.Join(home, "switchboard"), newSecret(server.URL), 50
	})
	sh.r.up("bigpc")
	if status, _ := sh.r.ask(http.MethodGet, "/readyz", "", "Authorization", ""); status != http.StatusOK {
		t.Errorf("not ready: %d", status)
	}
	phone := sh.r.call()
	server.Kill()
	const why, refused = "my store does not answer", "connection refused"
	until(t, "/readyz to say why", func() bool {
		status, body := sh.r.ask(http.MethodGet, "/readyz", "", "Authorization", "")
		if strings.Contains(string(body), server.Addr) {
			t.Errorf("anybody is told where the store is: %s", body)
		}
		return status == http.StatusServiceUnavailable && strings.Contains(string(body), why)
	})
	if status, _ := sh.r.ask(http.MethodGet, "/healthz", "", "Authorization", ""); status != http.StatusOK {
		t.Errorf("not healthy: %d", status)
	}
	if _, body := sh.r.ask(http.MethodPost, "/v1/responses", `{"model": "bigpc", "input": "run the tests"}`); !strings.Contains(string(body), why) {
		t.Errorf("the API says %s", body)
	}
	sh.wants(verbs.ExitNotBegun, []string{why, server.Addr, refused}, "handoff", "bigpc", "run the tests")
	sh.visit("", []string{why + ". (Redis at " + server.Addr}, "--listen", strings.TrimPrefix(sh.r.base, "http://"))
	phone.say("On bigpc, continue the auth session and run the tests.")
	phone.hear(why)
}

package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/joined"
	"switchboard/servers/joined/mux"
	"switchboard/servers/transport"
)

// TestPeersSettings: instances with `peers` in their settings are one Switchboard for keys and machines. A key that is
// made or revoked at one is valid or revoked at the other. A machine that one invites can join at the other, and knows
// its key. Work that the first gives goes through the machine's line to the second. Both use the machine's agents.
func TestPeersSettings(t *testing.T) {
	t.Parallel()
	f, url := newFarm(t), startRedis(t)
	env := map[string]string{ownerKey: testKey}
	instance := func() (r *running, s *settings, state string) {
		file := filepath.Join(t.TempDir(), defaultFile)
		write(t, file, fmt.Sprintf("listen: 127.0.0.1:0\nredis: %s\npeers: {listen: '127.0.0.1:0'}\nservers:\n"+
			"  - {name: bigpc, kind: codex, url: %q}\n  - {name: mini-claude, kind: acp, joined: true, cwd: /}\n", url, f.at["bigpc"]))
		s, err := loadWith(func(name string) string { return env[name] }, "--config", file)
		must(t, err)
		r = start(t, func(p *plan) {
			state = p.StateDir
			*p, err = s.plan(state, func(string) (string, error) { return "", os.ErrNotExist })
			must(t, err)
			p.Model = modelSettings{URL: f.voice.URL, Name: "scripted"}
		})
		return r, s, state
	}
	a, settings, state := instance()
	b, _, _ := instance()
	a.up("bigpc")

	var out bytes.Buffer
	must(t, changeKeys(t.Context(), settings, state, "robot", false, &out))
	made := []string{"Authorization", "Bearer " + strings.TrimSpace(out.String())}
	lets := func(r *running, want int) {
		t.Helper()
		until(t, fmt.Sprintf("the made key to get %d", want), func() bool {
			status, _ := r.ask(http.MethodGet, "/fleet/servers", "", made...)
			return status == want
		})
	}
	lets(a, http.StatusOK)
	lets(b, http.StatusOK)
	must(t, changeKeys(t.Context(), settings, state, "robot", true, &out))
	lets(b, http.StatusUnauthorized)

	until(t, "the doctor to see both beat", func() bool {
		out.Reset()
		(&doctor{out: &out, s: settings}).store(t.Context())
		return strings.Count(out.String(), "and is reached from here") == 2
	})

	kept := f.keep(t)
	status, body := a.ask(http.MethodPost, "/fleet/machines", `{"name":"mini"}`)
	var invited struct{ Code string }
	if must(t, json.Unmarshal(body, &invited)); status != http.StatusCreated {
		t.Fatalf("inviting: %d %s", status, body)
	}
	code, err := joined.ParseInvitation(invited.Code)
	must(t, err)
	_, own, err := ed25519.GenerateKey(nil)
	must(t, err)
	door, err := joined.Visit{URL: b.base, Key: own, Invitation: &code,
		About: joined.About{Agents: []joined.Agent{{Name: "codex", Kind: "codex"}, {Name: "claude", Kind: "acp"}}, Answers: true}}.Open(t.Context())
	must(t, err)
	background(t, func(ctx context.Context) error {
		var work sync.WaitGroup
		defer work.Wait()
		_ = door.Serve(ctx, &work, func(_ context.Context, o joined.Opening) (func(net.Conn), error) {
			network, at := "tcp", strings.TrimPrefix(f.at["laptop"], "ws://")
			if o.Agent == "claude" {
				network, at = "unix", kept
			}
			agent, err := net.Dial(network, at)
			return func(conn net.Conn) { joined.Join(ctx, conn, agent) }, err
		})
		return nil // it says how the line ended
	})
	b.up("mini", "mini-claude")
	a.up("mini", "mini-claude")
	for n, machine := range []string{"mini", "mini-claude"} {
		status, body = a.ask(http.MethodPost, "/fleet/handoffs",
			fmt.Sprintf(`{"server":%q,"thread_id":"new","prompt":"job %d takes 10"}`, machine, n))
		var given record
		if must(t, json.Unmarshal(body, &given)); status >= 300 {
			t.Fatalf("giving work: %d %s", status, body)
		}
		for _, r := range []*running{a, b} {
			until(t, "the outcome", func() bool {
				var rec record
				r.get("/fleet/handoffs/"+given.ID, &rec)
				return rec.Outcome == handoff.OutcomeResult
			})
		}
	}
	for _, r := range []*running{a, b} { // neither has the agent instead of the other
		_, text := r.ask(http.MethodGet, "/metrics", "")
		if !strings.Contains(string(text), `switchboard_server_connections_lost_total{server="mini-claude"} 0`+"\n") {
			t.Error("the connection to the agent was lost")
		}
	}
}

// keep runs a mux of an agent of the Agent Client Protocol, as a machine that joined does, and returns its socket.
func (f *farm) keep(t *testing.T) string {
	at, socket := f.withAgents(t), filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	must(t, err)
	background(t, func(ctx context.Context) error {
		return mux.Serve(ctx, mux.Config{Listener: l, Log: zap.NewNop(), Start: func(func(string)) (servers.Wire, error) {
			conn, err := net.Dial("tcp", at)
			return transport.LinesOver(conn), err
		}})
	})
	return socket
}

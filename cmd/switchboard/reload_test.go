package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/joined"
	"switchboard/web"
)

// settle writes the settings of a service anew and has it read them, by a signal, until it says some words.
func (c *child) settle(s *site, text, says string) {
	c.t.Helper()
	write(c.t, s.config, text)
	before := strings.Count(c.logs.String(), says)
	must(c.t, c.cmd.Process.Signal(syscall.SIGHUP))
	until(c.t, "it to say "+says, func() bool { return strings.Count(c.logs.String(), says) > before })
}

// noMachines is a store in which no machine joined.
type noMachines struct{ joined.Store }

func (noMachines) Machines(context.Context) ([]joined.Record, error) { return nil, nil }

// aloneIn returns a roster without machines that joined, of a service with a state directory.
func aloneIn(t *testing.T, dir string) *roster {
	private, err := joined.LoadKey(filepath.Join(dir, machinesKey))
	must(t, err)
	r := &roster{kinds: kinds(nil, nil), log: zap.NewNop()}
	r.machines, err = joined.Open(t.Context(), joined.Config{
		Key: private, Store: noMachines{}, Fleet: r, Spec: r.spec, Log: zap.NewNop(),
	}, new(joined.Lines))
	must(t, err)
	return r
}

// anyThread is a connection that has every thread.
type anyThread struct{ servers.Conn }

func (anyThread) Attach(_ context.Context, thread string) (handoff.Attached, error) {
	return handoff.Attached{Target: handoff.Target{Thread: thread}}, nil
}

func (anyThread) Close() error { return nil }

// TestNothingBeginsDuringAChange: from the look whether a program works that ends with the change of its server until
// that is made, no work begins there; it begins on what is there then.
func TestNothingBeginsDuringAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := aloneIn(t, t.TempDir())
		dial := func(context.Context) (*servers.Link, error) {
			return &servers.Link{Conn: anyThread{}, Done: make(chan struct{})}, nil
		}
		spec := servers.Spec{Name: "bigpc", Kind: "codex", EndsWithUs: true, Dial: dial}
		first, err := r.first(t.Context(), []servers.Spec{spec})
		must(t, err)
		r.fleet, err = servers.New(servers.Config{Specs: first})
		must(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.fleet.Run(ctx) }()
		synctest.Wait()
		begun := make(chan error, 1)
		r.busy = func(server string) bool {
			go func() {
				_, err := r.fleet.Attach(t.Context(), handoff.Target{Server: server, Thread: "t"})
				begun <- err
			}()
			synctest.Wait()
			if len(begun) > 0 {
				t.Error("a thread was attached after the look")
			}
			return false
		}
		spec.Entry = "another"
		did, _, err := r.settle([]servers.Spec{spec}, nil)
		must(t, err)
		if err := <-begun; err != nil || len(did) != 1 {
			t.Errorf("after the change %v, which was %v", err, did)
		}
		stop()
		must(t, <-ended)
	})
}

// TestRevokedStaysRevoked: a made key that is revoked while the settings are read again does not come back with them.
func TestRevokedStaysRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		_, err := makeKey(t.Context(), madeKeys{file: keysFile(dir)}, "guest")
		must(t, err)
		r := aloneIn(t, dir)
		l := &reloading{made: madeKeys{file: keysFile(dir)}, initial: &settings{}, current: &settings{}, roster: r}
		var lets []web.Key
		l.setKeys = func(keys []web.Key) { lets = keys }
		revoke, told := false, make(chan error, 1)
		spec := servers.Spec{Name: "bigpc", Kind: "codex", Own: codexAt("ws://127.0.0.1:1")}
		spec.Credential.Read = func() (string, error) { // in the middle of the reload
			if revoke {
				revoke = false
				_, err := revokeKeys(t.Context(), madeKeys{file: keysFile(dir)}, "guest")
				go func() { told <- l.keys(t.Context()) }()
				synctest.Wait()
				return "", err
			}
			return "", nil
		}
		l.load = func() (*settings, error) { return &settings{Servers: []servers.Spec{spec}}, nil }
		_, err = r.first(t.Context(), []servers.Spec{spec})
		must(t, err)
		revoke = true
		_, err = l.reload(t.Context())
		must(t, err)
		must(t, <-told)
		if slices.ContainsFunc(lets, func(k web.Key) bool { return k.Principal == "guest" }) {
			t.Error("the guest's key lets in, which is revoked")
		}
	})
}

// TestReloadOfTheSame: settings that are read again without a change need no restart, also with a simulated voice.
func TestReloadOfTheSame(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) {
		own := p.settings
		p.Again = func() (*settings, error) { next := own; return &next, nil }
	})
	if status, body := r.ask(http.MethodPost, "/fleet/settings/reload", ""); status != http.StatusOK ||
		strings.Contains(string(body), "model") {
		t.Errorf("%d %s", status, body)
	}
}

// TestReload: machines, keys and limits take effect in a service that runs, in a call that is older than they are, and
// what is under way goes on to its outcome, once. What is wrong is refused whole, with its place.
func TestReload(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	s := newSite(t, f.voice.URL, "", map[string]string{"bigpc": f.at["bigpc"]})
	before, err := os.ReadFile(s.config)
	must(t, err)
	guest := strings.Repeat("g", 32)
	c := s.start()
	c.up("bigpc")
	p := c.call()
	asGuest := func() int {
		status, _ := c.ask(http.MethodGet, "/fleet/servers", "", "Authorization", "Bearer "+guest)
		return status
	}

	// In the middle of work bigpc gets another name, and laptop comes.
	p.say(work("bigpc", "job 1 takes 3000"))
	until(t, "job 1 to begin", func() bool { return f.turns()["job 1 takes 3000"] == 1 })
	more := strings.Replace(string(before), "name: bigpc,", "name: bigpc, aliases: [desk],", 1) +
		fmt.Sprintf("  - {name: laptop, kind: codex, url: %q}\n", f.at["laptop"])
	keys := fmt.Sprintf("keys: [{principal: guest, key_sha256: %x, servers: [laptop]}]\n", sha256.Sum256([]byte(guest)))
	if asGuest() != http.StatusUnauthorized {
		t.Error("a guest comes in before there is a key of theirs")
	}
	c.settle(s, keys+more, "settings read again")
	c.up("laptop")
	p.say(work("laptop", "job 2 takes 100"))
	p.hear("job 2 is done")
	p.say(work("desk", "job 3 takes 100"))
	p.hear("job 3 is done")
	until(t, "job 1 to be told", func() bool { // before the others, where those took their time
		return strings.Contains(strings.Join(p.spoken(), "\n"), "job 1 is done")
	})
	if asGuest() != http.StatusOK {
		t.Error("the guest's key does not let in")
	}

	// What would be wrong is refused whole, and told with its place.
	wrong := strings.Replace(keys+more, "guest", "gu est", 1) + "  - {name: mini, kind: codex, url: \"ws://127.0.0.1:1\", aliases: [desk]}\n"
	c.settle(s, wrong, "settings not taken")
	for _, place := range []string{".yaml:1:20: ", ".yaml:7:66: "} {
		if !strings.Contains(c.logs.String(), place) {
			t.Errorf("no problem at %s in %s", place, c.logs.tail(2000))
		}
	}
	if text, err := verb(s, "reload"); err == nil || !strings.Contains(text, "keys[0].principal") {
		t.Errorf("reload says %q, %v", text, err)
	}
	if servers := items[handoff.ServerInfo](&c.running, "/fleet/servers"); len(servers) != 2 || asGuest() != http.StatusOK {
		t.Errorf("not all is as it was: %+v", servers)
	}

	// A limit holds for what comes next, a key that is gone lets nobody in, and what takes a restart is named.
	limited := strings.Replace(more, "handoffs_per_minute: 0", "handoffs_per_minute: 1", 1) + "approvals: {give_up: 45m}\n"
	write(t, s.config, limited)
	text, err := verb(s, "reload")
	for _, word := range []string{"a key of guest is removed", "what a key of owner may do is changed", "needs a restart: approvals.give_up\n"} {
		if err != nil || !strings.Contains(text, word) {
			t.Errorf("%q is not in %q, %v", word, text, err)
		}
	}
	if got := asGuest(); got != http.StatusUnauthorized {
		t.Errorf("the guest's key is removed, and answered with %d", got)
	}
	give := func() int {
		status, _ := c.ask(http.MethodPost, "/fleet/handoffs", `{"server":"bigpc","thread_id":"new","prompt":"job 4 takes 10"}`)
		return status
	}
	for status := give(); status != http.StatusTooManyRequests; status = give() { // those of the call before count
		if status/100 != 2 {
			t.Fatalf("answered with %d", status)
		}
	}

	// A machine that is removed takes nothing with it but its line: the work goes on there, and is told as what it is.
	c.settle(s, more, "settings read again")
	p.say(work("laptop", "job 5 hangs"))
	until(t, "job 5 to begin", func() bool { return f.turns()["job 5 hangs"] == 1 })
	if text, err := verb(s, "remove", "--config", s.config, "laptop"); err != nil || !strings.Contains(text, "has taken it") {
		t.Errorf("remove says %q, %v", text, err)
	}
	if now, _ := os.ReadFile(s.config); strings.Contains(string(now), "laptop") || !strings.Contains(string(now), "desk") {
		t.Errorf("the file is now\n%s", now)
	}
	until(t, "job 5 to be told", func() bool {
		all := items[handoff.Record](&c.running, "/fleet/handoffs")
		return len(all) > 0 && all[0].Prompt == "job 5 hangs" && all[0].Outcome == handoff.OutcomeUnknown
	})
	if text, err := verb(s, "add", "--config", s.config, "attic", f.at["laptop"]); err != nil || !strings.Contains(text, "has taken it") {
		t.Errorf("add says %q, %v", text, err)
	}
	c.up("attic")
	f.check(t)
}

package main

import (
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/goccy/go-yaml"

	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
)

// deployed is the directory of the files that an operator begins with.
const deployed = house + "/web/help/deploy/"

// TestDeployment starts the parts of compose.yaml from the files beside it, without containers: Redis, Switchboard and
// Caddy. What has to get through does: events as they come, a call, a key. The Redis keeps what it is told.
func TestDeployment(t *testing.T) {
	t.Parallel()
	var compose struct {
		Services map[string]struct{ Command []string }
		Networks map[string]struct {
			IPAM struct {
				Config []struct{ Subnet netip.Prefix }
			}
		}
	}
	data, err := os.ReadFile(deployed + "compose.yaml")
	must(t, err)
	must(t, yaml.UnmarshalWithOptions(data, &compose, yaml.AllowFieldPrefixes("x-")))

	store := fmt.Sprint(sessionstest.FreePort(t))
	command := compose.Services["redis"].Command
	lines, _ := spawn(t, nil, t.TempDir(), append(append([]string{program(t, command[0], "redis-server")}, command[1:]...),
		"--bind", "127.0.0.1", "--port", store)...)
	listens(t, lines, "Ready to accept connections")

	site := fmt.Sprintf("127.0.0.1:%d", sessionstest.FreePort(t))
	inside := fmt.Sprintf("127.0.0.1:%d", sessionstest.FreePort(t))
	env := map[string]string{"OWNER_KEY": testKey, "REDIS_URL": "redis://127.0.0.1:" + store + "/0"}
	o, _, err := parseOptions([]string{"--config", deployed + "switchboard.yaml"}, t.Output(), t.Output())
	must(t, err)
	s, err := loadSettings(o, func(name string) string { return env[name] })
	must(t, err)
	if subnet := compose.Networks["inside"].IPAM.Config[0].Subnet; len(s.TrustedProxies) != 1 || s.TrustedProxies[0] != subnet {
		t.Errorf("trusted_proxies is %v, and Caddy comes from %v", s.TrustedProxies, subnet)
	}
	r := start(t, func(p *plan) {
		state := p.StateDir
		*p, err = s.plan(state, func(string) (string, error) { return "", os.ErrNotExist })
		must(t, err)
		p.Listen, p.PublicURL, p.Hurry = inside, "http://"+site, 5
		p.Media.UDP, p.Media.Advertise = "", nil
	})

	home := t.TempDir()
	caddyfile, err := filepath.Abs(deployed + "Caddyfile")
	must(t, err)
	lines, _ = spawn(t, []string{"SITE=http://" + site, "UPSTREAM=" + inside, "HOME=" + home, "XDG_DATA_HOME=" + home,
		"XDG_CONFIG_HOME=" + home}, home, program(t, "caddy", "caddy"), "run", "--adapter", "caddyfile",
		"--config", caddyfile)
	listens(t, lines, "serving initial configuration")
	if status, body := r.ask(http.MethodGet, "/readyz", "", "Authorization", ""); status != http.StatusOK {
		t.Fatalf("/readyz: %d %s", status, body)
	}
	r.up("bigpc")

	r.streamsWork()

	p := r.call()
	p.say("Which machines do I have?")
	p.hear("bigpc")
	if about, err := redis.Inspect(t.Context(), redis.Config{URL: env["REDIS_URL"]}); err != nil || !about.Journal || about.Evicts {
		t.Errorf("the Redis: %+v %v", about, err)
	}
}

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
	compose := composed(t, deployed+"compose.yaml")
	store := fmt.Sprint(sessionstest.FreePort(t))
	command := compose.Services["redis"].Command
	command = append([]string{program(t, command[0], "redis-server")}, command[1:]...)
	lines, _ := spawn(t, nil, t.TempDir(), append(command, "--bind", "127.0.0.1", "--port", store)...)
	listens(t, lines, "Ready to accept connections")

	site := fmt.Sprintf("127.0.0.1:%d", sessionstest.FreePort(t))
	inside := fmt.Sprintf("127.0.0.1:%d", sessionstest.FreePort(t))
	url, env := "redis://127.0.0.1:"+store+"/0", map[string]string{"OWNER_KEY": testKey}
	s, err := loadWith(func(name string) string { return env[name] }, "--config", deployed+"switchboard.yaml", "--redis", url)
	must(t, err)
	compose.comesFrom(t, s)
	r := start(t, func(p *plan) {
		state := p.StateDir
		*p, err = s.plan(state, func(string) (string, error) { return "", os.ErrNotExist })
		must(t, err)
		p.Listen, p.PublicURL, p.Hurry = inside, "http://"+site, 5
		p.Media = mediaSettings{}
	})

	caddy(t, deployed+"Caddyfile", "SITE=http://"+site, "UPSTREAM="+inside)
	if status, body := r.ask(http.MethodGet, "/readyz", "", "Authorization", ""); status != http.StatusOK {
		t.Fatalf("/readyz: %d %s", status, body)
	}
	r.up("bigpc")

	r.streamsWork()

	p := r.call()
	p.say("Which machines do I have?")
	p.hear("bigpc")
	if seen, err := redis.Look(t.Context(), redis.Config{URL: url}); err != nil || !seen.About.Journal || seen.About.Evicts {
		t.Errorf("the Redis: %+v %v", seen, err)
	}
}

// A composition is what a test reads of a compose file.
type composition struct {
	Services map[string]struct {
		Command     []string
		Environment map[string]string
	}
	Networks map[string]struct {
		IPAM struct {
			Config []struct{ Subnet netip.Prefix }
		}
	}
}

func composed(t *testing.T, path string) (c composition) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	must(t, yaml.Unmarshal(data, &c))
	return c
}

// comesFrom holds that settings trust the network that Caddy comes from, and no other.
func (c composition) comesFrom(t *testing.T, s *settings) {
	t.Helper()
	subnet := c.Networks["inside"].IPAM.Config[0].Subnet
	if len(s.TrustedProxies) != 1 || s.TrustedProxies[0] != subnet {
		t.Errorf("trusted_proxies is %v, and Caddy comes from %v", s.TrustedProxies, subnet)
	}
}

// caddy runs a Caddy of a file until the test ends.
func caddy(t *testing.T, file string, env ...string) {
	t.Helper()
	home := t.TempDir()
	file, err := filepath.Abs(file)
	must(t, err)
	env = append(env, "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home)
	lines, _ := spawn(t, env, home, program(t, "caddy", "caddy"), "run", "--adapter", "caddyfile", "--config", file)
	listens(t, lines, "serving initial configuration")
}

// TestDeploymentOfSeveral starts the parts of several/compose.yaml from the files beside it, without containers: a
// Redis with its replica and three Sentinels, three Switchboards and Caddy. Through it goes what has to, whichever
// instance Caddy chooses; and when one ends, no request notices.
func TestDeploymentOfSeveral(t *testing.T) {
	t.Parallel()
	const several = deployed + "several/"
	compose := composed(t, several+"compose.yaml")
	redis := map[string]string{"redis": fmt.Sprint(sessionstest.FreePort(t)), "redis-replica": fmt.Sprint(sessionstest.FreePort(t))}
	for _, name := range []string{"redis", "redis-replica"} {
		command := slices.Clone(compose.Services[name].Command)
		for i, word := range command[1:] {
			switch {
			case redis[word] != "":
				command[i+1] = "127.0.0.1"
			case word == "6379":
				command[i+1] = redis["redis"]
			}
		}
		command[0] = program(t, command[0], "redis-server")
		lines, _ := spawn(t, nil, t.TempDir(), append(command, "--bind", "127.0.0.1", "--port", redis[name])...)
		listens(t, lines, "Ready to accept connections")
	}
	url := compose.Services["switchboard-1"].Environment["REDIS_URL"]
	conf, err := os.ReadFile(several + "sentinel.conf")
	must(t, err)
	for i := range 3 {
		port, dir := fmt.Sprint(sessionstest.FreePort(t)), t.TempDir()
		url = strings.ReplaceAll(url, fmt.Sprintf("sentinel-%d:26379", i+1), "127.0.0.1:"+port)
		write(t, filepath.Join(dir, "sentinel.conf"), strings.NewReplacer("port 26379", "bind 127.0.0.1\nport "+port,
			"redis 6379", "127.0.0.1 "+redis["redis"]).Replace(string(conf)))
		lines, _ := spawn(t, nil, dir, program(t, "redis-server", "redis-server"), filepath.Join(dir, "sentinel.conf"), "--sentinel")
		listens(t, lines, "+monitor master main")
	}

	site := fmt.Sprintf("127.0.0.1:%d", sessionstest.FreePort(t))
	var all []*running
	var upstreams strings.Builder
	upstreams.WriteString("UPSTREAMS=")
	for i := range 3 {
		inside := fmt.Sprintf("127.0.0.1:%d", sessionstest.FreePort(t))
		upstreams.WriteString(inside + " ")
		env := map[string]string{"OWNER_KEY": testKey}
		s, err := loadWith(func(name string) string { return env[name] }, "--config", fmt.Sprintf("%s%d.yaml", several, i+1), "--redis", url)
		must(t, err)
		compose.comesFrom(t, s)
		all = append(all, start(t, func(p *plan) {
			state := p.StateDir
			*p, err = s.plan(state, func(string) (string, error) { return "", os.ErrNotExist })
			must(t, err)
			p.Listen, p.PublicURL, p.Hurry, p.Peers.Listen = inside, "http://"+site, 5, "127.0.0.1:0"
			p.Media = mediaSettings{}
		}))
	}
	caddy(t, several+"Caddyfile", "SITE=http://"+site, "HEALTH_HOST="+site, upstreams.String())
	r := all[0]
	r.up("bigpc")
	r.streamsWork()
	p := r.call()
	p.say("Which machines do I have?")
	p.hear("bigpc")
	p.hangUp()

	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		all[1].stop()
	}()
	for ending, after := true, 0; after < 20; {
		select {
		case <-stopped:
			ending = false
		default:
		}
		if !ending {
			after++
		}
		if status, body := r.ask(http.MethodGet, "/fleet/handoffs", ""); status != http.StatusOK {
			t.Fatalf("while one ends (%v): %d %s", ending, status, body)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestCaddyGivesUpAFrozenInstance: what was handed to an instance that is frozen is given up after a while. Work may
// take as long as it takes.
func TestCaddyGivesUpAFrozenInstance(t *testing.T) {
	t.Parallel()
	working, done := make(chan struct{}), make(chan struct{})
	instance := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/responses":
			close(working)
			<-done
		case "/fleet/handoffs": // as if it were frozen
			<-done
		}
	}))
	defer instance.Close()
	site := fmt.Sprintf("127.0.0.1:%d", sessionstest.FreePort(t))
	caddy(t, deployed+"several/Caddyfile", "SITE=http://"+site, "HEALTH_HOST="+site,
		"UPSTREAMS="+instance.Listener.Addr().String(), "ANSWER_WITHIN=1s")
	client := &http.Client{Timeout: patience}
	post := func(path string) int {
		resp, err := client.Post("http://"+site+path, "application/json", http.NoBody)
		if err != nil {
			t.Error(err)
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	worked := make(chan int, 1)
	go func() { worked <- post("/v1/responses") }()
	<-working
	if status := post("/fleet/handoffs"); status != http.StatusGatewayTimeout {
		t.Errorf("a frozen instance: %d", status)
	}
	close(done)
	if status := <-worked; status != http.StatusOK {
		t.Errorf("work: %d", status)
	}
}

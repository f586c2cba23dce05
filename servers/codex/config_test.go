package codex

import (
	"slices"
	"strings"
	"testing"

	"switchboard/servers"
	"switchboard/servers/serverstest"
	"switchboard/servers/transport"
)

// configured returns empty settings of a server, and those of its transports.
func configured() (*Config, *transport.WebSocket, *transport.Unix, *transport.Child) {
	cfg := Kind(transport.ByURL(), transport.ByUnix(), transport.ByCommand()).New().(*Config)
	ways := cfg.ways.Rows()
	return cfg, ways[0].(*transport.WebSocket), ways[1].(*transport.Unix), ways[2].(*transport.Child)
}

// TestCheck holds what is told of settings that cannot be, and how the machine is shown to people.
func TestCheck(t *testing.T) {
	oneWay := ": needs one of url, unix and command"
	for name, c := range map[string]struct {
		set   func(*Config, *transport.WebSocket, *transport.Unix, *transport.Child)
		want  string // the only problem; "" for none
		start string
	}{
		"an address": {func(c *Config, w *transport.WebSocket, _ *transport.Unix, _ *transport.Child) {
			w.URL, c.Sandbox, c.Approval, c.Ceiling = "ws://127.0.0.1:4500", "read-only", "never", "workspace-write"
		}, "", "codex app-server --listen ws://127.0.0.1:4500"},
		"an address with a token": {func(_ *Config, w *transport.WebSocket, _ *transport.Unix, _ *transport.Child) {
			w.URL, w.TokenEnv = "wss://bigpc.example", "TOKEN"
		}, "", "codex app-server --listen ws://127.0.0.1:PORT --ws-auth capability-token --ws-token-file FILE"},
		"a machine in the clear": {func(_ *Config, w *transport.WebSocket, _ *transport.Unix, _ *transport.Child) {
			w.URL, w.AllowPlaintext = "ws://10.0.0.5:1", true
		}, "", "codex app-server --listen ws://0.0.0.0:1"},
		"a child": {func(_ *Config, _ *transport.WebSocket, _ *transport.Unix, c *transport.Child) {
			c.Command, c.Env = []string{"codex", "app-server", "-c", "secret"}, []string{"LANG", "A_B=c"}
		}, "", "codex app-server"},
		"a socket": {func(_ *Config, _ *transport.WebSocket, u *transport.Unix, _ *transport.Child) {
			u.Path = "/run/codex.sock"
		}, "", "codex app-server --listen unix:///run/codex.sock"},
		"two ways": {func(_ *Config, w *transport.WebSocket, u *transport.Unix, _ *transport.Child) {
			u.Path, w.URL = "/run/codex.sock", "ws://127.0.0.1:1"
		}, oneWay, ""},
		"no way": {func(*Config, *transport.WebSocket, *transport.Unix, *transport.Child) {}, oneWay, ""},
		"a setting of another way": {func(_ *Config, w *transport.WebSocket, u *transport.Unix, _ *transport.Child) {
			u.Path, w.AllowPlaintext = "/a", true
		}, "allow_plaintext: goes with url only", "codex app-server --listen unix:///a"},
		"another word": {func(c *Config, w *transport.WebSocket, _ *transport.Unix, _ *transport.Child) {
			w.URL, c.Sandbox = "ws://127.0.0.1:1", "readonly"
		}, `sandbox: "readonly" is unknown`, "codex app-server --listen ws://127.0.0.1:1"},
		"too loose": {func(c *Config, w *transport.WebSocket, _ *transport.Unix, _ *transport.Child) {
			w.URL, c.Sandbox, c.Ceiling = "ws://127.0.0.1:1", "danger-full-access", "read-only"
		}, "sandbox: danger-full-access is looser than the ceiling read-only, so no new session could run",
			"codex app-server --listen ws://127.0.0.1:1"},
		"in the clear": {func(_ *Config, w *transport.WebSocket, _ *transport.Unix, _ *transport.Child) {
			w.URL = "ws://10.0.0.5:1"
		}, "url: ws:// to another machine goes in the clear: use wss:// or a tunnel, or set allow_plaintext: true",
			"codex app-server --listen ws://0.0.0.0:1"},
		"our variables": {func(_ *Config, _ *transport.WebSocket, _ *transport.Unix, c *transport.Child) {
			c.Command, c.Env = []string{"codex"}, []string{"A", "SWITCHBOARD_KEY"}
		}, "env[1]: SWITCHBOARD_KEY is Switchboard's own, and what an agent runs could read it", "codex"},
		"a directory there": {func(cfg *Config, w *transport.WebSocket, _ *transport.Unix, _ *transport.Child) {
			w.URL, cfg.Cwd = "ws://127.0.0.1:1", "src"
		}, `cwd: "src" must be an absolute path: it is one of that machine`, "codex app-server --listen ws://127.0.0.1:1"},
	} {
		cfg, w, u, child := configured()
		c.set(cfg, w, u, child)
		if said := strings.Join(serverstest.Check(cfg), "; "); said != c.want {
			t.Errorf("%s: said %q, want %q", name, said, c.want)
		}
		var s servers.Spec
		if cfg.Describe(&s); s.About.Start != c.start {
			t.Errorf("%s: it is started by %q, want %q", name, s.About.Start, c.start)
		}
	}
}

// TestChild: an app-server on the streams of a child is exclusive, and its end is the loss of the connection.
func TestChild(t *testing.T) {
	t.Parallel()
	const plays = `read line; echo '{"id":1,"result":{"userAgent":"switchboard/0.150.1 (x)"}}'; read line; read line; exit 3`
	link, err := Dialer(Config{Name: "laptop", Way: &transport.Child{Command: []string{"sh", "-c", plays}}})(t.Context())
	must(t, err)
	if link.Version != "0.150.1" || !link.Exclusive {
		t.Errorf("%+v", link)
	}
	if _, err := link.Catalog.Read(t.Context(), "x", 1); err == nil {
		t.Error("it read")
	}
	<-link.Done
	must(t, link.Conn.Close())
	if died := link.Conn.(*connection).cfg.died.Load(); died == nil || *died != "its program ended: exit status 3" {
		t.Errorf("it died of %v", died)
	}
}

func TestThreadIDs(t *testing.T) {
	ids := []string{thread1, "", "new", thread1 + "0", "auth refactor"}
	if got := slices.DeleteFunc(ids, func(id string) bool { return !Kind().IsThread(id) }); !slices.Equal(got,
		[]string{thread1}) {
		t.Errorf("ids of threads: %q", got)
	}
}

package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers"
	"switchboard/servers/codex"
	"switchboard/servers/responses"
	"switchboard/servers/transport"
)

// world is where a configuration is loaded in a test: files in a directory of its own, and an environment
// with nothing else in it.
type world struct {
	files map[string]string
	env   map[string]string
	args  []string
}

// load loads as the program does. The file names in its result are relative to the directory.
func (w world) load(t *testing.T) (*settings, error) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range w.files {
		must(t, os.MkdirAll(filepath.Dir(name), 0o700))
		write(t, name, text)
	}
	return loadWith(func(name string) string { return w.env[name] }, w.args...)
}

// loadWith loads settings as the program does with these arguments.
func loadWith(env func(string) string, args ...string) (*settings, error) {
	c := &console{env: env}
	if _, _, err := c.commands().Parse(args); err != nil {
		return nil, err
	}
	return loadSettings(&c.options, env, nil)
}

// file is a world with one file.
func file(text string) world { return world{files: map[string]string{"switchboard.yaml": text}} }

// byURL is the way to an app-server with an address, and codexAt what is configured of one.
func byURL(url string) servers.Way { return &transport.WebSocket{URL: url} }

func codexAt(url string) *codex.Config { return &codex.Config{Way: byURL(url)} }

// goodKey is a key in tests.
const goodKey = "0123456789abcdef"

// wantProblems fails the test unless err is exactly these lines; a line that ends in "…" is a beginning.
func wantProblems(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("accepted")
	}
	if _, ok := errors.AsType[problems](err); !ok {
		t.Fatalf("not problems but %T: %v", err, err)
	}
	got := strings.Split(err.Error(), "\n")
	for i, line := range want {
		if begin, ok := strings.CutSuffix(line, "…"); ok && i < len(got) && strings.HasPrefix(got[i], begin) {
			want[i] = got[i]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("problems (-want +got):\n%s", diff)
	}
}

func TestNothingSet(t *testing.T) {
	s, err := world{}.load(t)
	must(t, err)
	if s.Listen != "127.0.0.1:8080" || s.Model.Name != "gpt-realtime-2.1" || s.Model.URL != "" || s.Redis.Reveal() != "" ||
		len(s.Access) != 0 || len(s.Servers) != 0 || s.File != "" {
		t.Fatalf("settings %+v", s)
	}
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "null\n"} {
		if _, err := file(text).load(t); err != nil {
			t.Errorf("file %q: %v", text, err)
		}
	}
}

// everything that can be set, in one file.
const everything = `
listen: 0.0.0.0:8443
public_url: https://bigpc.example.ts.net/
trusted_proxies: [10.0.0.0/8, "::1/128"]
media: {udp: 0.0.0.0:8443, advertise: [203.0.113.7]}
redis: redis://u:s3cret@127.0.0.1:6379/0
keys:
  - {principal: owner, key_file: keys/owner.key}
  - {principal: assistant, key_env: ASSISTANT_KEY, names_callers: true, servers: [bigpc, far], tools: [codex, status],
     approve: true, metrics: true, instructions: true, limits: {calls: 50, handoffs_per_minute: 0, dollars_per_day: 2.5}}
  - {principal: guest, key_sha256: ABCDEF11f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e5641769299}
model: {url: wss://voice.example.com/v1/realtime, name: some-model, key_env: VOICE_KEY, aliases: {gpt-realtime: some-model}, prices: {audio_out: 20}}
limits: {calls: 2, minutes_per_day: 60, handoffs_per_minute: 9, dollars_per_day: 7, dollars_per_call: 1}
speech: {updates: chatty}
approvals: {ask_again: 45s, give_up: 1h}
work: {silence: 90s, patience: 15m}
notify: {webhook: "http://10.0.0.6/t0pic?x=y", token_file: notify.token, allow_plaintext: true}
servers:
  - {name: bigpc, aliases: [big pc, the desktop], kind: codex, url: ws://127.0.0.1:4500, token_file: bigpc.token,
     cwd: /home/me/src, projects: {api: /home/me/src/api, web: {dir: /home/me/web, worktree: true}}, sandbox: workspace-write, approval: on-request, model: gpt-5.5,
     ceiling: danger-full-access, voice_approvals: low}
  - {name: laptop, kind: codex, command: [bin/codex, app-server], cwd: src, projects: {api: src/api}}
  - name: far
    kind: codex
    url: ws://10.0.0.5:4500
    allow_plaintext: true
    token_env: FAR_TOKEN
    for: [owner, assistant]
`

func everythingWorld() world {
	return world{
		files: map[string]string{"etc/my.yaml": everything, "etc/keys/owner.key": goodKey + "\n",
			"etc/bigpc.token": "token-1\n", "etc/notify.token": "token-9"},
		env:  map[string]string{"ASSISTANT_KEY": goodKey + "-assistant", "VOICE_KEY": "voice", "FAR_TOKEN": "token-2"},
		args: []string{"--config", "etc/my.yaml"},
	}
}

func TestEverythingSet(t *testing.T) {
	s, err := everythingWorld().load(t)
	must(t, err)
	dir, _ := os.Getwd()
	if s.Listen != "0.0.0.0:8443" || s.PublicURL != "https://bigpc.example.ts.net/" || len(s.TrustedProxies) != 2 ||
		s.TrustedProxies[0].String() != "10.0.0.0/8" || s.Media.UDP.String() != "0.0.0.0:8443" ||
		len(s.Media.Advertise) != 1 || s.Redis.Reveal() != "redis://u:s3cret@127.0.0.1:6379/0" || s.File != "etc/my.yaml" {
		t.Errorf("settings %+v", s)
	}
	if m := s.Model; m.URL != "wss://voice.example.com/v1/realtime" || m.Name != "some-model" ||
		m.Key.Reveal() != "voice" {
		t.Errorf("model %+v", m)
	}
	var who []string
	for _, k := range s.Access {
		who = append(who, k.Principal)
	}
	if fmt.Sprint(who) != "[owner assistant guest]" || s.Access[0].Sum != sha256.Sum256([]byte(goodKey)) ||
		s.Access[1].Sum != sha256.Sum256([]byte(goodKey+"-assistant")) || s.Access[2].Sum[0] != 0xab {
		t.Errorf("keys %v %+v", who, s.Access)
	}
	big, laptop, far := s.Servers[0], s.Servers[1], s.Servers[2]
	own := big.Own.(*codex.Config)
	if fmt.Sprint(big.Aliases) != "[big pc the desktop]" || own.Cwd != "/home/me/src" || big.Dir != own.Cwd ||
		own.Sandbox != "workspace-write" ||
		own.Approval != "on-request" || own.Model != "gpt-5.5" || big.Projects["api"] != "/home/me/src/api" ||
		big.Projects["web"] != "/home/me/web" || !big.Worktrees["web"] || big.Worktrees["api"] ||
		own.Ceiling != "danger-full-access" || big.VoiceApprovals != "low" {
		t.Errorf("bigpc %+v %+v", big, own)
	}
	child := laptop.Own.(*codex.Config).Way.(*transport.Child)
	if program := filepath.Join(dir, "etc/bin/codex"); child.Command[0] != program || laptop.Program != program ||
		!laptop.EndsWithUs ||
		laptop.Dir != filepath.Join(dir, "etc/src") || laptop.Projects["api"] != filepath.Join(dir, "etc/src/api") ||
		laptop.Credential.Read != nil {
		t.Errorf("laptop %+v", laptop)
	}
	if far.Host != "10.0.0.5" || far.About.Address != "ws://10.0.0.5:4500" || far.EndsWithUs {
		t.Errorf("far %+v", far)
	}
	for _, tt := range []struct {
		s    servers.Spec
		want string
	}{{big, "token-1"}, {far, "token-2"}} {
		if got, err := tt.s.Credential.Read(); err != nil || got != tt.want {
			t.Errorf("token of %s: %q, %v", tt.s.Name, got, err)
		}
	}
	write(t, "etc/bigpc.token", "token-3")
	if got, _ := big.Credential.Read(); got != "token-3" {
		t.Errorf("a new token is not seen: %q", got)
	}
}

// TestMissingToken: a machine whose token cannot be read is down, and says so; the others start.
func TestMissingToken(t *testing.T) {
	s, err := file(fmt.Sprintf(`servers:
  - {name: bigpc, kind: codex, url: ws://127.0.0.1:1, token_file: not-there}
  - {name: helper, kind: responses, url: http://127.0.0.1:1/v1, model: m, workspace: %s, key_env: NOT_SET}
`, t.TempDir())).load(t)
	must(t, err)
	agents := responses.NewAgents(threads.NewMemory(), nil)
	for i, want := range []string{"read token: open ", "read key: the environment has no NOT_SET"} {
		server := s.Servers[i]
		kind, _ := kindNamed(kinds(agents, nil), server.Kind)
		dial, _ := kind.Dial(server, zap.NewNop())
		_, err := dial(t.Context())
		if e := handoff.AsError(err); e.Code != handoff.CodeUnreachable || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", server.Name, err)
		}
	}
}

// TestSettingsThatMayBeUnset: true, false and unset are three things.
func TestSettingsThatMayBeUnset(t *testing.T) {
	const helper = "servers:\n  - {name: helper, kind: responses, url: https://a.example/v1, model: m, key_env: K, workspace: sub%s}\n"
	yes, no := true, false
	for text, want := range map[string]*bool{"": nil, ", store: true": &yes, ", store: false": &no} {
		w := file(fmt.Sprintf(helper, text))
		w.env = map[string]string{"K": "k", "XDG_STATE_HOME": t.TempDir()}
		w.files["sub/x"] = ""
		s, err := w.load(t)
		must(t, err)
		if diff := cmp.Diff(want, s.Servers[0].Own.(*responses.Settings).Store); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// How callers are told of things, as it is set and as it is otherwise.
func TestManners(t *testing.T) {
	s, err := everythingWorld().load(t)
	must(t, err)
	if s.Speech.Updates != string(handoff.LevelChatty) || s.Approvals != (approvalSettings{45e9, 3600e9}) ||
		s.Work != (workSettings{90e9, 900e9}) || s.Notify.Webhook.Reveal() != "http://10.0.0.6/t0pic?x=y" {
		t.Errorf("%v %v %v %q", s.Speech, s.Approvals, s.Work, s.Notify.Webhook.Reveal())
	}
	if token, err := s.Notify.Token(); err != nil || token != "token-9" {
		t.Errorf("token %q, %v", token, err)
	}
	if s, err = file("notify: {webhook: 'https://ntfy.example.com/me'}").load(t); err != nil {
		t.Fatal(err)
	}
	if s.Speech.Updates != string(handoff.LevelMilestones) || s.Approvals != (approvalSettings{60e9, 1800e9}) ||
		s.Work != (workSettings{120e9, 1800e9}) || s.Notify.Token != nil {
		t.Errorf("%v %v %v", s.Speech, s.Approvals, s.Work)
	}
	for want, d := range map[string]span{"1m": 60e9, "45s": 45e9, "1m30s": 90e9, "2h": 7200e9, "1h30m": 5400e9,
		"1h0m5s": 3605e9, "1.5s": 15e8} {
		if got := d.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		var back span
		if err := back.UnmarshalText([]byte(want)); err != nil || back != d {
			t.Errorf("%q is read as %v, %v", want, back, err)
		}
	}
}

// TestRedisInTheClear holds which addresses of a Redis need a word that they go in the clear.
func TestRedisInTheClear(t *testing.T) {
	for url, clear := range map[string]bool{
		"redis://127.0.0.1:6379/0": false, "redis://[::1]:6379": false, "redis://localhost": false, "redis:///1": false,
		"unix:///run/redis.sock": false, "rediss://u:s3cret@cache.example.com/0": false, "redis://10.0.0.6:6379": true,
		"REDIS://u:s3cret@cache.example.com/0": true, "redis://cache": true, "redis://localhost.example.com": true,
	} {
		for _, w := range []world{{args: []string{"--redis", url}}, {env: map[string]string{"REDIS_URL": url}},
			file("redis: '" + url + "'")} {
			_, err := w.load(t)
			if (err != nil) != clear || clear &&
				(!strings.Contains(err.Error(), "redis_allow_plaintext: true") || strings.Contains(err.Error(), "s3cret")) {
				t.Errorf("%s: %v", url, err)
			}
		}
		w := file("redis: '" + url + "'\nredis_allow_plaintext: true")
		if _, err := w.load(t); (err != nil) != (!strings.HasPrefix(strings.ToLower(url), "redis:")) {
			t.Errorf("%s, allowed: %v", url, err)
		}
	}
}

func TestPrecedence(t *testing.T) {
	// Each setting by file, environment and flag; what is taken away must leave the next.
	type source struct{ flag, env, file string }
	read := map[string]func(*settings) string{
		"listen":     func(s *settings) string { return s.Listen },
		"redis":      func(s *settings) string { return s.Redis.Reveal() },
		"model.url":  func(s *settings) string { return s.Model.URL },
		"model.name": func(s *settings) string { return s.Model.Name },
	}
	for path, src := range map[string]source{
		"listen": {"--listen=127.0.0.1:3", "SWITCHBOARD_LISTEN=127.0.0.1:2", "listen: 127.0.0.1:1"},
		"redis":  {"--redis=redis://127.0.0.1:3", "REDIS_URL=redis://127.0.0.1:2", "redis: redis://127.0.0.1:1"},
		"model.url": {"--model-url=ws://127.0.0.1:3", "SWITCHBOARD_MODEL_URL=ws://127.0.0.1:2",
			"model: {url: 'ws://127.0.0.1:1'}"},
		"model.name": {"--model=name:3", "SWITCHBOARD_MODEL=name:2", "model: {name: 'name:1'}"},
	} {
		t.Run(path, func(t *testing.T) {
			name, text, _ := strings.Cut(src.env, "=")
			for _, tt := range []struct {
				w    world
				want string
			}{
				{world{files: map[string]string{"switchboard.yaml": src.file}, env: map[string]string{name: text},
					args: []string{src.flag}}, ":3"},
				{world{files: map[string]string{"switchboard.yaml": src.file}, env: map[string]string{name: text}}, ":2"},
				{world{files: map[string]string{"switchboard.yaml": src.file}, env: map[string]string{name: ""}}, ":1"},
			} {
				s, err := tt.w.load(t)
				must(t, err)
				if got := read[path](s); !strings.HasSuffix(got, tt.want) {
					t.Errorf("%+v: %q, want %s", tt.w, got, tt.want)
				}
			}
		})
	}
	w := file("redis: redis://127.0.0.1:1")
	w.args = []string{"--redis", ""} // an empty flag takes away what the file says
	if s, err := w.load(t); err != nil || s.Redis.Reveal() != "" {
		t.Errorf("--redis '': %v", err)
	}
	w = world{files: map[string]string{"other.yaml": "listen: 127.0.0.1:9", "switchboard.yaml": "listen: 127.0.0.1:1"},
		env: map[string]string{"SWITCHBOARD_CONFIG": "other.yaml"}}
	if s, err := w.load(t); err != nil || s.Listen != "127.0.0.1:9" {
		t.Errorf("SWITCHBOARD_CONFIG: %v, %v", s, err)
	}
}

func TestCodexFlag(t *testing.T) {
	w := file("servers: [{name: bigpc, kind: codex, url: ws://127.0.0.1:4500}]")
	w.args = []string{"--codex"}
	s, err := w.load(t)
	if err != nil || len(s.Servers) != 2 || s.Servers[1].Name != "local" ||
		s.Servers[1].About.Address != "codex app-server" {
		t.Fatalf("servers %+v, %v", s, err)
	}
	w = file("servers: [{name: desk, aliases: [Local], kind: codex, url: ws://127.0.0.1:4500}]")
	w.args = []string{"--codex"}
	_, err = w.load(t)
	wantProblems(t, err, `--codex: servers[1].name: "local" is already a name of servers[0]`)
}

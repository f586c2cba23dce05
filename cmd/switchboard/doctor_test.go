package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"switchboard/cmd/switchboard/cli"
	"switchboard/cmd/switchboard/verbs"
	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
)

// visit has the doctor look, with these settings. mend are what it has to find wrong, each in a line of its own;
// without any all is well.
func (sh *shell) visit(settings string, mend []string, args ...string) string {
	sh.t.Helper()
	var out logBuffer
	code := run(sh.t.Context(), append([]string{"doctor", "--config", config(sh.t, settings)}, args...), func(name string) string { return sh.env[name] }, &out, &out)
	text := out.String()
	if n := strings.Count(text, "\nmend  "); n != len(mend) || (code == 0) != (n == 0) || code > exitFailed {
		sh.t.Errorf("exit code %d, %d to mend, want %q:\n%s", code, n, mend, text)
	}
	for _, words := range mend {
		if !strings.Contains(text, words) {
			sh.t.Errorf("it does not say %q:\n%s", words, text)
		}
	}
	return text
}

// TestDoctorWithoutService: with nothing running it dials what there is, and leaves nothing behind.
func TestDoctorWithoutService(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	sh := &shell{t: t, env: map[string]string{"XDG_STATE_HOME": home}}
	free := fmt.Sprintf("127.0.0.1:%d", sessionstest.FreePort(t))
	sh.visit("", nil, "--listen", free)
	taken := loopback(t)
	defer taken.Close()
	dead := fmt.Sprintf("127.0.0.1:%d", sessionstest.FreePort(t))
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer api.Close()
	// What accepts there and says nothing does not use up the time for what comes after.
	sh.visit("notify: {webhook: "+api.URL+"/secret}\n", []string{"cannot listen on " + taken.Addr().String()},
		"--listen", taken.Addr().String())
	sh.visit("listen: "+free+"\nlissten: 1\nmodel: {url: 7}\n", []string{":2:1: ", ":3:"})
	sh.visit("", []string{"not answering"}, "--listen", free, "--redis", "redis://:hidden@"+dead+"/0")
	sh.visit("model: {url: ws://"+dead+"/v1/realtime, name: m}\n", []string{"The voice model at 127.0.0.1"}, "--listen", free)
	sh.visit("notify: {webhook: http://"+dead+"/secret}\n", []string{"nobody answers at " + dead + " ("}, "--listen", free)
	sh.visit("servers:\n  - {name: down, kind: codex, url: ws://"+dead+"}\n  - {name: child, kind: codex, command: [no-such-codex, app-server]}\n",
		[]string{"its program no-such-codex is not on this computer", "Start the tunnel, or its agent server there: codex app-server --listen ws://"}, "--listen", free)
	sh.visit("servers:\n  - {name: bigpc, kind: codex, url: ws://"+dead+", token_file: no-such-file}\n",
		[]string{"its token cannot be read"}, "--listen", free)
	if out := sh.visit("servers:\n  - {name: mini, kind: codex, joined: true}\n", nil, "--listen", free); !strings.Contains(out, "ok    mini ") {
		t.Errorf("it does not say what becomes of a machine that joins:\n%s", out)
	}
	helper := "servers:\n  - {name: helper, kind: responses, url: %s/v1, model: m, workspace: " + t.TempDir() + "}\n"
	sh.visit(fmt.Sprintf(helper, api.URL), []string{"it did not accept Switchboard's key"}, "--listen", free)
	sh.visit(fmt.Sprintf(helper, "http://"+dead), []string{"nothing is listening there (Get "}, "--listen", free)
	moved := httptest.NewServer(http.RedirectHandler(api.URL+"/v1/models", http.StatusTemporaryRedirect))
	defer moved.Close()
	sh.visit(fmt.Sprintf(helper, moved.URL), []string{"it sends on to " + api.Listener.Addr().String() + ", and its key is for " + moved.Listener.Addr().String() + " alone"}, "--listen", free)
	if files, err := os.ReadDir(home); err != nil || len(files) > 0 {
		t.Errorf("the doctor left %v, %v", files, err)
	}
	must(t, os.MkdirAll(filepath.Join(home, "switchboard", "x"), 0o700))
	must(t, os.Chmod(filepath.Join(home, "switchboard"), 0o777))
	sh.visit("", []string{"others can write in the state directory"}, "--listen", free)
}

// TestDoctorBesideService: a service that runs is asked, and goes on as it was.
func TestDoctorBesideService(t *testing.T) {
	t.Parallel()
	sh := openShell(t, nil)
	listen := strings.TrimPrefix(sh.r.base, "http://")
	until(t, "the machines", func() bool {
		_, out, _ := sh.run("servers")
		return strings.Contains(out, "nothing is listening there")
	})
	sh.visit("", nil, "--listen", listen)
	sh.visit("", []string{"not answering"}, "--listen", listen, "--redis", "redis://127.0.0.1:1/0") // what the next start meets
	elsewhere := fmt.Sprintf("127.0.0.1:%d", sessionstest.FreePort(t))                              // where these settings would listen, if it were started
	if out := sh.visit("", nil, "--listen", elsewhere); !strings.Contains(out, "runs at "+sh.r.base) {
		t.Errorf("it does not say where it runs: %s", out)
	}
	machine := "servers:\n  - {name: %s, kind: codex, url: ws://127.0.0.1:1}\n"
	sh.visit(fmt.Sprintf(machine, "bigpc"), []string{"has another machine of this name"}, "--listen", listen) // it is simulated there
	sh.visit(fmt.Sprintf(machine, "attic"), []string{"nothing is listening there"}, "--listen", listen)
	sh.visit(fmt.Sprintf(machine, "added"), []string{"read its settings when it started: start it again"}, "--listen", listen)
	away := &shell{t: t, env: map[string]string{"XDG_STATE_HOME": t.TempDir()}}
	away.visit("", []string{"another Switchboard runs at " + listen}, "--listen", listen)
	somebodys := &shell{t: t, env: map[string]string{"XDG_STATE_HOME": t.TempDir()}}
	somebodys.r = start(t, func(p *plan) {
		p.StateDir, p.Access[0].Servers = filepath.Join(somebodys.env["XDG_STATE_HOME"], "switchboard"), []string{"laptop"}
	})
	somebodys.visit(fmt.Sprintf(machine, "bigpc"), []string{"has another machine of this name"}, "--listen", strings.TrimPrefix(somebodys.r.base, "http://"))
	if code, out, errs := sh.run("handoff", "bigpc", "--thread", "auth", "run the tests"); code != 0 {
		t.Errorf("afterwards: %d %s%s", code, out, errs)
	}
}

// TestDoctorTellsWhatKeysMay: one line for each, those that were made too.
func TestDoctorTellsWhatKeysMay(t *testing.T) {
	home := t.TempDir()
	state := filepath.Join(home, "switchboard")
	must(t, os.Mkdir(state, 0o700))
	for _, name := range []string{"robot", "anna"} {
		if _, err := makeKey(t.Context(), madeKeys{file: keysFile(state)}, name); err != nil {
			t.Fatal(err)
		}
	}
	sh := &shell{t: t, env: map[string]string{"XDG_STATE_HOME": home, "A": goodKey + "-a", "B": goodKey + "-b"}}
	out := sh.visit("keys:\n  - {principal: anna, key_env: A, servers: [bigpc, laptop], metrics: true, limits: {calls: 9}}\n"+
		"  - {principal: many, key_env: B, names_callers: true, tools: [codex, status], instructions: true}\n",
		nil, "--listen", fmt.Sprintf("127.0.0.1:%d", sessionstest.FreePort(t)))
	usual := "each caller 4 calls, 240 minutes a day, 20 handoffs a minute"
	annas := "machines bigpc, laptop; tools all; approve voice; instructions added; metrics yes; " + usual + "; all together 9 calls, 240 minutes a day, 20 handoffs a minute\n"
	for about, may := range map[string]string{
		`owner, by .switchboard login. and the verbs here: `: "machines all; tools all; approve all; instructions all; metrics yes; " + usual + "\n",
		`anna [0-9a-f]{12}: `:                                annas,
		`many [0-9a-f]{12}, for the callers it names: `:      "machines all; tools codex, status; approve none; instructions all; metrics no; " + usual + "\n",
		`robot [0-9a-f]{12}, made by .switchboard key.: `:    "machines all; tools all; approve voice; instructions added; metrics no; " + usual + "\n",
		`anna [0-9a-f]{12}, made by .switchboard key.: `:     annas,
	} {
		if !regexp.MustCompile(`(?m)^ok    key +` + about + regexp.QuoteMeta(may)).MatchString(out) {
			t.Errorf("it does not say %s%s in\n%s", about, may, out)
		}
	}
	if strings.Contains(out, goodKey) {
		t.Error("it shows a key")
	}
	write(t, filepath.Join(state, madeKeysFile), "broken\n")
	sh.visit("", []string{"is none of `switchboard key`"}, "--listen", fmt.Sprintf("127.0.0.1:%d", sessionstest.FreePort(t)))
}

// TestDoctorAsksForTheMachine: what the service that runs knows by the name counts where it is the machine of the
// settings.
func TestDoctorAsksForTheMachine(t *testing.T) {
	t.Parallel()
	at := newFarm(t).at["bigpc"]
	s := newSite(t, "ws://127.0.0.1:1", "", map[string]string{"bigpc": at})
	c := s.start()
	c.up("bigpc")
	sh := &shell{t: t, env: map[string]string{"XDG_STATE_HOME": s.state}}
	settings := "servers:\n  - {name: bigpc, kind: codex, url: %q}\n"
	sh.visit(fmt.Sprintf(settings, at), nil, "--listen", strings.TrimPrefix(c.base, "http://"))
	sh.visit(fmt.Sprintf(settings, "ws://127.0.0.1:1"), []string{"has another machine of this name"}, "--listen", strings.TrimPrefix(c.base, "http://"))
}

// TestDoctorLooksAtMachinesThatJoined: they, and what the service was started with, are in no settings, and the service
// that runs knows them.
func TestDoctorLooksAtMachinesThatJoined(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := listenControl(dir)
	must(t, err)
	served := &http.Server{Handler: control{
		api: http.NotFoundHandler(), voice: "gpt at voice.example.com",
		machines: func(handoff.Grant) []handoff.Machine {
			return []handoff.Machine{
				{Name: "bigpc"}, // simulated
				{Name: "local", Address: "codex app-server"}, // of the flag --codex
				{Name: "api", Address: "http://127.0.0.1:1"}, {Name: "far", Address: "ws://127.0.0.1:1"},
				{Name: "loft", Address: "joined", Machine: "loft", Joined: time.Now()},
				{Name: "mini", Address: "joined", Machine: "mini", Joined: time.Now()},
			}
		},
		test: func(_ context.Context, _ handoff.Grant, name string) (time.Duration, error) {
			if name == "loft" {
				return 0, handoff.Fault(handoff.CodeNotSignedIn, name, "")
			}
			return time.Millisecond, nil
		},
	}.handler()}
	go func() { _ = served.Serve(l) }()
	defer func() { _ = served.Close() }()
	for _, settings := range []string{
		"",
		"servers:\n  - {name: mini, kind: codex, joined: true}\n", // an entry adds settings
		// The service has what these variables name, and reaches that API.
		"servers:\n  - {name: far, kind: codex, url: 'ws://127.0.0.1:1', token_env: THEIRS}\n" +
			"  - {name: api, kind: responses, url: 'http://127.0.0.1:1/v1', key_env: THEIRS, model: m, workspace: " + dir + "}\n",
	} {
		file := config(t, settings)
		s, err := loadSettings(&options{config: cli.Text{Text: file, From: "--config"}}, func(string) string { return "" }, nil)
		must(t, err)
		var out strings.Builder
		d := &doctor{out: &out, look: exec.LookPath, s: s, here: hereClient(dir, "")}
		d.machines(t.Context())
		d.voice(t.Context())
		text := out.String()
		if !strings.Contains(text, "ok    local          not in these settings; answers") || !strings.Contains(text, "ok    voice          gpt at voice.example.com, of the") {
			t.Errorf("with %q it does not say what runs:\n%s", settings, text)
		}
		if strings.Count(text, "ok    mini ") != 1 || !strings.Contains(text, "mend  loft ") || d.wrong != 1 ||
			!strings.Contains(text, "not signed in") || strings.Contains(text, "simulated") || strings.Contains(text, "bigpc") {
			t.Errorf("with %q it says:\n%s", settings, text)
		}
	}
}

// TestDoctorWithoutTheList: where the service does not tell its machines, those of the settings are still tested.
func TestDoctorWithoutTheList(t *testing.T) {
	old := httptest.NewServer(http.NotFoundHandler())
	defer old.Close()
	var out strings.Builder
	d := &doctor{out: &out, s: &settings{Servers: []servers.Spec{{Name: "far"}}}, here: &verbs.Client{HTTP: http.DefaultClient, Base: old.URL}}
	if d.machines(t.Context()); !strings.Contains(out.String(), "mend  machines ") || !strings.Contains(out.String(), "mend  far ") {
		t.Errorf("it says:\n%s", out.String())
	}
}

// TestDoctorCertificate: one that has ended, or soon will, is told of.
func TestDoctorCertificate(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	now := time.Now()
	about := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"bigpc"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(100 * 24 * time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	dir := t.TempDir()
	files := tlsSettings{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	for file, block := range map[string]*pem.Block{files.CertFile: {Type: "CERTIFICATE", Bytes: cert}, files.KeyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		must(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	for _, tc := range []struct {
		days int
		says string
	}{{0, "ok    tls            for [bigpc] until "}, {-1, "counts from"}, {90, "ends on"}, {101, "ended on"}} {
		var out logBuffer
		d := &doctor{out: &out, s: &settings{TLS: files}}
		if d.certificate(now.AddDate(0, 0, tc.days)); !strings.Contains(out.String(), tc.says) {
			t.Errorf("in %d days: %s", tc.days, out.String())
		}
	}
}

// TestDoctorVoiceEnds: a voice model that OpenAI ends is told of, with its day and what takes its place; soon before it
// is to be mended. One of the same name elsewhere is none of OpenAI's.
func TestDoctorVoiceEnds(t *testing.T) {
	t.Parallel()
	old := modelSettings{URL: openAIURL, Name: "gpt-realtime-2025-08-28"}
	aliased := modelSettings{URL: openAIURL, Name: defaultModel, Aliases: map[string]string{"mini": "gpt-realtime-mini"}}
	const mended = "\n                     → set model.name to gpt-realtime-2.1\n"
	for _, c := range []struct {
		m    modelSettings
		day  string
		says string
	}{
		{old, "2026-10-01", "ok    voice model    OpenAI ends gpt-realtime-2025-08-28 on 2027-01-20; until then, set model.name to gpt-realtime-2.1\n"},
		{old, "2026-11-25", "mend  voice model    OpenAI ends gpt-realtime-2025-08-28 on 2027-01-20" + mended},
		{old, "2027-01-19", "mend  voice model    OpenAI ends gpt-realtime-2025-08-28 on 2027-01-20" + mended},
		{old, "2027-01-20", "mend  voice model    OpenAI ended gpt-realtime-2025-08-28 on 2027-01-20" + mended},
		{aliased, "2027-02-01", "mend  voice model    OpenAI ended gpt-realtime-mini on 2027-01-20\n" +
			"                     → set the alias \"mini\" in model.aliases to gpt-realtime-2.1-mini\n"},
		{modelSettings{URL: openAIURL, Name: defaultModel}, "2030-01-01", ""},
		{modelSettings{URL: "wss://voice.example.com/v1/realtime", Name: "gpt-realtime"}, "2030-01-01", ""},
		{modelSettings{Name: "gpt-realtime"}, "2030-01-01", ""},
	} {
		now, err := time.Parse(time.DateOnly, c.day)
		must(t, err)
		var out logBuffer
		d := &doctor{out: &out, s: &settings{Model: c.m}}
		if d.voiceEnds(now); out.String() != c.says {
			t.Errorf("%s on %s: %q, want %q", c.m.Name, c.day, out.String(), c.says)
		}
	}
}

// TestDoctorTellsPromises: what a Redis is set up to lose is told, and so are clocks that are apart.
func TestDoctorTellsPromises(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		about redis.About
		wrong int
		want  string
	}{
		{redis.About{Journal: true, Ahead: -time.Second}, 0, "ok    clock          1s apart"},
		{redis.About{Journal: true}, 0, "may lose the last second, the loss of its disk everything"},
		{redis.About{Journal: true, Replicas: 2}, 0, "one of its 2 replicas"},
		{redis.About{Journal: true, Ahead: -5 * time.Second}, 1, "are 5s apart"},
		{redis.About{}, 1, "appendonly yes"},
		{redis.About{Journal: true, Evicts: true}, 1, "noeviction"},
		{redis.About{Journal: true, Failing: true}, 1, "look at its log"},
		{redis.About{Journal: true, Replica: true}, 1, "name its primary"},
		{redis.About{Journal: true, Replicas: 1, Silent: "10.0.0.6:6379 for 7s"}, 1, "(10.0.0.6:6379 for 7s)"},
	} {
		var out logBuffer
		d := &doctor{out: &out}
		d.durability(c.about)
		if text := out.String(); d.wrong != c.wrong || !strings.Contains(text, c.want) {
			t.Errorf("%+v: %d wrong, want %d with %q:\n%s", c.about, d.wrong, c.wrong, c.want, text)
		}
	}
}

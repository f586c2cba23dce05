package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchboard/sessions/sessionstest"
)

// program runs the whole program in this process.
type programRun struct {
	out, err logBuffer
	end      context.CancelFunc
	code     chan int
}

func runProgram(t *testing.T, env map[string]string, args ...string) *programRun {
	t.Helper()
	return startProgram(t, env, nil, args...)
}

// startProgram runs the program with this standard output; nil: its own buffer.
func startProgram(t *testing.T, env map[string]string, out io.Writer, args ...string) *programRun {
	t.Helper()
	if env["XDG_STATE_HOME"] == "" {
		env["XDG_STATE_HOME"] = t.TempDir()
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &programRun{end: cancel, code: make(chan int, 1)}
	if out == nil {
		out = &r.out
	}
	go func() { r.code <- run(ctx, args, func(name string) string { return env[name] }, out, &r.err) }()
	t.Cleanup(func() {
		cancel()
		select {
		case code := <-r.code:
			r.code <- code
		case <-time.After(patience):
			t.Error("the program did not end")
		}
	})
	return r
}

// exit waits for the end of the program and returns its code and what it wrote to standard error.
func (r *programRun) exit(t *testing.T) (int, string) {
	t.Helper()
	select {
	case code := <-r.code:
		r.code <- code
		return code, r.err.String()
	case <-time.After(patience):
		t.Fatalf("the program did not end: %s", r.err.String())
		return 0, ""
	}
}

// config writes a configuration and returns its path.
func config(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "switchboard.yaml")
	write(t, path, text)
	return path
}

// TestProgramStarts holds what a newcomer sees: two lines, the second a link that lets in.
func TestProgramStarts(t *testing.T) {
	t.Parallel()
	env := map[string]string{}
	r := runProgram(t, env, "--listen", "127.0.0.1:0", "--config", config(t, ""))
	var lines []string
	until(t, "two lines", func() bool {
		lines = strings.Split(strings.TrimSpace(r.out.String()), "\n")
		return len(lines) == 2
	})
	if !strings.Contains(lines[0], "voice: simulated") || !strings.Contains(lines[0], "machines: simulated (bigpc, laptop, attic") {
		t.Errorf("first line: %s", lines[0])
	}
	base, how, ok := strings.Cut(lines[1], "/ ")
	if !ok || !strings.Contains(how, "switchboard login") || strings.Contains(how, "#") {
		t.Fatalf("second line: %s", lines[1]) // no terminal, so no link
	}
	login := runProgram(t, env, "login")
	if code, text := login.exit(t); code != 0 {
		t.Fatalf("login: %d %s", code, text)
	}
	_, secret, ok := strings.Cut(strings.TrimSpace(login.out.String()), base+"/#login=")
	if !ok || len(secret) != 8 {
		t.Fatalf("the link: %s", login.out.String())
	}
	if status := postLogin(t, base, `{"code":"`+secret+`"}`); status != http.StatusOK {
		t.Errorf("the link: %d", status)
	}
	if status := postLogin(t, base, `{"code":"`+secret+`"}`); status != http.StatusForbidden {
		t.Errorf("the link counts twice: %d", status)
	}
	key := programKeys(t, env, base)

	address := strings.TrimPrefix(base, "http://")
	if code, text := runProgram(t, map[string]string{}, "health", "--listen", address, "--config", config(t, "")).exit(t); code != 0 {
		t.Errorf("health of a running service: %d %s", code, text)
	}
	second := runProgram(t, map[string]string{}, "--listen", address, "--config", config(t, ""))
	if code, text := second.exit(t); code != exitFailed || !strings.Contains(text, "cannot listen on "+address) || !strings.Contains(text, "end the program that listens there") {
		t.Errorf("port in use: %d %s", code, text)
	}
	r.end()
	if code, text := r.exit(t); code != 0 {
		t.Errorf("end: %d %s", code, text)
	}
	if seen := r.out.String() + r.err.String(); strings.Contains(seen, key) || strings.Contains(seen, secret) {
		t.Error("the key or the code is in the log")
	}
	noKeyInFiles(t, env["XDG_STATE_HOME"], key, secret)
	if code, text := runProgram(t, env, "login").exit(t); code != exitFailed || !strings.Contains(text, "start it first") {
		t.Errorf("login to nothing: %d %s", code, text)
	}
	if code, _ := runProgram(t, map[string]string{}, "health", "--listen", address, "--config", config(t, "")).exit(t); code != exitFailed {
		t.Errorf("health of nothing: %d", code)
	}
}

// postLogin logs in as the page does.
func postLogin(t *testing.T, base, body string) int {
	t.Helper()
	status, _ := (&running{t: t, base: base}).ask(http.MethodPost, "/login", body, "Authorization", "", "Origin", base)
	return status
}

// programKeys makes two keys while the program runs, and revokes one. It returns the one that stays.
func programKeys(t *testing.T, env map[string]string, base string) string {
	t.Helper()
	do := func(args ...string) string {
		verb := runProgram(t, env, args...)
		if code, text := verb.exit(t); code != 0 {
			t.Fatalf("%q: %d %s", args, code, text)
		}
		return strings.TrimSpace(verb.out.String())
	}
	use := func(key string) int {
		status, _ := (&running{t: t, base: base}).ask(http.MethodGet, "/fleet/servers", "", "Authorization", "Bearer "+key)
		return status
	}
	owner, robot := do("key", "owner"), do("key", "robot")
	if len(owner) != 32 || use(owner) != http.StatusOK || use(robot) != http.StatusOK {
		t.Errorf("made keys: %d %d", use(owner), use(robot))
	}
	if said := do("key", "robot", "--revoke"); !strings.Contains(said, "the made key of robot is revoked") {
		t.Errorf("revoked: %s", said)
	}
	if said := do("key", "robot", "--revoke"); said != "robot has no made key" {
		t.Errorf("revoked again: %s", said)
	}
	if use(owner) != http.StatusOK || use(robot) != http.StatusUnauthorized {
		t.Errorf("after the revocation: %d %d", use(owner), use(robot))
	}
	return owner
}

// noKeyInFiles looks for secrets in every file of a directory.
func noKeyInFiles(t *testing.T, dir string, secrets ...string) {
	t.Helper()
	files := 0
	gone := func(err error) error { // the service writes copies under other names meanwhile
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return gone(err)
		}
		files++
		text, err := os.ReadFile(path)
		for _, secret := range secrets {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s holds a secret in plain text", path)
			}
		}
		return gone(err)
	})
	if err != nil || files == 0 {
		t.Errorf("%d files, %v", files, err)
	}
}

// TestProgramRefuses holds that what is wrong at the start is said clearly and at once.
func TestProgramRefuses(t *testing.T) {
	t.Parallel()
	silent := loopback(t) // accepts and never answers
	defer silent.Close()
	dead := fmt.Sprintf("127.0.0.1:%d", sessionstest.FreePort(t))
	mistakes := config(t, "listen: 127.0.0.1:8080\nlissten: 1\nmodel: {url: 7}\nservers:\n  - {name: bigpc, kind: codex, url: http://x}\n")
	sound, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	defer sound.Close()
	openToAll := config(t, "trusted_proxies: [192.0.2.2/32]\nkeys: [{principal: owner, key_sha256: "+strings.Repeat("ab", 32)+"}]\n")
	held := t.TempDir()
	runProgram(t, map[string]string{"XDG_STATE_HOME": held}, "--listen", "127.0.0.1:0", "--config", config(t, ""))
	until(t, "the state directory", func() bool { return glob(held+"/switchboard/*") > 0 })
	for _, tc := range []struct {
		name  string
		env   map[string]string
		args  []string
		code  int
		words []string
	}{
		{"three mistakes", nil, []string{"--config", mistakes}, exitSettings, []string{":2:1:", "lissten", ":3:", "model", ":5:", "url"}},
		{"no such file", nil, []string{"--config", "/nowhere/x.yaml"}, exitSettings, []string{"/nowhere/x.yaml"}},
		{"unknown flag", nil, []string{"--loud"}, exitSettings, []string{"--loud"}},
		{"unknown verb", nil, []string{"dance"}, exitSettings, []string{"dance"}},
		{"redis is not there", nil, []string{"--redis", "redis://:hidden@" + dead + "/0"}, exitFailed, []string{dead, "not answering"}},
		{"redis is silent", nil, []string{"--redis", "redis://" + silent.Addr().String() + "/0"}, exitFailed, []string{silent.Addr().String()}},
		{"open to all without a key", nil, []string{"--listen", "0.0.0.0:8080"}, exitSettings, []string{"SWITCHBOARD_KEY", "tls"}},
		{"a port in use", nil, []string{"--listen", silent.Addr().String()}, exitFailed, []string{silent.Addr().String(), "end the program that listens there"}},
		{"an address of another machine", nil, []string{"--listen", "192.0.2.1:0", "--config", openToAll}, exitFailed, []string{"192.0.2.1", "this machine has no such address"}},
		{"a port for sound in use", nil, []string{"--config", config(t, "media: {udp: \""+sound.LocalAddr().String()+"\"}\n")}, exitFailed,
			[]string{sound.LocalAddr().String(), "for sound", "end the program that listens there"}},
		{"a state directory below a file", map[string]string{"XDG_STATE_HOME": mistakes}, nil, exitFailed, []string{mistakes + "/switchboard", "set XDG_STATE_HOME"}},
		{"a held state directory", map[string]string{"XDG_STATE_HOME": held}, nil, exitFailed, []string{held}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.env == nil {
				tc.env = map[string]string{}
			}
			args := append([]string{}, tc.args...)
			if !strings.Contains(strings.Join(args, " "), "--config") {
				args = append(args, "--config", config(t, ""))
			}
			if !strings.Contains(strings.Join(args, " "), "--listen") {
				args = append(args, "--listen", "127.0.0.1:0")
			}
			code, text := runProgram(t, tc.env, args...).exit(t)
			if code != tc.code {
				t.Errorf("code %d, want %d: %s", code, tc.code, text)
			}
			for _, word := range tc.words {
				if !strings.Contains(text, word) {
					t.Errorf("%q is missing in: %s", word, text)
				}
			}
			if strings.Contains(text, "hidden") {
				t.Errorf("a password is shown: %s", text)
			}
		})
	}
}

func glob(pattern string) int {
	found, _ := filepath.Glob(pattern)
	return len(found)
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/cmd/switchboard/cli"
	"switchboard/handoff"
)

// A shell is where somebody types verbs, on the machine where a service runs.
type shell struct {
	t   *testing.T
	r   *running // nil: none runs
	env map[string]string
}

// openShell starts a service and sits down beside it, without a key.
func openShell(t *testing.T, change func(*plan)) *shell {
	t.Helper()
	home := t.TempDir()
	sh := &shell{t: t, env: map[string]string{"XDG_STATE_HOME": home}}
	sh.r = start(t, func(p *plan) {
		p.StateDir, p.Hurry = filepath.Join(home, "switchboard"), 50
		if change != nil {
			change(p)
		}
	})
	return sh
}

// run runs a verb to its end.
func (sh *shell) run(args ...string) (code int, stdout, stderr string) {
	sh.t.Helper()
	return sh.runIn(sh.t.Context(), args...)
}

func (sh *shell) runIn(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	sh.t.Helper()
	var out, errs bytes.Buffer
	code = run(ctx, append(args, "--config", config(sh.t, "")), func(name string) string { return sh.env[name] }, &out, &errs)
	return code, out.String(), errs.String()
}

// wants runs a verb and looks for words in all that it says.
func (sh *shell) wants(code int, words []string, args ...string) string {
	sh.t.Helper()
	got, out, errs := sh.run(args...)
	if got != code {
		sh.t.Errorf("%q: exit code %d, want %d: %s%s", args, got, code, out, errs)
	}
	for _, word := range words {
		if !strings.Contains(out+errs, word) {
			sh.t.Errorf("%q does not say %q: %s%s", args, word, out, errs)
		}
	}
	return out
}

// TestVerbsLook: the user who runs Switchboard lists machines and sessions without a key; errors have the service's
// words.
func TestVerbsLook(t *testing.T) {
	t.Parallel()
	sh := openShell(t, nil)
	until(t, "the machines", func() bool {
		_, out, _ := sh.run("servers")
		return strings.Contains(out, "nothing is listening there")
	})
	sh.wants(0, []string{"MACHINE", "bigpc", "simulated", "projects: shop"}, "servers")
	sh.wants(0, []string{"Auth refactor", "Release notes 2.4", "attic is not answering."}, "sessions")
	if out := sh.wants(0, []string{"Auth refactor"}, "sessions", "bigpc", "--query", "auth"); strings.Contains(out, "Release notes") {
		t.Errorf("more than was asked for: %s", out)
	}
	sh.wants(0, []string{"1 more:"}, "sessions", "--limit", "3")
	sh.wants(0, []string{"Auth refactor on bigpc", "> move the token refresh", "$ git mv"}, "read", "bigpc", "auth")
	sh.wants(exitFailed, []string{"I can't find the session nix."}, "read", "bigpc", "nix")
	sh.wants(exitFailed, []string{"I don't know a machine called nope."}, "read", "nope", "x")
	sh.wants(0, []string{"MACHINE", "bigpc"}, "machines")
	sh.wants(0, []string{"Examples:", "--key-file"}, "sessions", "--help")
	var found struct{ Items []handoff.ServerInfo }
	if out := sh.wants(0, nil, "servers", "--json"); json.Unmarshal([]byte(out), &found) != nil || len(found.Items) != 3 {
		t.Errorf("no JSON of the API: %s", out)
	}
}

// TestVerbsBackup: what is remembered is copied beside the service, and a Redis has to be backed up by its own means.
func TestVerbsBackup(t *testing.T) {
	t.Parallel()
	sh := openShell(t, nil)
	to := filepath.Join(t.TempDir(), "copy.db")
	sh.wants(0, []string{to + " is a whole copy", filepath.Join(sh.env["XDG_STATE_HOME"], "switchboard")}, "backup", to)
	sh.wants(exitFailed, []string{to, "file exists"}, "backup", to)
	sh.wants(exitFailed, []string{"redis-cli --rdb"}, "backup", to+"2", "--redis", "redis://127.0.0.1:1/0")
}

// TestVerbsReach: a verb uses the service that runs here, or the one that is named, with its key.
func TestVerbsReach(t *testing.T) {
	t.Parallel()
	sh := openShell(t, nil)
	file := filepath.Join(t.TempDir(), "key")
	write(t, file, testKey+"\n")
	sh.wants(0, []string{"bigpc"}, "servers", "--key-file", file)
	sh.wants(0, []string{"bigpc"}, "servers", "--url", sh.r.base, "--key-file", file)
	sh.wants(exitFailed, []string{"takes a key", "switchboard key"}, "servers", "--url", sh.r.base)
	sh.wants(exitFailed, []string{"in the clear"}, "servers", "--url", "http://bigpc.example.com", "--key-file", file)
	sh.wants(exitFailed, []string{"not the address"}, "servers", "--url", "bigpc")
	sh.wants(exitFailed, []string{"no such file"}, "servers", "--key-file", file+"x")
	sh.env[ownerKey] = "another-key-entirely"
	sh.wants(exitFailed, []string{"That key is not valid."}, "servers")
	sh.env[ownerKey] = testKey
	sh.wants(0, []string{"bigpc"}, "servers", "--url", sh.r.base)
	sh.r.stop()
	sh.wants(exitFailed, []string{"no Switchboard answers"}, "servers", "--listen", strings.TrimPrefix(sh.r.base, "http://"))
	sh.env[ownerKey] = ""
	sh.wants(exitFailed, []string{"no Switchboard of yours runs", "start it with `switchboard`"}, "servers")
	away := &shell{t: t, env: map[string]string{"XDG_STATE_HOME": filepath.Join(t.TempDir(), "none")}}
	away.wants(exitFailed, []string{"no Switchboard of yours runs"}, "sessions")
	if _, err := os.Stat(away.env["XDG_STATE_HOME"]); err == nil {
		t.Error("looking made a state directory")
	}
}

// TestVerbsAreTheOwners: with any configured keys, the verbs here and the login link have all rights of the owner.
func TestVerbsAreTheOwners(t *testing.T) {
	w := file("keys:\n  - {principal: anna, key_env: A, servers: [laptop], tools: [codex, list_servers]}\n")
	w.env = map[string]string{"A": goodKey}
	s, err := w.load(t)
	must(t, err)
	sh := openShell(t, func(p *plan) { p.Access = s.Access })
	sh.wants(0, []string{"bigpc", "laptop", "attic"}, "servers")
	sh.wants(0, []string{"nothing waits for an answer"}, "answer") // which anna has no tool for
	for name, args := range map[string][]string{"owner": {"login"}, "anna": {"login", "anna"}} {
		_, code, found := strings.Cut(sh.wants(0, nil, args...), "#login=")
		if !found {
			t.Fatalf("%v prints no link", args)
		}
		_, answer := sh.r.ask(http.MethodPost, "/login", `{"code":"`+strings.TrimSpace(code)+`"}`)
		var login struct{ Principal string }
		if err := json.Unmarshal(answer, &login); err != nil || login.Principal != name {
			t.Errorf("%v logs in %s, %v", args, answer, err)
		}
	}
}

// typedIn reads a command line, and returns its verb.
func typedIn(line string) (verb *cli.Verb, text string, err error) {
	return (&console{env: func(string) string { return "" }}).commands().Parse(strings.Fields(line))
}

// TestVerbs: without a verb the service is run, and flags may stand before the verb.
func TestVerbs(t *testing.T) {
	for line, name := range map[string]string{"": "serve", "serve --codex": "serve", "--codex": "serve", "machines": "servers",
		"--listen 127.0.0.1:1 health": "health"} {
		if verb, _, err := typedIn(line); err != nil || verb.Name != name {
			t.Errorf("%q: %+v, %v", line, verb, err)
		}
	}
}

// TestMistyped: a mistake in the command line is reported in our words, with where to read the right usage.
func TestMistyped(t *testing.T) {
	for line, want := range map[string]string{
		"read":                           "needs <machine> <session>; `switchboard read --help` tells how",
		"read bigpc":                     "needs <session>; ",
		"add bigpc":                      "needs <where> ...; `switchboard add --help` tells how",
		"read bigpc a b":                 "b is too much; ",
		"sessions --limit abc":           `--limit needs a whole number, not "abc"; `,
		"sessions --limit":               "--limit needs a value; ",
		"sessions --limit --json":        "--limit needs a value; ",
		"handoff --thread":               "--thread needs a value; ",
		"add --set":                      "--set needs a value; ",
		"simulate --speed x":             `--speed needs a number, not "x"; `,
		"servers --json=maybe":           `--json stands alone, or is true or false, not "maybe"; `,
		"--listen":                       "--listen needs a value; --help tells what there is",
		"--lisen x":                      `unknown flag --lisen, did you mean "--listen"?; --help tells what there is`,
		"servers --no-json":              "unknown flag --no-json; `switchboard servers --help` tells how",
		"dance":                          "there is no verb dance; --help tells what there is",
		"workk":                          "there is no verb workk, did you mean \"work\"?; --help tells what there is",
		"handoff bigpc x --next --aside": "--next and --aside can't be used together; ",
	} {
		_, _, err := typedIn(line)
		if _, ok := errors.AsType[cli.Mistake](err); !ok || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

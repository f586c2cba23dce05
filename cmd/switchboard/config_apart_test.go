package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"switchboard/cmd/switchboard/cli"
)

// TestWorkspaceIsApart: the directory of an agent neither contains the state directory nor lies in it, by any path. Its
// commands could reach the socket of the verbs there, and answer the agent's own questions. Nor does it contain the
// configuration, which it could change, or the file of a key or token.
func TestWorkspaceIsApart(t *testing.T) {
	home := t.TempDir()
	for _, dir := range []string{"state/switchboard/inner", "work", "elsewhere"} {
		must(t, os.MkdirAll(filepath.Join(home, dir), 0o700))
	}
	must(t, os.Symlink(home, filepath.Join(home, "elsewhere", "home")))
	env := func(name string) string {
		return map[string]string{"XDG_STATE_HOME": filepath.Join(home, "state"), "K": "k"}[name]
	}
	for name, text := range map[string]string{"keys/key": "0123456789abcdef", "work/x": "", "mine": "0123456789abcdef"} {
		file := filepath.Join(home, name)
		must(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)))
	}
	linked := filepath.Join(home, "linked", "token")
	must(t, errors.Join(os.MkdirAll(filepath.Dir(linked), 0o700), os.Symlink("../mine", linked)))
	const keyed = "\nkeys: [{principal: owner, key_file: keys/key}]"
	for dirs, apart := range map[string]bool{
		"workspace: work, key_file: work/../mine": true, "workspace: keys, key_file: keys/key": false,
		"workspace: work, key_file: keys/key":       true,
		"workspace: linked, key_file: linked/token": false, "workspace: work, key_file: linked/token": true,
		"workspace: work, readable: [linked], trusted: true, key_file: linked/token": false,
		"workspace: elsewhere, key_file: keys/key":                                   true, "workspace: elsewhere/home/keys, key_file: keys/key": false,
		"workspace: keys" + keyed: false, "workspace: work" + keyed: true, "workspace: ./": false,
		"workspace: work": true, "workspace: .": false, "workspace: state": false, "workspace: state/switchboard": false,
		"workspace: state/switchboard/inner": false, "workspace: elsewhere/home": false,
		"workspace: work, trusted: true, readable: [elsewhere]":        true,
		"workspace: work, trusted: true, readable: [elsewhere, state]": false,
	} {
		file := filepath.Join(home, "switchboard.yaml")
		dirs, more, _ := strings.Cut(dirs, "\n")
		if !strings.Contains(dirs, "key_file") {
			dirs += ", key_env: K"
		}
		text := "servers:\n  - {name: a, kind: responses, url: \"https://a.example/v1\", model: m, " + dirs + "}\n" + more +
			"\n"
		must(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := loadSettings(&options{config: cli.Text{Text: file, From: "--config"}}, env, nil)
		if refused := err != nil && strings.Contains(err.Error(), "must be apart from"); refused == apart || apart &&
			err != nil {
			t.Errorf("%s: %v", dirs, err)
		}
	}
}

// TestOurs: every file with a secret is known, wherever it lies, and so is the configuration itself.
func TestOurs(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "switchboard.yaml")
	must(t, errors.Join(os.WriteFile(filepath.Join(dir, "k"), []byte("0123456789abcdef"), 0o600),
		os.WriteFile(file, []byte(`keys: [{principal: owner, key_file: k}]
servers:
  - {name: a, kind: responses, url: "https://a.example/v1", model: m, key_file: /opt/a.key, workspace: `+t.TempDir()+`}
  - {name: b, kind: codex, url: "ws://127.0.0.1:1", token_file: /etc/b.token}
`), 0o600)))
	s, err := loadSettings(&options{config: cli.Text{Text: file, From: "--config"}}, func(string) string { return "" }, nil)
	must(t, err)
	slices.Sort(s.Ours)
	if want := []string{"/etc/b.token", "/opt/a.key", filepath.Join(dir, "k"), file}; !slices.Equal(s.Ours, want) {
		t.Errorf("ours are %q", s.Ours)
	}
}

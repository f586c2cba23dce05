package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWorkspaceIsApart: no directory of an agent holds the state directory, or lies in it, by whatever name. In its
// sandbox the agent would see the socket of the verbs, and could answer its own questions.
func TestWorkspaceIsApart(t *testing.T) {
	home := t.TempDir()
	for _, dir := range []string{"state/switchboard/inner", "work", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(home, filepath.Join(home, "elsewhere", "home")); err != nil {
		t.Fatal(err)
	}
	env := func(name string) string {
		return map[string]string{"XDG_STATE_HOME": filepath.Join(home, "state"), "K": "k"}[name]
	}
	for dirs, apart := range map[string]bool{
		"workspace: work": true, "workspace: .": false, "workspace: state": false, "workspace: state/switchboard": false,
		"workspace: state/switchboard/inner": false, "workspace: elsewhere/home": false,
		"workspace: work, trusted: true, readable: [elsewhere]": true, "workspace: work, trusted: true, readable: [elsewhere, state]": false,
	} {
		file := filepath.Join(home, "switchboard.yaml")
		text := "servers:\n  - {name: a, kind: responses, url: \"https://a.example/v1\", model: m, key_env: K, " + dirs + "}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := loadSettings(&options{Config: &file}, env)
		if refused := err != nil && strings.Contains(err.Error(), "must be apart from"); refused == apart || apart && err != nil {
			t.Errorf("%s: %v", dirs, err)
		}
	}
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchboard/servers/acp"
	"switchboard/servers/codex"
	"switchboard/servers/responses"
	"switchboard/servers/transport"
)

// TestAddKeepsTheFile: a server goes behind the others, and everything else stays as it was, comments too.
func TestAddKeepsTheFile(t *testing.T) {
	const added = "  - name: new\n    kind: codex\n    url: ws://127.0.0.1:4500\n"
	for _, tc := range []struct{ name, before, after string }{
		{"no file", "", "servers:\n" + added},
		{"nothing but comments", "# mine\n", "# mine\n\nservers:\n" + added},
		{"no servers", "limits: {calls: 3} # few\n", "limits: {calls: 3} # few\n\nservers:\n" + added},
		{"no last newline", "limits: {calls: 3}", "limits: {calls: 3}\n\nservers:\n" + added},
		{"at the end", "servers:\n  - name: a # first\n    kind: codex\n    url: ws://127.0.0.1:1\n    # end\n", "servers:\n  - name: a # first\n    kind: codex\n    url: ws://127.0.0.1:1\n" + added + "    # end\n"},
		{"before others", "servers:\n  - {name: a, kind: codex, url: ws://127.0.0.1:1}\n\n# about limits\nlimits: {calls: 3}\n", "servers:\n  - {name: a, kind: codex, url: ws://127.0.0.1:1}\n" + added + "\n# about limits\nlimits: {calls: 3}\n"},
		{"another margin", "servers:\n- name: a\n  kind: codex\n  url: ws://127.0.0.1:1\nlimits: {calls: 3}\n", "servers:\n- name: a\n  kind: codex\n  url: ws://127.0.0.1:1\n" + strings.ReplaceAll("\n"+added, "\n  ", "\n")[1:] + "limits: {calls: 3}\n"},
	} {
		got, err := insertServer("x.yaml", []byte(tc.before), []string{"name: new", "kind: codex", "url: ws://127.0.0.1:4500"})
		if err != nil || string(got) != tc.after {
			t.Errorf("%s: %v\n%s", tc.name, err, got)
		}
	}
	for name, text := range map[string]string{
		"brackets": "servers: []\n", "brackets with one": "servers: [{name: a, kind: codex, url: ws://127.0.0.1:1}]\n", "all in brackets": "{limits: {calls: 3}}\n",
		"an end mark": "limits: {calls: 3}\n...\n",
	} {
		if got, err := insertServer("x.yaml", []byte(text), []string{"name: new", "kind: codex"}); err == nil || !strings.Contains(err.Error(), "yourself:\n  - name: new\n    kind: codex") {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
	if _, err := insertServer("x.yaml", []byte("limits: 7\n"), []string{"name: new"}); err == nil || !strings.Contains(err.Error(), "x.yaml:1:9: ") {
		t.Errorf("a mistake that is there: %v", err)
	}
}

// TestAddWhereItIs: links to the file stay, also one to a file that is not there yet, and so does whose it is.
func TestAddWhereItIs(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.MkdirAll("far/in", 0o755))
	for link, to := range map[string]string{"link.yaml": "second.yaml", "second.yaml": "dir/../real.yaml", "dir": "far/in", "round.yaml": "round.yaml"} {
		must(t, os.Symlink(to, link))
	}
	var is syscall.Stat_t
	for i, text := range []string{"", "first\n", "second\n"} {
		if i == 2 { // who may not give a file away keeps it
			_ = os.Chown("far/real.yaml", 4711, 4712)
			must(t, errors.Join(os.Chmod("far/real.yaml", 0o640), syscall.Stat("far/real.yaml", &is)))
		}
		must(t, replaceFile("link.yaml", []byte(text), []byte([]string{"first\n", "second\n", "third\n"}[i])))
	}
	var now syscall.Stat_t
	if err := syscall.Stat("far/real.yaml", &now); err != nil || now.Uid != is.Uid || now.Gid != is.Gid || now.Mode != is.Mode {
		t.Errorf("%v: of %d:%d with mode %o, was of %d:%d with %o", err, now.Uid, now.Gid, now.Mode, is.Uid, is.Gid, is.Mode)
	}
	if text, err := os.ReadFile("far/real.yaml"); err != nil || string(text) != "third\n" {
		t.Errorf("%q, %v", text, err)
	}
	for _, link := range []string{"link.yaml", "second.yaml"} {
		if about, err := os.Lstat(link); err != nil || about.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s is no link any more: %v", link, err)
		}
	}
	if err := replaceFile("round.yaml", nil, []byte("x")); err == nil {
		t.Error("a link to itself was replaced")
	}
}

// TestRemoveFromABrokenFile: where a file cannot be read, nobody knows whether the machine is in it.
func TestRemoveFromABrokenFile(t *testing.T) {
	var out logBuffer
	state := t.TempDir()
	args := []string{"remove", "bigpc", "--config", config(t, "servers: [{name: bigpc\n")}
	if code := run(t.Context(), args, func(name string) string {
		return map[string]string{"XDG_STATE_HOME": state}[name]
	}, &out, &out); code != exitSettings || !strings.Contains(out.String(), "switchboard.yaml:1:") {
		t.Errorf("%d %s", code, &out)
	}
}

// TestAdd: what is added is loaded by the next start; what would be wrong is told, and nothing is written.
func TestAdd(t *testing.T) {
	t.Chdir(t.TempDir())
	sh := &shell{t: t, env: map[string]string{"XDG_STATE_HOME": t.TempDir()}}
	add := func(code int, words []string, args ...string) {
		t.Helper()
		var out, errs logBuffer
		got := run(t.Context(), append([]string{"add"}, args...), func(name string) string { return sh.env[name] }, &out, &errs)
		if got != code {
			t.Errorf("%q: %d %s%s", args, got, &out, &errs)
		}
		for _, word := range words {
			if !strings.Contains(out.String()+errs.String(), word) {
				t.Errorf("%q does not say %q: %s%s", args, word, &out, &errs)
			}
		}
	}
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	for _, program := range []string{"codex", "claude-agent-acp", "opencode", "mystery"} {
		must(t, os.WriteFile(filepath.Join(bin, program), []byte("#!/bin/sh\n"), 0o700))
	}
	add(0, []string{"added bigpc to switchboard.yaml", "simulated machines are gone", "switchboard doctor"}, "bigpc", "ws://127.0.0.1:4500", "--set", "cwd=/home/me/src", "--set", "aliases=[big pc, desk]", "--set", "projects={api: /home/me/src/api}")
	add(0, []string{"added laptop"}, "laptop", "--", "codex", "app-server", "-c", "x={a,b}")
	add(0, []string{"added box"}, "box", "unix:///run/codex.sock")
	notes := t.TempDir()
	add(0, []string{"added helper"}, "helper", "http://127.0.0.1:1/v1", "--set", "model=m 1", "--set", "workspace="+notes, "--set", "trusted=true")
	add(0, []string{"added cl"}, "cl", "claude-agent-acp")
	add(0, []string{"added open"}, "open", "opencode", "acp", "--set", "mode=build")
	add(0, []string{"added odd"}, "odd", "mystery", "serve", "--set", "kind=acp")
	good, err := os.ReadFile("switchboard.yaml")
	must(t, err)
	add(exitSettings, []string{"notaurl is no address", "no program on this machine"}, "y", "notaurl")
	add(exitSettings, []string{"bigpc:4500 is no address"}, "y", "bigpc:4500")
	add(exitSettings, []string{"no program gone-acp"}, "y", "--", "gone-acp", "--fast")
	add(exitSettings, []string{"no program gone"}, "y", "gone", "app-server", "--set", "kind=codex")
	add(exitSettings, []string{"--set kind=codex", "--set kind=acp"}, "y", "mystery", "serve")
	add(exitSettings, []string{"is too much"}, "far", "ssh:me@far", "codex", "app-server")
	add(1, []string{"ssh"}, "far", "ssh:me@far", "mystery", "serve", "--set", "cwd=/src") // an agent: its machine is asked for it
	add(exitSettings, []string{"left as it is", "is already a name"}, "bigpc", "ws://127.0.0.1:4501")
	add(exitSettings, []string{"left as it is", "in the clear"}, "far", "ws://10.0.0.5:4500")
	add(exitSettings, []string{"left as it is", "colour"}, "far", "ws://127.0.0.1:2", "--set", "colour=red")
	add(exitSettings, []string{"is not SETTING=VALUE"}, "far", "ws://127.0.0.1:2", "--set", "cwd")
	add(exitSettings, []string{"--set stands before the --"}, "far", "--", "codex", "app-server", "--set", "cwd=/src")
	add(exitSettings, []string{"is too much"}, "far", "ws://127.0.0.1:2", "codex")
	add(exitSettings, []string{"is too much"}, "far", "unix:/run/codex.sock", "codex")
	if now, err := os.ReadFile("switchboard.yaml"); err != nil || string(now) != string(good) {
		t.Errorf("the file was changed: %v\n%s", err, now)
	}
	if about, err := os.Stat("switchboard.yaml"); err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", about.Mode(), err)
	}
	s, err := file(string(good)).load(t)
	if err != nil || len(s.Servers) != 7 {
		t.Fatalf("%v in\n%s", err, good)
	}
	b, l, x, h := s.Servers[0], s.Servers[1], s.Servers[2].Own.(*codex.Config), s.Servers[3].Own.(*responses.Settings)
	for i, command := range []string{"[claude-agent-acp]", "[opencode acp]", "[mystery serve]"} {
		if own, is := s.Servers[4+i].Own.(*acp.Config); !is || fmt.Sprint(own.Way.(*transport.Child).Command) != command {
			t.Errorf("%s is %+v", command, s.Servers[4+i])
		}
	}
	child := l.Own.(*codex.Config).Way.(*transport.Child)
	if len(b.Aliases) != 2 || b.Projects["api"] == "" || child.Command[3] != "x={a,b}" ||
		x.Way.(*transport.Unix).Path != "/run/codex.sock" || h.Model != "m 1" || !h.Trusted {
		t.Errorf("%+v", s.Servers)
	}
	if left, err := filepath.Glob(".*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

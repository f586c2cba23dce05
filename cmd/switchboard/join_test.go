package main

import (
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/servers/joined/host"
)

// TestJoinPolicy: the first join writes a file with what its flags allow; from then on the file decides, and each
// mistake in it is reported with its line.
func TestJoinPolicy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "new", "machine.yaml")
	j := joinFlags{agents: []string{"codex"}, dirs: []string{dir}, ceiling: "read-only", noAnswers: true}
	for range 2 { // the same flags say the same
		p, err := j.policy(file)
		if err != nil || len(p.Agents) != 1 || p.Dirs[0] != dir || p.Ceiling != "read-only" || p.Answers {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	if p, err := (joinFlags{}).policy(file); err != nil || p.Ceiling != "read-only" {
		t.Errorf("without flags: %+v, %v", p, err)
	}
	if _, err := (joinFlags{ceiling: "danger-full-access"}).policy(file); err == nil {
		t.Error("a flag loosens what the file says")
	}
	open, err := joinFlags{}.policy(filepath.Join(dir, "open.yaml"))
	if err != nil || !open.Answers || open.Ceiling != "" || open.Agents != nil || open.Dirs != nil {
		t.Errorf("without anything: %+v, %v", open, err)
	}
	for _, bad := range []joinFlags{{ceiling: "none"}, {agents: []string{"nobody"}}} {
		if _, err := bad.policy(filepath.Join(dir, "bad.yaml")); err == nil {
			t.Errorf("taken: %+v", bad)
		}
	}
	if open.AnyAgent {
		t.Error("where there is a file, who comes by ssh names any program")
	}
	if p, err := readPolicy(filepath.Join(dir, "none.yaml")); !errors.Is(err, fs.ErrNotExist) || !p.AnyAgent || !p.Answers {
		t.Errorf("without a file: %+v, %v", p, err)
	}
	wrong := filepath.Join(dir, "wrong.yaml")
	write(t, wrong, "agents:\n  - {name: mine}\ndirectories: [src]\nceiling: read-onli\nanswers: yes\n")
	_, err = readPolicy(wrong)
	for _, want := range []string{":2:", "mine needs", ":3:", "absolute", ":4:", `did you mean "read-only"`, ":5:", "answers"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
	write(t, wrong, "agents:\n  - {name: codex}\n  - {name: codex}\n  - {name: My_Codex, kind: codex, command: [x]}\ndirectories: []\n")
	_, err = readPolicy(wrong)
	for _, want := range []string{":3:", "another agent", ":4:", "a-z", ":5:", "names none"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
	write(t, wrong, "agents: []\n")
	if p, err := readPolicy(wrong); err == nil || !strings.Contains(err.Error(), "names none") {
		t.Errorf("no agent may be used, and there are %+v, %v", p.Agents, err)
	}
	if len(host.Usual()) == 0 {
		t.Error("no agent goes without a command")
	}
}

// TestJoinUnit: the service restarts unless this machine was refused, does not end the agents when it ends, and quotes
// its words.
func TestJoinUnit(t *testing.T) {
	t.Parallel()
	env := func(name string) string { return map[string]string{"PATH": "/a b:/c%d", "SECRET_KEY": "s3cret"}[name] }
	unit := systemdUnit(`/opt/my "tools"/switchboard`, env)
	for _, want := range []string{
		`ExecStart="/opt/my \"tools\"/switchboard" join`, "Restart=always", "RestartPreventExitStatus=6", "KillMode=process",
		`Environment="PATH=/a b:/c%%d"`, "WantedBy=default.target",
	} {
		if !strings.Contains(unit, want+"\n") {
			t.Errorf("%q is missing in:\n%s", want, unit)
		}
	}
	agent := launchdAgent("/opt/<tools>/switchboard", env)
	if strings.Contains(unit+agent, "s3cret") {
		t.Error("a secret is in it")
	}
	if !strings.Contains(agent, "<string>/opt/&lt;tools&gt;/switchboard</string><string>join</string>") {
		t.Errorf("the program is missing in:\n%s", agent)
	}
	for d := xml.NewDecoder(strings.NewReader(agent)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestJoinUnitNotStarted: if the service cannot be started, its unit file is removed, so that leave does not fail.
func TestJoinUnitNotStarted(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"systemctl", "launchctl"} {
		write(t, filepath.Join(home, name), "#!/bin/sh\necho no bus >&2\nexit 1\n")
		must(t, os.Chmod(filepath.Join(home, name), 0o700))
	}
	t.Setenv("PATH", home)
	env := func(name string) string { return map[string]string{"HOME": home}[name] }
	err := installUnit(t.Context(), env, func(line string) { t.Errorf("said: %s", line) })
	if err == nil || !strings.Contains(err.Error(), "no bus") || !strings.Contains(err.Error(), "`switchboard join`") {
		t.Errorf("not started: %v", err)
	}
	if removed, err := removeUnit(t.Context(), env); err != nil || removed != "" {
		t.Errorf("a service is left: %q, %v", removed, err)
	}
}

// TestJoinMistyped: a join with wrong arguments does not write the machine's file, which would hold for later joins.
func TestJoinMistyped(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	env := func(name string) string { return map[string]string{"HOME": home}[name] }
	for _, j := range []joinFlags{{url: "https://bigpc.example", code: "half"}, {}} {
		if err := j.do(t.Context(), env, io.Discard, io.Discard); err == nil {
			t.Errorf("joined: %+v", j)
		}
	}
	if _, err := os.Stat(filepath.Join(home, ".config")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file of the owner is written: %v", err)
	}
}

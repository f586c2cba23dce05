package main

import (
	"debug/elf"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A step is one instruction of the Dockerfile.
type step struct{ word, rest string }

// dockerfile reads the instructions of each stage.
func dockerfile(t *testing.T) (build, final []step) {
	t.Helper()
	data, err := os.ReadFile(house + "/Dockerfile")
	must(t, err)
	var stages [][]step
	for line := range strings.Lines(strings.ReplaceAll(string(data), "\\\n", " ")) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "" || strings.HasPrefix(word, "#") {
			continue
		}
		if word == "FROM" {
			stages = append(stages, nil)
		}
		if len(stages) == 0 {
			t.Fatalf("%q before FROM", line)
		}
		stages[len(stages)-1] = append(stages[len(stages)-1], step{word, strings.TrimSpace(rest)})
	}
	if len(stages) != 2 {
		t.Fatalf("%d stages, want two", len(stages))
	}
	return stages[0], stages[1]
}

// all returns what follows a word in a stage.
func all(stage []step, word string) []string {
	var found []string
	for _, s := range stage {
		if s.word == word {
			found = append(found, s.rest)
		}
	}
	return found
}

// one returns what follows a word that must be there once.
func one(t *testing.T, stage []step, word string) string {
	t.Helper()
	found := all(stage, word)
	if len(found) != 1 {
		t.Fatalf("%d times %s, want one: %q", len(found), word, found)
	}
	return found[0]
}

// list reads the exec form of an instruction: without a shell, which the image does not have.
func list(t *testing.T, text string) []string {
	t.Helper()
	var words []string
	if err := json.Unmarshal([]byte(text), &words); err != nil || len(words) == 0 {
		t.Fatalf("%s is not in exec form: %v", text, err)
	}
	return words
}

// TestImageBuild does what the Dockerfile does: what it copies is all that its build gets, and what it
// builds runs in an empty image.
func TestImageBuild(t *testing.T) {
	t.Parallel()
	build, _ := dockerfile(t)
	src := t.TempDir()
	for _, args := range all(build, "COPY") {
		words := strings.Fields(args)
		for _, from := range words[:len(words)-1] {
			to := filepath.Join(src, words[len(words)-1])
			if info, err := os.Stat(filepath.Join(house, from)); err != nil {
				t.Fatalf("COPY %s: %v", args, err)
			} else if !info.IsDir() {
				to = filepath.Join(to, from)
			}
			copyTree(t, filepath.Join(house, from), to)
		}
	}
	runs := all(build, "RUN")
	at := slices.IndexFunc(runs, func(run string) bool { return strings.Contains(run, "go build") })
	if at < 0 {
		t.Fatalf("no go build in %q", runs)
	}
	binary := filepath.Join(t.TempDir(), "switchboard")
	run := strings.Replace(runs[at], "-o /switchboard ", "-o "+binary+" ", 1)
	if run == runs[at] || !strings.Contains(run, "-trimpath") {
		t.Fatalf("RUN %s: no -o /switchboard, or no -trimpath", run)
	}
	cmd := exec.Command("sh", "-c", run)
	cmd.Dir, cmd.Stdout, cmd.Stderr = src, t.Output(), t.Output()
	if err := cmd.Run(); err != nil {
		t.Fatalf("RUN %s: %v", run, err)
	}
	if runtime.GOOS == "linux" {
		wantStatic(t, binary)
	}
	out, err := exec.Command(binary, "--help").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "health") {
		t.Fatalf("%s --help: %v\n%s", binary, err, out)
	}
}

// copyTree copies a file or a directory.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	must(t, err)
	if info.IsDir() {
		must(t, os.CopyFS(to, os.DirFS(from)))
		return
	}
	data, err := os.ReadFile(from)
	must(t, err)
	must(t, errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, data, 0o600)))
}

// wantStatic fails the test unless the kernel alone can run the binary.
func wantStatic(t *testing.T, binary string) {
	t.Helper()
	f, err := elf.Open(binary)
	must(t, err)
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("it is not static: it has %v", p.Type)
		}
	}
}

// TestImage checks the image that is shipped: empty but for what the build made, run by a number that is
// not root, and asked for its health by the binary itself.
func TestImage(t *testing.T) {
	t.Parallel()
	build, final := dockerfile(t)
	if from := one(t, final, "FROM"); from != "scratch" {
		t.Errorf("FROM %s, want scratch", from)
	}
	if user := one(t, final, "USER"); !regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*$`).MatchString(user) {
		t.Errorf("USER %s is not a number other than root", user)
	}
	made := strings.Join(all(build, "RUN"), "\n")
	there := map[string]bool{}
	for _, args := range all(final, "COPY") {
		words := strings.Fields(args)
		from, to := words[len(words)-2], words[len(words)-1]
		if !strings.HasPrefix(args, "--from=build ") || !strings.HasPrefix(from, "/etc/ssl/") && !strings.Contains(made, " "+from) {
			t.Errorf("COPY %s: the build does not make it", args)
		}
		there[to] = true
	}
	state := one(t, final, "VOLUME")
	if one(t, final, "ENV") != "XDG_STATE_HOME="+state || !there[state] {
		t.Errorf("the state directory %s is not there, or not used", state)
	}
	entry := list(t, one(t, final, "ENTRYPOINT"))
	check, isCommand := strings.CutPrefix(regexp.MustCompile(`--\S+\s+`).ReplaceAllString(one(t, final, "HEALTHCHECK"), ""), "CMD ")
	health := list(t, check)
	if !isCommand || !there[entry[0]] || health[0] != entry[0] {
		t.Errorf("ENTRYPOINT %q and HEALTHCHECK %q, there is %v", entry, health, there)
	}
	verb, _, err := (&console{env: func(string) string { return "" }}).commands().Parse(health[1:])
	if err != nil || verb == nil || verb.Name != "health" {
		t.Errorf("HEALTHCHECK %q is not the verb health: %v", health, err)
	}
	_, port, _ := strings.Cut(defaults().Listen, ":")
	if ports := strings.Fields(one(t, final, "EXPOSE")); !slices.Contains(ports, port+"/tcp") {
		t.Errorf("EXPOSE %q has no %s/tcp", ports, port)
	}
}

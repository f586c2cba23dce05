package main

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestHygieneOfChecklists holds that each test of a checklist is there. The checklist of a package is a file of lines
// of what the package promises: the test that holds it, the directory of the test, and the promise.
func TestHygieneOfChecklists(t *testing.T) {
	held := map[string]bool{} // "directory test"
	for name, text := range sources(t) {
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(line, "func Test"); ok && strings.HasSuffix(name, "_test.go") {
				test, _, _ := strings.Cut(rest, "(t *testing.T) {")
				held[path.Dir(name)+" Test"+test] = true
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(house, "*", "*", "testdata", "checklist.txt"))
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			p := strings.SplitN(strings.TrimSpace(line), " ", 3)
			if len(p) != 3 || !held[p[1]+" "+p[0]] {
				t.Errorf("%s: no such test: %s", file, line)
			}
		}
	}
}

// TestHygieneOfKinds holds that each kind of agent server passes the suite that says what a kind must hold, in a test
// of its own or in one here.
func TestHygieneOfKinds(t *testing.T) {
	var kinds, suites []string
	all := sources(t)
	for name, text := range all {
		switch {
		case !strings.HasSuffix(name, "_test.go"):
			if strings.HasPrefix(name, "servers/") && strings.Contains(text, "servers.Kind{") {
				kinds = append(kinds, path.Dir(name))
			}
		case strings.Contains(text, "serverstest.TestServer("):
			suites = append(suites, name)
		}
	}
	if len(kinds) < 3 {
		t.Fatal("found only", kinds)
	}
	for _, kind := range kinds {
		if !slices.ContainsFunc(suites, func(name string) bool {
			return path.Dir(name) == kind || strings.Contains(all[name], `"switchboard/`+kind+`"`)
		}) {
			t.Errorf("%s: no test of it calls serverstest.TestServer", kind)
		}
	}
}

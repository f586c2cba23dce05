package main

import (
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestInsideNamesEverything: ARCHITECTURE.md names every package, and the help's page about the API every address.
func TestInsideNamesEverything(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(house, name))
		must(t, err)
		return string(text)
	}
	inside, api := read("ARCHITECTURE.md"), read("web/help/9-api.md")
	address := regexp.MustCompile(`"(?:GET|POST|PUT|DELETE) (/[^"{]+)`)
	for file, text := range sources(t) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		dir := path.Dir(file)
		kit := strings.HasSuffix(dir, "test") || strings.HasPrefix(dir, ".")
		if !kit && !strings.Contains(inside, "`"+path.Base(dir)+"`") && !strings.Contains(inside, "`"+dir+"`") {
			t.Errorf("ARCHITECTURE.md does not name package %s", dir)
		}
		if dir == "web" || path.Dir(dir) == "web" {
			for _, m := range address.FindAllStringSubmatch(text, -1) {
				if at := strings.TrimSuffix(m[1], "/"); !strings.Contains(api, at) {
					t.Errorf("%s: web/help/9-api.md does not name %s", file, at)
				}
			}
		}
	}
}

// TestInsideNamesWhatIsThere: the files, declarations and tests that ARCHITECTURE.md names are there.
func TestInsideNamesWhatIsThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(house, "ARCHITECTURE.md"))
	must(t, err)
	files := sources(t)
	for _, missing := range namesNothing(string(text), files) {
		t.Errorf("ARCHITECTURE.md: %s", missing)
	}
	found := namesNothing("| `handoff/none` | `handoff/work/life.go` | `State.act()`, `State.none()` |\n`TestNone`, "+
		"`handoff.Grant`, `handoff.None`, `turn/start`, `/metrics`\n", files)
	if want := []string{"there is no handoff/none", "handoff/work/life.go has no State.none",
		"there is no test TestNone", "there is no handoff.None"}; !slices.Equal(found, want) {
		t.Errorf("found %q", found)
	}
}

// namesNothing returns what is wrong with the code spans of a text: a path below a directory of ours must be there, a
// function `f()` or `Type.method()` in the last file that its line names, a test `TestX` anywhere, and an exported
// name `pkg.Name` in a package of that name.
func namesNothing(text string, files map[string]string) (missing []string) {
	tops, tests, exported, in := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]map[string]bool{}
	for name, source := range files {
		tops[strings.Split(name, "/")[0]] = true
		tree, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
		if path.Ext(name) != ".go" || err != nil {
			continue
		}
		in[name] = map[string]bool{}
		declarations(tree, in[name])
		for declared := range in[name] {
			exported[path.Base(path.Dir(name))+"."+declared] = true
			tests[declared] = tests[declared] || strings.HasSuffix(name, "_test.go")
		}
	}
	test, member := regexp.MustCompile(`^Test\w+$`), regexp.MustCompile(`^[a-z]+\.[A-Z]\w*$`)
	for line := range strings.Lines(text) {
		file := ""
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line, -1) {
			span := m[1]
			function, isFunction := strings.CutSuffix(span, "()")
			top, _, isPath := strings.Cut(span, "/")
			switch {
			case isFunction && !in[file][function]:
				missing = append(missing, file+" has no "+function)
			case test.MatchString(span) && !tests[span]:
				missing = append(missing, "there is no test "+span)
			case member.MatchString(span) && !exported[span]:
				missing = append(missing, "there is no "+span)
			case isPath && tops[top]:
				file = span
				if _, err := os.Stat(filepath.Join(house, span)); err != nil {
					missing = append(missing, "there is no "+span)
				}
			}
		}
	}
	return missing
}

// TestInsideHelpIsShort: no paragraph of the help is a page. A reader looks for one answer.
func TestInsideHelpIsShort(t *testing.T) {
	const most = 650 // characters
	pages, err := filepath.Glob(filepath.Join(house, "web/help/*.md"))
	must(t, err)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		must(t, err)
		number := 0
		for line := range strings.Lines(string(text)) {
			if number++; len([]rune(line)) > most && !strings.HasPrefix(line, "|") {
				t.Errorf("%s:%d: a paragraph has %d characters, the budget is %d", path.Base(page), number, len([]rune(line)), most)
			}
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/handoff/tools"
)

// readmeText is the README and the pages that it links to, which the page shows as help.
func readmeText(t *testing.T) string {
	t.Helper()
	names, err := filepath.Glob("../../web/help/*.md")
	if err != nil || len(names) < 5 {
		t.Fatalf("pages of help: %q, %v", names, err)
	}
	var all strings.Builder
	for _, name := range append([]string{readme}, names...) {
		data, err := os.ReadFile(name)
		must(t, err)
		all.Write(append(data, '\n'))
	}
	return all.String()
}

// TestReadmeLinks holds that what the README, the help and ARCHITECTURE.md link to is there, with the heading, and that
// the README links to every page of help.
func TestReadmeLinks(t *testing.T) {
	names, err := filepath.Glob("../../web/help/*.md")
	must(t, err)
	linked := links(t, readme)
	for _, name := range names {
		links(t, name)
		if !slices.Contains(linked, name) {
			t.Errorf("the README does not link to %s", name)
		}
	}
	links(t, "../../ARCHITECTURE.md")
}

// links returns the files that a file links to, and holds that they are there and have the headings that links name.
func links(t *testing.T, file string) (linked []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	for _, m := range regexp.MustCompile(`\]\(([^):#]*)(?:#([^)]+))?\)`).FindAllStringSubmatch(string(data), -1) {
		to := file
		if m[1] != "" {
			to = filepath.Join(filepath.Dir(file), m[1])
		}
		text, err := os.ReadFile(to)
		if info, other := os.Stat(to); err != nil && (other != nil || !info.IsDir()) {
			t.Errorf("%s: a link leads nowhere: %v", file, err)
		}
		found := m[2] == ""
		for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
			name := regexp.MustCompile(`[^\pL\pN -]`).ReplaceAllString(strings.ToLower(h[1]), "")
			found = found || strings.ReplaceAll(name, " ", "-") == m[2]
		}
		if !found {
			t.Errorf("%s: a link leads to #%s, which %s does not have", file, m[2], to)
		}
		linked = append(linked, to)
	}
	return linked
}

// blocks returns the fenced blocks of a language.
func blocks(text, language string) []string {
	var found []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// TestReadmeConfigurations holds that every configuration the README shows is accepted as it stands.
func TestReadmeConfigurations(t *testing.T) {
	examples := blocks(readmeText(t), "yaml")
	for _, m := range regexp.MustCompile("`(\\{principal: [^`]*\\})`").FindAllStringSubmatch(readmeText(t), -1) { // one key, in a sentence
		file := regexp.MustCompile(`key_file: [^,}]*`)
		examples = append(examples, "keys:\n  - "+file.ReplaceAllString(m[1], "key_env: OWNER_KEY")+"\n")
	}
	if len(examples) < 3 {
		t.Fatalf("found %d examples", len(examples))
	}
	env := map[string]string{"VOICE_KEY": "a-key-0000000000000000", "NTFY_TOKEN": "tk_0000", "OWNER_KEY": goodKey, "ASSISTANT_KEY": goodKey + "-assistant"}
	for _, example := range examples {
		file := config(t, example)
		if err := os.Mkdir(filepath.Join(filepath.Dir(file), "notes"), 0o700); err != nil { // the workspace
			t.Fatal(err)
		}
		if _, err := loadWith(func(name string) string { return env[name] }, "--config", file); err != nil {
			t.Errorf("%v in:\n%s", err, example)
		}
	}
}

// TestReadmeCommands holds that what the README tells to run is there, and that CI runs the test command.
func TestReadmeCommands(t *testing.T) {
	shell := strings.Join(blocks(readmeText(t), "sh"), "\n")
	for _, command := range []string{"go run ./cmd/switchboard ", "make test", "go run ./cmd/switchboard --codex"} {
		if !strings.Contains(shell, command) {
			t.Errorf("the README does not say %q", command)
		}
	}
	makefile, err := os.ReadFile("../../Makefile")
	must(t, err)
	ci, err := os.ReadFile("../../.ci/run")
	must(t, err)
	if !regexp.MustCompile(`(?m)^test:`).Match(makefile) || !strings.Contains(string(ci), "make test") {
		t.Error("CI must run the command that the README gives")
	}
	if _, err := os.Stat("../../web/page.png"); err != nil {
		t.Errorf("the picture of the README: %v", err)
	}
}

// TestReadmeTools holds that the README shows each tool with its arguments, and no other, and that the setting
// which grants them names all.
func TestReadmeTools(t *testing.T) {
	_, table, _ := strings.Cut(readmeText(t), "| tool |")
	table, _, _ = strings.Cut(table, "\n\n")
	shown := regexp.MustCompile("`([a-z_]+\\([^`]*\\))`").FindAllStringSubmatch(table, -1)
	var got, want []string
	for _, m := range shown {
		got = append(got, m[1])
	}
	for _, tool := range tools.All() {
		var arguments []string
		_, properties, _ := strings.Cut(string(tool.Parameters), `"properties":{`)
		properties, required, _ := strings.Cut(properties, `"required":`)
		for _, m := range regexp.MustCompile(`("\w+"):{`).FindAllStringSubmatch(properties, -1) {
			name := strings.Trim(m[1], `"`)
			if !strings.Contains(required, m[1]) {
				name += "?"
			}
			arguments = append(arguments, name)
		}
		want = append(want, tool.Name+"("+strings.Join(arguments, ", ")+")")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the README's tools (-want +got):\n%s", diff)
	}
	i := slices.IndexFunc(pageRows(t), func(r settingRow) bool { return r.path == "keys[].tools" })
	if doc := pageRows(t)[i].doc; doc != "tools that may be used: "+strings.Join(tools.Names(), ", ") {
		t.Errorf("keys[].tools says %q", doc)
	}
}

// TestReadmePaths holds that the table of paths is what the service serves: each is there, with a key.
func TestReadmePaths(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) { p.MCP.OAuth = true })
	named := regexp.MustCompile("`(GET|POST|PUT|DELETE) (/[^`]*)`").FindAllStringSubmatch(readmeText(t), -1)
	if len(named) < 15 {
		t.Fatalf("found %d paths", len(named))
	}
	for _, m := range named {
		method, path := m[1], regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(m[2], "none")
		if path == "/fleet/events" || path == "/login" { // one lasts for ever, the other wants an Origin
			continue
		}
		status, body := r.ask(method, path, "")
		unknown := status == 404 && strings.Contains(string(body), "There is no "+method)
		if unknown || slices.Contains([]int{405, 500, 501}, status) {
			t.Errorf("%s %s: %d %s", method, path, status, body)
		}
	}
}

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

// nested are the beginnings of files that nest without end, and what each is made of.
var nested = map[string]string{
	"lists":           "[",
	"mappings":        "{",
	"flow keys":       "{a: ",
	"pairs in a list": "[a: ",
	"after a comma":   "[a: [b, ",
	"dashes":          "- ",
	"marked keys":     "? ",
	"no keys":         ": ",
	"tags":            "!!a ",
	"anchors":         "&a ",
	"mixed":           "- [",
	"over lines":      "[\n",
}

// deepEnough overflows the child's stack where nothing bounds it. It is not more because the reader of YAML
// takes time with the square of a line's length.
const deepEnough = 16 << 10

const deepFile = "SWITCHBOARD_TEST_DEEP"

// TestDeepConfig starts the program with files that nest without end: each is a mistake like any other, with
// its line and column, and ends it with code 2. A child process, because a stack overflow ends one.
func TestDeepConfig(t *testing.T) {
	if file := os.Getenv(deepFile); file != "" {
		debug.SetMaxStack(1 << 20)
		os.Exit(run(t.Context(), []string{"--config", file}, func(string) string { return "" }, os.Stdout, os.Stderr))
	}
	t.Parallel()
	want := regexp.MustCompile(`^\S+/deep\.yaml:\d+:\d+: not YAML: nested deeper than 64\n$`)
	texts := map[string]string{"blocks": stairs(300), "aliases": bomb()}
	for name, unit := range nested {
		texts[name] = strings.Repeat(unit, deepEnough/len(unit))
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "deep.yaml")
			must(t, os.WriteFile(file, []byte(text), 0o600))
			cmd := exec.Command(os.Args[0], "-test.run", "^TestDeepConfig$")
			cmd.Env = append(os.Environ(), deepFile+"="+file)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			err := cmd.Run()
			if cmd.ProcessState.ExitCode() != exitSettings {
				t.Fatalf("%v: %.300s", err, stderr.String())
			}
			if name == "aliases" { // refused by what reads the settings, one for one
				if !strings.Contains(stderr.String(), "deep.yaml:1:1: unknown key") {
					t.Errorf("%.300s", stderr.String())
				}
			} else if !want.MatchString(stderr.String()) {
				t.Errorf("%.300s", stderr.String())
			}
		})
	}
}

// stairs are blocks, each a column further right.
func stairs(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// bomb names ten times what names ten times what came before.
func bomb() string {
	var b strings.Builder
	b.WriteString("a: &a [x,x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c < 'k'; c++ {
		before := "*" + string(c-1)
		b.WriteString(string(c) + ": &" + string(c) + " [" + before + strings.Repeat(","+before, 9) + "]\n")
	}
	return b.String()
}

// TestNestingFits holds that the bound leaves alone what is only long: many entries, brackets inside of text, a
// flow mapping far to the right.
func TestNestingFits(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"everything":       everything,
		"brackets in text": "listen: '" + strings.Repeat("[{", 500) + "'\n",
		"entries":          "servers: [" + strings.Repeat("{name: a}, ", 500) + "]\n",
		"a comment":        strings.Repeat(" ", 200) + "# far\nlisten: a\n",
		"a long line":      strings.Repeat("a", 200) + ": {b: {c: [d]}}\n",
	} {
		_, err := parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

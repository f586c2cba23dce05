package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
)

// invoke runs the program in a directory of its own without an environment.
func invoke(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, func(string) string { return "" }, &out, &errs)
	return code, out.String(), errs.String()
}

// TestInit: the starter file is written once, sets nothing as it stands, and is never written over another.
func TestInit(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, out, errs := invoke(t, "init"); code != 0 || !strings.Contains(out, "switchboard.yaml") {
		t.Fatalf("%d %q %q", code, out, errs)
	}
	s, err := file(string(starter)).load(t)
	must(t, err)
	if len(s.Servers) > 0 || len(s.Access) > 0 || s.Listen != defaults().Listen {
		t.Error("the starter file sets something")
	}
	t.Chdir(t.TempDir())
	write(t, "mine.yaml", "listen: 127.0.0.1:1\n")
	if code, _, errs := invoke(t, "init", "--config", "mine.yaml"); code != exitFailed || !strings.Contains(errs, "left as it is") {
		t.Errorf("%d %q", code, errs)
	}
	if data, _ := os.ReadFile("mine.yaml"); string(data) != "listen: 127.0.0.1:1\n" {
		t.Errorf("now it is %q", data)
	}
}

// TestStarterLines: with every # taken away the starter file is a configuration, too.
func TestStarterLines(t *testing.T) {
	text := regexp.MustCompile(`(?m)^#([a-z ])`).ReplaceAllStringFunc(string(starter), func(m string) string {
		if m == "# " {
			return m // prose, or the second level of a setting: below
		}
		return m[1:]
	})
	text = regexp.MustCompile(`(?m)^#  `).ReplaceAllString(text, "  ")
	w := file(text)
	w.env = map[string]string{"VOICE_KEY": "a-key-0000000000000000", "OWNER_KEY": goodKey}
	s, err := w.load(t)
	must(t, err)
	if len(s.Servers) != 2 || len(s.Access) != 1 || s.Model.Name != "some-realtime-model" {
		t.Errorf("%d servers, %d keys, model %s", len(s.Servers), len(s.Access), s.Model.Name)
	}
}

// TestVersionAndHelp: both are printed and end the program well.
func TestVersionAndHelp(t *testing.T) {
	if code, out, _ := invoke(t, "--version"); code != 0 || !strings.HasPrefix(out, "switchboard") || !strings.Contains(out, "go1.") {
		t.Errorf("%d %q", code, out)
	}
	code, out, _ := invoke(t, "--help")
	if code != 0 {
		t.Fatal(code)
	}
	for _, want := range []string{"Examples:", "switchboard doctor", "  init ", "--version", "login", "audit"} {
		if !strings.Contains(out, want) {
			t.Errorf("the help does not say %q:\n%s", want, out)
		}
	}
}

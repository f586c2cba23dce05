package speakable

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestSpeakableAnswers holds what is said of answers as agents write them: pairs of a Markdown file and
// what is said of it, in archives by topic. -update rewrites what is said.
func TestSpeakableAnswers(t *testing.T) {
	files, err := filepath.Glob("testdata/speakable/*.txtar")
	if err != nil || len(files) < 4 {
		t.Fatalf("found %d archives, %v", len(files), err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(archive.Files); i += 2 {
			in, said := archive.Files[i], &archive.Files[i+1]
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+in.Name, func(t *testing.T) {
				got := Speakable(string(in.Data), 600) + "\n"
				if *update {
					said.Name, said.Data = "said", []byte(got)
				} else if diff := gocmp.Diff(string(said.Data), got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		}
		if *update {
			if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestCutSentence(t *testing.T) {
	for _, tc := range []struct {
		name, in, want string
		limit          int
	}{
		{"at a sentence", "One is done. Two is not done yet.", "One is done.", 20},
		{"not in a number", "It took 12.5 s and then 13.25 s. More of it.", "It took 12.5 s and then 13.25 s.", 36},
		{"not in an abbreviation", "Some tests, e.g. the slow one, fail again and again.", "Some tests, e.g. the slow…", 30},
		{"not after a letter", "Das gilt z. B. für den Parser und für alles andere.", "Das gilt z. B. für den…", 29},
		{"not in an ordinal", "Es läuft seit dem 3. Mai ohne jeden Fehler weiter.", "Es läuft seit dem 3. Mai…", 29},
		{"not in a file's name", "I changed main.go and rewrote the whole parser.", "I changed main.go and…", 28},
		{"question", "Shall I push? I would wait for the review first.", "Shall I push?", 30},
		{"one long word", strings.Repeat("a", 50), strings.Repeat("a", 17), 20},
		{"at a rune", strings.Repeat("ä", 50), strings.Repeat("ä", 8), 20},
	} {
		if got := CutSentence(tc.in, tc.limit); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestPlainWords(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"src/main.go and ./x and ~/notes and /tmp", "main.go and x and notes and tmp"},
		{"go test ./... passes", "go test passes"},
		{`C:\Users\me\shop\main.go`, "main.go"},
		{"client/server, and/or, 24/7, TCP/IP/UDP, 2026/11/20, km/h",
			"client/server, and/or, 24/7, TCP/IP/UDP, 2026/11/20, km/h"},
		{"token.go:42:7 and lex.rs#L10-L20", "token.go line 42 and lex.rs line 10"},
		{"at 12:30 on localhost:8080", "at 12:30 on localhost:8080"},
		{"commit 3F9A2B7C1D, sha256:9f86d081884c7d65, 0x7ffee3b2a", "commit"},
		{"1234567 facades decade 2026", "1234567 facades decade 2026"},
		{"key sk-proj-abcDEF1234567890xyz, done", "key, done"},
		{"ask me@example.com or www.example.com/x.", "ask or"},
		{"done (see https://example.com/a(b)).", "done (see"},
		{"20 °C, 5 €, 3 µs, ≥ 99.9 %, ~5 s, 3 × 4", "20 °C, 5 €, 3 µs, at least 99.9 %, about 5 s, 3 times 4"},
		{"a → b", "a to b"},
		{"set it in .env , a != b , port :8080 .", "set it in .env, a != b, port :8080."},
		{`$HOME/.config/app.toml, ${DIR}/x and %APPDATA%\shop\x.ini for $5`, "app.toml, x and x.ini for $5"},
		{`it says {"ok": true, "n": 3}, see [^1]. [^1]: a note {really}`, "it says some data, see. a note {really}"},
		{"✅ lint, ❌ tests 👩‍💻🇩🇪", "lint, failed: tests"},
		{"a\u0089b\u200b c\u00a0d", "ab c d"},
		{"", ""},
		{"...", ""},
	} {
		if got := plainWords(tc.in); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.in, got, tc.want)
		}
	}
}

// unspeakable is what must never be said.
var unspeakable = regexp.MustCompile("`|\\*\\*|~~|://|\x1b|\\|")

// FuzzSpeakableMeaning holds that no Markdown, address, sign or emoji is left, that the bound holds and
// that a text fit to be said stays so.
func FuzzSpeakableMeaning(f *testing.F) {
	archives, err := filepath.Glob("testdata/speakable/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range archives {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range archive.Files {
			f.Add(string(part.Data), 300)
		}
	}
	for _, unit := range nested {
		f.Add(strings.Repeat(unit, 2*maxMarkdown/len(unit)), 300)
	}
	f.Add("# a\n\n- b\n\n```\ncode\n```", 100)
	f.Add("[x](y) <http://a.b> `c` ![d](e)", 50)
	f.Fuzz(func(t *testing.T, in string, limit int) {
		limit = 20 + abs(limit)%1000
		got := Speakable(in, limit)
		if len(got) > limit+len(RestOnPage)+1 {
			t.Fatalf("%d bytes, limit %d", len(got), limit)
		}
		if !utf8.ValidString(got) || got != strings.TrimSpace(got) || strings.Contains(got, "  ") {
			t.Fatalf("untidy: %q", got)
		}
		if found := unspeakable.FindString(got); found != "" {
			t.Fatalf("%q is left in %q", found, got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool {
			return unicode.IsControl(r) || r >= 0x1f300 && r < 0x1faff
		}); i >= 0 {
			t.Fatalf("%q holds what nobody can say", got)
		}
	})
}

// nested is what Markdown nests with, or looks far ahead for.
var nested = []string{
	"> ", ">", "- ", "- - ", "\n-", "1. ", "[", "[]", "[a](", "[a][", "![](", "**a", "*_", "a*", "*a**", "__a_", "~~a",
	"`", "``a`",
	"<a ", "<", "<!--", "|a|b\n|-|-\n", "[a]: b\n", "/a", "(see ", "\t", "&#", "a@b", "www.a.", "http://", "\\`",
}

// stairs are lists in lists, each two columns further right.
func stairs(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	return b.String()
}

// TestSpeakableIsBounded holds that a huge or nested text is cut.
func TestSpeakableIsBounded(t *testing.T) {
	for _, unit := range append(nested, stairs(1<<17)) {
		got := Speakable(strings.Repeat(unit, max(1<<20/len(unit), 1)), 200)
		if len(got) > 200+len(RestOnPage)+1 || !strings.HasSuffix(got, RestOnPage) {
			t.Errorf("%.20q: %d bytes: %q", unit, len(got), got)
		}
	}
}

// TestSpeakableDoesNotNest reads what nests on a small stack, in a process of its own: a stack that overflows
// ends one.
func TestSpeakableDoesNotNest(t *testing.T) {
	const child = "SWITCHBOARD_TEST_DEEP"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestSpeakableDoesNotNest$")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%.2000s", err, out)
		}
		return
	}
	debug.SetMaxStack(1 << 20)
	for _, unit := range append(nested, stairs(1<<17)) {
		Speakable(strings.Repeat(unit, max(100_000/len(unit), 1)), 200)
	}
}

func TestSpeakable(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"plain", "All 42 tests pass.", "All 42 tests pass."},
		{"markdown", "## Done\n\n**All** `42` tests [pass](https://x.io/a).", "Done. All 42 tests pass."},
		{"list", "Changed:\n- the parser\n- the tests\n", "Changed: the parser. the tests."},
		{"code", "Here:\n```go\nfunc main() {}\n```\nThat is it.", "Here: That is it. The rest is on the page."},
		{"path", "I changed internal/auth/token_refresh.go and /home/me/src/shop/go.mod.",
			"I changed token_refresh.go and go.mod."},
		{"hash", "Commit 3f9a2b7c1d on main.", "Commit on main."},
		{"url", "See https://example.com/a/b?c=d now.", "See now."},
		{"number stays", "It took 1234567 ms.", "It took 1234567 ms."},
		{"lines", "one\ntwo", "one two"},
		{"empty", "", ""},
		{"only code", "```\nx\n```", "The rest is on the page."},
	} {
		if got := Speakable(tc.in, 600); strings.TrimRight(got, " ") != tc.want &&
			strings.TrimSuffix(got, ".") != strings.TrimSuffix(tc.want, ".") {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	long := Speakable(strings.Repeat("This is a sentence. ", 100), 200)
	if len(long) > 200+len(RestOnPage)+1 || !strings.HasSuffix(long, "sentence. "+RestOnPage) {
		t.Errorf("a long text must end at a sentence: %q", long)
	}
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

package speakable

import (
	"strings"
	"testing"
)

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

// FuzzSpeakable holds that spoken text has no fences and stays below its limit.
func FuzzSpeakable(f *testing.F) {
	f.Add("# a\n\n- b\n\n```\ncode\n```", 100)
	f.Add("[x](y) <http://a.b> `c` ![d](e)", 50)
	f.Fuzz(func(t *testing.T, in string, limit int) {
		limit = 20 + abs(limit)%1000
		got := Speakable(in, limit)
		if len(got) > limit+len(RestOnPage)+5 {
			t.Fatalf("%d bytes, limit %d", len(got), limit)
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

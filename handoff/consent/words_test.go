package consent

import (
	"io/fs"
	"strings"
	"testing"
)

// TestWordFiles holds what a file of words may hold.
func TestWordFiles(t *testing.T) {
	l, err := parseLanguage("xx", "# Nonsense\n\nyes: Plim, plam plum\nyes: plöm\ndeny: zot\nhold: zit\nact push: schub\nnumber 2: zwo\n")
	if err != nil || len(l.book) != 2+1 || len(l.signals[signalDeny]) != 1 || len(l.signals[signalHold]) != 1 || len(l.acts["push"]) != 1 || len(l.numbers["2"]) != 1 {
		t.Errorf("%+v, %v", l, err)
	}
	for text, want := range map[string]string{
		"yes: a\nmaybe: b":  "line 2 begins a section",
		"act fly: b":        "line 1 begins a section",
		"a, b":              "not a list",
		"yes:":              "not a list",
		"yes: ,\n":          "not a list",
		"\n\nno colon here": "line 3 is not a list",
	} {
		if _, err := parseLanguage("xx", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestWordsAreFew bounds what the choices of a word file stand for: each is written out, and kept for the life of the
// process. Two choices too many once made 380,000 phrases of two lines.
func TestWordsAreFew(t *testing.T) {
	const most, inAll = 3500, 120_000
	names, err := fs.Glob(wordFiles, "words/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, name := range names {
		text, err := fs.ReadFile(wordFiles, name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			for entry := range strings.SplitSeq(line, ",") {
				n := len(spelledOut(entry))
				all += n
				if n > most {
					t.Errorf("%s: %d phrases, more than %d: %s", name, n, most, entry)
				}
			}
		}
	}
	if all > inAll {
		t.Errorf("%d phrases in all, more than %d", all, inAll)
	}
}

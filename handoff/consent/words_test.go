package consent

import (
	"slices"
	"strings"
	"testing"
)

// TestWordFiles holds what a file of words may hold.
func TestWordFiles(t *testing.T) {
	l, err := parseLanguage("xx", "# Nonsense\n\nyes: Plim, plam plum\nno: zot\norder push: schub\nnumber 2: zwo\nname copy: kopie\n")
	if err != nil || len(l.phrases.does) != 3 || len(l.acts["push"].does) != 1 || len(l.numbers["2"]) != 1 || len(l.names["copy"]) != 1 {
		t.Errorf("%+v, %v", l, err)
	}
	for text, want := range map[string]string{
		"yes: a\nmaybe: b":  "line 2 begins a section",
		"order: b":          "line 1 begins a section",
		"order : b":         "line 1 begins a section",
		"a, b":              "not a list",
		"yes:":              "not a list",
		"\n\nno colon here": "line 3 is not a list",
	} {
		if _, err := parseLanguage("xx", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestFilesAreShort holds that every language has its file, with the words that ask again, short enough to be reviewed.
func TestFilesAreShort(t *testing.T) {
	if n := len(languages()); n != 17 {
		t.Errorf("%d languages", n)
	}
	for _, l := range languages() {
		text, err := wordFiles.ReadFile("words/" + l.code + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n > 150 {
			t.Errorf("%s has %d lines", l.code, n)
		}
		if l.again == "" || Read(l.again, Question{}) == Yes {
			t.Errorf("%s asks again with %q", l.code, l.again)
		}
	}
}

// TestChoices holds how a word file writes several phrases as one.
func TestChoices(t *testing.T) {
	got := phraseList("(it|They) may (|now )go, 好 吧, @は")
	if want := []string{"it may go", "it may now go", "they may go", "they may now go", "好吧", "@は"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	if got := phraseList("@ may (choice"); !slices.Equal(got, []string{"@ may (choice"}) {
		t.Errorf("%q", got)
	}
}

package consent

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
)

// TestWordFiles holds what a file of words may hold.
func TestWordFiles(t *testing.T) {
	l, err := parseLanguage("xx", `# Nonsense

yes: Plim, plam plum
no: zot
order push: schub
number 2: zwo
name copy: kopie
ending: de
means kill: zap
`, &listing{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := l.phrases.dump(), "plam plum 1\nplim 1\nzot 128\n"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	if got, want := l.acts["push"].dump(), "schub 3\n"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	got, want := fmt.Sprint(l.numbers, l.names, l.endings, l.means), "map[2:[zwo]] map[copy:[kopie]] [de] map[zap:kill]"
	if got != want {
		t.Errorf("%s, not %s", got, want)
	}
	for text, want := range map[string]string{
		"yes: a\nmaybe: b":                  "line 2 begins a section",
		"order: b":                          "line 1 begins a section",
		"order : b":                         "line 1 begins a section",
		"a, b":                              "not a list",
		"yes:":                              "not a list",
		"\n\nno colon here":                 "line 3 is not a list",
		"yes: " + strings.Repeat("a b", 99): "line 1 has a phrase of more than",
	} {
		if _, err := parseLanguage("xx", text, &listing{}); err == nil || !strings.Contains(err.Error(), want) {
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

// TestYesesHoldNoNo holds that no phrase that says yes, or orders an act, has a listed no or wait among its words: the
// longest phrase counts, so that it would be a yes. The few that begin so are none to anybody: "lass das laufen".
func TestYesesHoldNoNo(t *testing.T) {
	known := map[string][]string{
		"ar": {"لا باس", "لا مانع", "ابدا"}, "de": {"lass das", "lass es", "mach ne"}, "en": {"i dont mind"},
		"es": {"desde luego"}, "fr": {"pas de souci"}, "nl": {"laat het"}, "pl": {"nie ma sprawy"},
		"tr": {"benim icin sorun yok"},
	}
	for _, l := range languages() {
		vetoes := map[string]bool{}
		for phrase, does := range l.phrases.all() {
			vetoes[phrase] = does&(kindNo|kindWait) != 0
		}
		for act, table := range l.acts {
			for phrase, does := range table.all() {
				begins := func(with string) bool { return strings.HasPrefix(phrase, with+" ") || phrase == with }
				if does&(kindYes|kindAlone) == 0 || slices.ContainsFunc(known[l.code], begins) {
					continue
				}
				words := strings.Fields(phrase)
				for from := range words {
					for to := from + 1; to <= len(words); to++ {
						if no := strings.Join(words[from:to], " "); vetoes[no] {
							t.Errorf("%s: the yes %q (of the act %q) has the no %q in it", l.code, phrase, act, no)
						}
					}
				}
			}
		}
	}
}

// TestChoices holds how a word file writes several phrases as one.
func TestChoices(t *testing.T) {
	for list, want := range map[string][]string{
		"(it|They) may (|now )go, 好 吧, @は": {"it may go", "it may now go", "they may go", "they may now go", "好吧", "@は"},
		"@ may (choice":                    {"@ may (choice"},
		"a(@|b)c, , (|), d":                {"a @ c", "abc", "d"},
	} {
		var got []string
		for phrase := range phrasesOf(list) {
			got = append(got, string(phrase))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, not %q", list, got, want)
		}
	}
}

// all returns the phrases of a table.
func (t table) all() iter.Seq2[string, kind] {
	return func(yield func(string, kind) bool) {
		phrase := ""
		for data := t.data; len(data) > 0; {
			shared, does, rest, following := cut(data)
			phrase, data = phrase[:shared]+string(rest), following
			if !yield(phrase, does) {
				return
			}
		}
	}
}

// dump returns the phrases of a table, a line each, with what they do.
func (t table) dump() string {
	var out strings.Builder
	for phrase, does := range t.all() {
		_, _ = fmt.Fprintln(&out, phrase, int(does))
	}
	return out.String()
}

// TestTable holds that a table finds what it was given and nothing else, whatever its size.
func TestTable(t *testing.T) {
	for size := range 3*blockLength + 2 {
		var l listing
		for i := range size {
			l.add("", fmt.Appendf(nil, "go %d on", i), kindYes)
		}
		l.add("", []byte("go"), kindFill)
		l.add("", []byte("go"), kindYes)
		table := l.tables()[""]
		for i := range size {
			words := fmt.Sprintf("go %d on", i)
			if does, more := table.find(words); does != kindYes || more {
				t.Fatalf("%d: %q does %d, %t", size, words, does, more)
			}
			if does, more := table.find(words[:len(words)-1]); does != 0 || !more {
				t.Fatalf("%d: half of %q does %d, %t", size, words, does, more)
			}
			if does, more := table.find(words + "s"); does != 0 || more {
				t.Fatalf("%d: more than %q does %d, %t", size, words, does, more)
			}
		}
		if does, more := table.find("go"); does != kindFill|kindYes || more != (size > 0) {
			t.Fatalf("%d: %d, %t", size, does, more)
		}
		for _, words := range []string{"a", "z", ""} {
			if does, more := table.find(words); does != 0 || more != (words == "") {
				t.Fatalf("%d: %q does %d, %t", size, words, does, more)
			}
		}
	}
	if does, more := (table{}).find("go"); does != 0 || more {
		t.Error("an empty table has phrases")
	}
}

package handoff

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadReply reads answers in words and as lists; nil: they do not fit.
func TestReadReply(t *testing.T) {
	tabs := Ask{Text: "Tabs?", Options: []string{"Tabs", "Spaces"}, Only: true}
	open := Ask{Text: "Which branch?", Options: []string{"main", "dev"}}
	many := Ask{Text: "Which checks?", Options: []string{"lint", "unit tests", "unit tests and fuzzing", "e2e"}, Many: true, Only: true}
	own, may := many, tabs
	own.Only, may.Optional = false, true
	all := func(asks ...Ask) []Ask { return asks }
	for _, c := range []struct {
		name string
		asks []Ask
		give Reply
		want [][]string
	}{
		{"an option in other letters", all(tabs), Reply{Words: " tabs. "}, [][]string{{"Tabs"}}},
		{"no option", all(tabs), Reply{Words: "tabs or spaces"}, nil},
		{"a bare yes chooses nothing", all(tabs), Reply{Words: "yes"}, nil},
		{"nothing", all(tabs), Reply{Words: " "}, nil},
		{"words of one's own", all(open), Reply{Words: "the release branch"}, [][]string{{"the release branch"}}},
		{"several lines", all(open), Reply{Words: "a\nb"}, [][]string{{"a\nb"}}},
		{"several, said", all(many), Reply{Words: "lint and unit tests"}, [][]string{{"lint", "unit tests"}}},
		{"the longest name", all(many), Reply{Words: "E2E, unit tests and fuzzing"}, [][]string{{"e2e", "unit tests and fuzzing"}}},
		{"one of several", all(many), Reply{Words: "lint"}, [][]string{{"lint"}}},
		{"one twice", all(many), Reply{Words: "lint, lint"}, [][]string{{"lint"}}},
		{"but not this", all(many), Reply{Words: "lint and not e2e"}, nil},
		{"beside the list", all(own), Reply{Words: "lint and the spell check"}, [][]string{{"lint and the spell check"}}},
		{"a list", all(own), Reply{Answers: [][]string{{"lint", "my own"}}}, [][]string{{"lint", "my own"}}},
		{"two for one", all(open), Reply{Answers: [][]string{{"main", "dev"}}}, nil},
		{"two fields", all(tabs, open), Reply{Words: "spaces\nmain"}, [][]string{{"Spaces"}, {"main"}}},
		{"a field is missing", all(tabs, open), Reply{Words: "spaces"}, nil},
		{"left out", all(may, open), Reply{Words: "\nmain"}, [][]string{nil, {"main"}}},
		{"skipped", all(may, open), Reply{Words: "Skip that.\ndev"}, [][]string{nil, {"dev"}}},
		{"skipped in German", all(may, open), Reply{Words: "überspringen\ndev"}, [][]string{nil, {"dev"}}},
		{"what must be answered is not skipped", all(tabs, open), Reply{Words: "skip\ndev"}, nil},
		{"all left out", all(may, may), Reply{Answers: [][]string{nil, {}}}, nil},
		{"too many lists", all(tabs), Reply{Answers: [][]string{{"Tabs"}, {"Tabs"}}}, nil},
		{"without fields", nil, Reply{Words: "go on"}, [][]string{{"go on"}}},
	} {
		got, err := Question{Text: "?", Asks: c.asks}.Read(c.give)
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != (c.want == nil) ||
			err != nil && CodeOf(err) != CodeMalformed {
			t.Errorf("%s: %v\n%s", c.name, err, diff)
		}
	}
}

// FuzzReadReply: whatever is read can be read again, and has offered answers alone where nothing else counts.
func FuzzReadReply(f *testing.F) {
	f.Add("lint and e2e", "lint", "e2e", true, true)
	f.Add("yes, and", "yes", "yes, and", false, true)
	f.Fuzz(func(t *testing.T, words, one, two string, many, only bool) {
		q := Question{Text: "?", Asks: []Ask{{Text: "?", Options: []string{one, two}, Many: many, Only: only}}}
		read, err := q.Read(Reply{Words: words})
		if err != nil {
			return
		}
		if again, err := q.Read(Reply{Answers: read}); err != nil || !cmp.Equal(read, again) {
			t.Errorf("%q is %q, and that is %q, %v", words, read, again, err)
		}
		for _, answer := range read[0] {
			if only && answer != one && answer != two {
				t.Errorf("%q counts", answer)
			}
		}
	})
}

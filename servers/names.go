package servers

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"switchboard/handoff"
)

// maxSpoken bounds a spoken name, in bytes. A longer text is never a name.
const maxSpoken = 200

// articles are left out of a name first. Set once.
var articles = []string{"the", "my", "our", "a", "an"}

// serverFillers are words around a machine's name that do not distinguish machines. Set once.
var serverFillers = []string{
	"the", "my", "our", "a", "an", "on", "at", "in", "of", "machine", "server", "computer", "project", "repo",
	"repository", "please",
}

// sessionFillers are words around a session's name that do not distinguish sessions. Set once.
var sessionFillers = []string{
	"the", "my", "our", "a", "an", "on", "about", "one", "session", "thread", "conversation", "please", "point", "dot",
}

// apartFillers are words around the directory or branch that distinguishes sessions of the same title. Set once.
var apartFillers = append([]string{"in", "at", "from", "of", "/", "branch", "directory", "folder", "project"},
	sessionFillers...)

// words splits a name into lower-case words: runs of letters, runs of digits, and "/". Other characters separate words,
// except apostrophes, which are left out.
func words(name string) []string {
	var out []string
	var word strings.Builder
	kind := 0 // of the current word: 1 letters, 2 digits
	flush := func() {
		if word.Len() > 0 {
			out = append(out, word.String())
			word.Reset()
		}
		kind = 0
	}
	for _, r := range name {
		next := 0
		switch {
		case r == '/':
			flush()
			out = append(out, "/")
			continue
		case unicode.IsLetter(r) || unicode.IsMark(r):
			next = 1
		case unicode.IsDigit(r):
			next = 2
		default:
			if r == '\'' || r == '’' {
				continue // "dev's box"
			}
			flush()
			continue
		}
		if kind != next {
			flush()
			kind = next
		}
		word.WriteString(strings.ToLower(string(unicode.ToUpper(r))))
	}
	flush()
	return out
}

// digits replaces spoken numbers by digits: "twenty one" is 21.
func digits(in []string) []string {
	out := make([]string, 0, len(in))
	for i := 0; i < len(in); i++ {
		n, ok := numberWords[in[i]]
		if !ok {
			out = append(out, in[i])
			continue
		}
		if len(n) == 2 && n[1] == '0' && n != "10" && i+1 < len(in) {
			if unit := numberWords[in[i+1]]; len(unit) == 1 && unit != "0" {
				n = n[:1] + unit
				i++
			}
		}
		out = append(out, n)
	}
	return out
}

// without returns words without fillers, which may leave none.
func without(in, fillers []string) []string {
	return slices.DeleteFunc(slices.Clone(in), func(w string) bool { return slices.Contains(fillers, w) })
}

// keys returns the forms by which a name is found: joined words, with numbers as they were said and as digits.
func keys(in []string) []string {
	plain := strings.Join(in, "")
	if plain == "" {
		return nil
	}
	if figures := strings.Join(digits(in), ""); figures != plain {
		return []string{plain, figures}
	}
	return []string{plain}
}

// overlap reports whether two sets of keys share one.
func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(k string) bool { return slices.Contains(b, k) })
}

// distance counts insertions, deletions, substitutions and swaps of neighbours. If it is more than limit, it returns
// limit+1.
func distance(a, b []rune, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit+1)
}

// sayable shortens a text so that it can be spoken within a sentence.
func sayable(said string) string {
	const most = 60
	said = strings.Join(strings.FieldsFunc(said, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	return handoff.ClipRunes(strings.ToValidUTF8(said, ""), most)
}

// Bounds of a label.
const (
	labelMinWords = 2
	labelMaxWords = 7
	labelMaxRunes = 48
)

// label returns the first words of a title that can be spoken.
func label(title string) string {
	var picked []string
	length := 0
	for _, word := range strings.FieldsFunc(title,
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' && r != '\'' }) {
		word = strings.ToLower(strings.Trim(word, ".'"))
		if word == "" {
			continue
		}
		n := utf8.RuneCountInString(word)
		if len(picked) >= labelMaxWords || len(picked) >= labelMinWords && length+n > labelMaxRunes {
			break
		}
		if n > labelMaxRunes { // a path or a hash cannot be spoken
			word = string([]rune(word)[:labelMaxRunes])
		}
		picked = append(picked, word)
		length += n + 1
	}
	if len(picked) == 0 {
		return "untitled"
	}
	return strings.Join(picked, " ")
}

package spoken

import (
	"slices"
	"strings"
	"unicode"
)

// MaxName bounds a spoken name, in bytes. A longer text is never a name.
const MaxName = 200

// Articles are left out of a name first. Set once.
var Articles = []string{"the", "my", "our", "a", "an"}

// AroundMachines are words around a machine's name that do not distinguish machines. Set once.
var AroundMachines = []string{
	"the", "my", "our", "a", "an", "on", "at", "in", "of", "machine", "server", "computer", "project", "repo",
	"repository", "please",
}

// AroundSessions are words around a session's name that do not distinguish sessions. Set once.
var AroundSessions = []string{
	"the", "my", "our", "a", "an", "on", "about", "one", "session", "thread", "conversation", "please", "point", "dot",
}

// AroundPlaces are words around the directory or branch that distinguishes sessions of the same title. Set once.
var AroundPlaces = append([]string{"in", "at", "from", "of", "/", "branch", "directory", "folder", "project"},
	AroundSessions...)

// Words splits a name into lower-case words: runs of letters, runs of digits, and "/". Other characters separate words,
// except apostrophes, which are left out.
func Words(name string) []string {
	var out []string
	var word strings.Builder
	const none, letters, figures = 0, 1, 2
	kind := none // of the current word
	flush := func() {
		if word.Len() > 0 {
			out = append(out, word.String())
			word.Reset()
		}
		kind = none
	}
	for _, r := range name {
		next := none
		switch {
		case r == '/':
			flush()
			out = append(out, "/")
			continue
		case unicode.IsLetter(r) || unicode.IsMark(r):
			next = letters
		case unicode.IsDigit(r):
			next = figures
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
		word.WriteString(strings.ToLower(string(unicode.ToUpper(r)))) // "ſ" and "s" are one letter
	}
	flush()
	return out
}

// Digits replaces spoken numbers by digits: "twenty one" is 21.
func Digits(in []string) []string {
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

// Without returns words without fillers, which may leave none.
func Without(in, fillers []string) []string {
	return slices.DeleteFunc(slices.Clone(in), func(w string) bool { return slices.Contains(fillers, w) })
}

// Keys returns the forms by which a name is found: joined words, with numbers as they were said and as digits.
func Keys(in []string) []string {
	plain := strings.Join(in, "")
	if plain == "" {
		return nil
	}
	if figures := strings.Join(Digits(in), ""); figures != plain {
		return []string{plain, figures}
	}
	return []string{plain}
}

// Overlap reports whether two sets of keys share one.
func Overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(k string) bool { return slices.Contains(b, k) })
}

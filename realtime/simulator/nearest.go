package simulator

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// examples are the sentences that the brain names of what it knows, one of each kind. Set once.
var examples = []string{
	"Which machines do I have?", "What was I working on?", "Continue the auth session on bigpc and run the tests",
	"On bigpc, run the tests", "Run the benchmarks on bigpc", "Fix it", "On laptop, write the release notes",
	"Push it from bigpc", "Ask attic to check the backups", "After that, run the tests", "Continue this on laptop",
	"What is running?", "Stop the work", "Go on", "Drop it", "What can you do?",
}

// offered is how many sentences are offered for one that is not known.
const offered = 3

// nearest returns the examples that are most like a text, the most alike first. If none has anything in common with it,
// the first of all are as good.
func nearest(text string) []string {
	said := wordsIn(text)
	all := slices.Clone(examples)
	alike := map[string]float64{}
	for _, e := range all {
		alike[e] = likeness(said, wordsIn(e))
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(alike[b], alike[a]) })
	return all[:offered]
}

// wordsIn returns the words of a text in lower case, without those of one or two letters.
func wordsIn(text string) []string {
	all := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	return slices.DeleteFunc(all, func(word string) bool { return len(word) <= 2 })
}

// likeness returns how much the words of an example have in common with those that were said. A word that few examples
// have counts more, and so does an example with little else.
func likeness(said, example []string) float64 {
	common, others := 0.0, 0
	for _, word := range example {
		if !has(said, word) {
			others++
			continue
		}
		holders := 0
		for _, e := range examples {
			if has(wordsIn(e), word) {
				holders++
			}
		}
		common += 1 / float64(holders)
	}
	return common / (1 + float64(others)/10)
}

// has reports whether a word is among others, or begins with the same three letters as one.
func has(words []string, word string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		return w == word || len(w) > 3 && len(word) > 3 && w[:3] == word[:3]
	})
}

// offer says which sentences are nearest to one that is not known.
func offer(text string) string {
	return sayUnknown + " The nearest are: “" + strings.Join(nearest(text), "”, “") + "”."
}

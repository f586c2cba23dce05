package ledger

import (
	"slices"
	"strings"
	"unicode"
)

// maxSearchWords bounds the words of one search.
const maxSearchWords = 16

// SearchWords returns the words of a search, at most sixteen.
func SearchWords(search string) []string {
	all := Words(search)
	return all[:min(len(all), maxSearchWords)]
}

// EntryWords returns the words by which a search finds an entry.
func EntryWords(e Entry) []string {
	return Words(strings.Join([]string{e.Target.Server, e.Target.Project, e.Title, e.Prompt, e.Spoken}, " "))
}

// Found reports whether each word of a search is a prefix of a word of an entry.
func Found(entry, search []string) bool {
	for _, want := range search {
		if !slices.ContainsFunc(entry, func(word string) bool { return strings.HasPrefix(word, want) }) {
			return false
		}
	}
	return true
}

// Words returns the words of a text, made of letters and digits, in lower case. In scripts that are written without
// spaces each character is a word.
func Words(text string) []string {
	var all []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			all = append(all, word.String())
			word.Reset()
		}
	}
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
			end()
			all = append(all, string(r))
		case unicode.IsLetter(r), unicode.IsNumber(r), unicode.IsMark(r):
			word.WriteRune(unicode.ToLower(r))
		default:
			end()
		}
	}
	end()
	return all
}

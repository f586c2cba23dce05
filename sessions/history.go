package sessions

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// HistoryFor is how long history is kept by default.
const HistoryFor = 30 * 24 * time.Hour

// Kept returns how long history and threads are kept; a 0 stands for the default.
func Kept(history, threads time.Duration) (historyFor, threadsFor time.Duration) {
	historyFor = cmp.Or(history, HistoryFor)
	return historyFor, cmp.Or(threads, max(historyFor, ThreadsFor))
}

// A Mark is a position in a caller's history: when an entry became history, in Unix milliseconds, and the entry's key.
type Mark struct {
	At  int64
	Key string
}

// String returns the mark in the form that [ParseMark] reads.
func (m Mark) String() string { return strconv.FormatInt(m.At, 10) + "-" + m.Key }

// ParseMark parses a mark. It returns false for "".
func ParseMark(text string) (Mark, bool, error) {
	if text == "" {
		return Mark{}, false, nil
	}
	at, key, found := strings.Cut(text, "-")
	n, err := strconv.ParseInt(at, 10, 64)
	if !found || err != nil {
		return Mark{}, false, handoff.Fault(handoff.CodeMalformed, "no such page of the history", "")
	}
	return Mark{At: n, Key: key}, true, nil
}

// PageSize returns how many entries a page of a query has at most.
func PageSize(q ledger.HistoryQuery) int {
	if q.Limit <= 0 || q.Limit > ledger.MaxHistoryPage {
		return ledger.MaxHistoryPage
	}
	return q.Limit
}

// maxSearchWords bounds the words of one search.
const maxSearchWords = 16

// SearchWords returns the words of a search, at most sixteen.
func SearchWords(search string) []string {
	all := words(search)
	return all[:min(len(all), maxSearchWords)]
}

// EntryWords returns the words by which a search finds an entry.
func EntryWords(e ledger.Entry) []string {
	return words(strings.Join([]string{e.Target.Server, e.Target.Project, e.Title, e.Prompt, e.Spoken}, " "))
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

// words returns the words of a text, made of letters and digits, in lower case. In scripts that are written without
// spaces each character is a word.
func words(text string) []string {
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

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

// HistoryFor is how long history is kept unless a store is told otherwise.
const HistoryFor = 30 * 24 * time.Hour

// Kept returns how long history and threads are kept, where 0 means the usual.
func Kept(history, threads time.Duration) (historyFor, threadsFor time.Duration) {
	historyFor = cmp.Or(history, HistoryFor)
	return historyFor, cmp.Or(threads, max(historyFor, ThreadsFor))
}

// A Mark is a place in a caller's history: when an entry became history, in Unix milliseconds, and its key.
type Mark struct {
	At  int64
	Key string
}

// String gives the mark as callers hand it back.
func (m Mark) String() string { return strconv.FormatInt(m.At, 10) + "-" + m.Key }

// ParseMark reads a mark; "" is none, and false.
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

// PageSize is how many entries a query gets.
func PageSize(q ledger.HistoryQuery) int {
	if q.Limit <= 0 || q.Limit > ledger.MaxHistoryPage {
		return ledger.MaxHistoryPage
	}
	return q.Limit
}

// maxSearchWords bounds what one search compares.
const maxSearchWords = 16

// SearchWords are the words that a search asks for, at most sixteen.
func SearchWords(search string) []string {
	all := words(search)
	return all[:min(len(all), maxSearchWords)]
}

// EntryWords are the words under which an entry is found.
func EntryWords(e ledger.Entry) []string {
	return words(strings.Join([]string{e.Target.Server, e.Target.Project, e.Title, e.Prompt, e.Spoken}, " "))
}

// Found reports whether each word of a search begins a word of an entry.
func Found(entry, search []string) bool {
	for _, want := range search {
		if !slices.ContainsFunc(entry, func(word string) bool { return strings.HasPrefix(word, want) }) {
			return false
		}
	}
	return true
}

// words cuts a text into words of letters and digits in lower case. Languages that are written without
// spaces give a word for each character.
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

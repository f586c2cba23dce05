package sessions

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// HistoryFor is how long history is kept by default.
const HistoryFor = 30 * 24 * time.Hour

// ThreadsFor is how long a thread of our own agent is kept after its last turn, unless history is kept longer: as long
// as a sticky or a response id may still name the thread. A thread that was copied is kept as long as its copies.
const ThreadsFor = ledger.StickyFor

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

package ledger

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
)

// A State is what a store keeps of a caller, except texts and the past.
type State struct {
	Version   string            // of the last batch; "": nothing is kept
	Documents map[string]string // by name: open handoffs, see [HandoffDoc], and current threads, see [StickyDoc]
}

// A Batch is a change of what is kept of one caller.
type Batch struct {
	Was string // the Version of the state that it was decided from
	// Now is the Version of the state after it, never used before.
	Now string
	// For is how long the documents are kept if no batch comes after this one; 0: for ever.
	For time.Duration

	Put  map[string]string // documents, by name
	Drop []string          // names of documents

	Changed []Changed // what is kept apart of some handoffs
	// Promise means that somebody is told, or something is started, because this is written: it must not be lost with
	// one machine of the store.
	Promise bool
}

// Changed is a change of what is kept of one handoff beside its document.
type Changed struct {
	Key string
	// Free makes the commit fail with [NotFree] if the handoff is in the past.
	Free bool
	// Clear drops its texts and its past first.
	Clear bool
	Texts map[string]string // parts of its texts; an empty text drops the part
	Past  *Past             // it is over: its row is made or replaced; nil: it is not over

	Owned Owned     // the owner of a thread that was made for it; the first owner stays. Zero: none
	At    time.Time // when the thread was made
}

// A Committed says what became of a batch.
type Committed int

// The results. Only [Written] changes anything.
const (
	Written Committed = iota
	Outdated
	NotFree
)

// A Past is a handoff that is over, as one row of the history.
type Past struct {
	Key    string   // of the handoff
	At     int64    // when it became history, in Unix milliseconds
	Row    string   // its content
	Words  []string // by which a search finds it
	Unkept bool     // it stands on no page, and is kept for [KeyFor] only
}

// HandoffDoc begins the name of the document of a handoff that is not history; its key follows.
const HandoffDoc = "handoff:"

// The parts of the texts of a handoff.
const (
	PartPrompt  = "prompt"
	PartText    = "text"
	PartDid     = "did"
	PartRequest = "request"
)

// DecodeEntry returns the entry of a document, or of a row of the past.
func DecodeEntry(text string) (Entry, error) {
	var e Entry
	err := json.Unmarshal([]byte(text), &e)
	if err != nil || e.Key == "" || e.Owner == "" || e.Caller.Principal == "" || e.Status == "" || e.Accepted.IsZero() {
		return Entry{}, handoff.Fault(handoff.CodeInternal, "", "an entry of the ledger cannot be read")
	}
	return e, nil
}

// Entries returns the entries of a caller's documents, the oldest first. bad is told of each document that is left out,
// since it cannot be read: one bad entry must not hide the others.
func Entries(docs map[string]string, bad func(name string)) []Entry {
	all := []Entry{}
	for name, text := range docs {
		if !strings.HasPrefix(name, HandoffDoc) {
			continue
		}
		e, err := DecodeEntry(text)
		if err != nil {
			bad(name)
			continue
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(a.Accepted.Compare(b.Accepted), cmp.Compare(a.Key, b.Key))
	})
	return all
}

// Millis returns a time as entries have it: in UTC, in whole milliseconds.
func Millis(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).UTC() }

// Row returns the entry as a row of the history, which it became at a time.
func (e Entry) Row(at time.Time) Past {
	row := Past{Key: e.Key, At: at.UnixMilli(), Row: handoff.Encode(e), Unkept: e.Unkept}
	if !e.Unkept {
		row.Words = EntryWords(e)
	}
	return row
}

package sessions

import (
	"context"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// Callers keeps what is remembered of each caller. It decides nothing: a caller has one writer, who reads the state,
// decides, and commits what changed. Implementations are safe for concurrent use.
type Callers interface {
	// State returns what is kept of a caller, except parts of texts and the past.
	State(ctx context.Context, c handoff.Caller) (State, error)
	// Commit writes a batch whole or not at all. After an error with code unreachable it is not known whether the batch
	// was written. After another life of the service, or another instance, has taken the caller, the code is shutdown.
	Commit(ctx context.Context, c handoff.Caller, b Batch) (Committed, error)
	// Waiting returns the state of each caller of this life with a document that begins with the prefix. A life that
	// uses the store alone takes over the callers of the lives before it.
	Waiting(ctx context.Context, prefix string) (map[handoff.Caller]State, error)
}

// A State is what is kept of a caller.
type State struct {
	Version   string            // of the last batch; "": nothing is kept
	Documents map[string]string // by name
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

	// Texts are parts of the texts of a handoff, which are read apart; an empty text drops the part. With Clear, the
	// parts and the past of the handoff are dropped before.
	Key   string // of the handoff; "": the batch has none of the following
	Clear bool
	Texts map[string]string
	// Free makes the commit fail with [NotFree] if the handoff is in the past.
	Free bool
	Past []Past // handoffs that are over, made or replaced

	Owned ledger.Owned // the owner of a thread that was made; the first owner stays. Zero: none
	At    time.Time    // when the thread was made
	// Promise means that somebody is told, or something is started, because this is written: it must not be lost with
	// one machine of the store.
	Promise bool
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
	Key    string
	At     int64    // when it became history, in Unix milliseconds
	Row    string   // its content
	Words  []string // by which a search finds it
	Unkept bool     // it stands on no page, and is kept for [ledger.KeyFor] only
}

// A Pages has the past of callers.
type Pages interface {
	// Past returns the row of a handoff that is over; false if there is none.
	Past(ctx context.Context, c handoff.Caller, key string) (Past, bool, error)
	// Page returns rows, the newest first, and where the next page begins; "" on the last page.
	Page(ctx context.Context, c handoff.Caller, q PageQuery) (rows []Past, next string, err error)
	// Texts returns the parts of the texts of a handoff, by name.
	Texts(ctx context.Context, c handoff.Caller, key string) (map[string]string, error)
}

// A PageQuery narrows a page.
type PageQuery struct {
	Before string                // from the page before; "": the newest
	Words  []string              // each is the beginning of a word of the row
	Found  func(row string) bool // reports the same, for a store without an index
	Limit  int
}

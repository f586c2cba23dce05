package sessions

import (
	"context"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// Bounds of stored conversations.
const (
	MaxSaidText  = 4 << 10 // bytes of a line; the rest is cut off
	MaxSaidLines = 5000    // of one caller; beyond it the oldest are dropped
	MaxSaidPage  = 100     // lines in one read or write
)

// WhoCall is the Who of a line that Switchboard wrote about a call that is over. A page cannot write such a line.
const WhoCall = "call"

// A Said is one line of a caller's conversations.
type Said struct {
	ID   string    `json:"id"` // a second line with the same id is ignored
	At   time.Time `json:"at"`
	Who  string    `json:"who"` // you, voice or [WhoCall]
	Text string    `json:"text"`
}

// Bounded returns the line as it is stored: with a time in milliseconds and a text of at most [MaxSaidText].
func (l Said) Bounded() Said {
	l.At, l.Text = l.At.UTC().Truncate(time.Millisecond), handoff.Clip(l.Text, MaxSaidText)
	return l
}

// SaidQuery narrows a page of conversations; see [ledger.SearchWords] for Search.
type SaidQuery struct {
	Search string
	Limit  int    // at most [MaxSaidPage], the default
	Before string // Next of the page before; "" for the newest page
}

// Size returns how many lines a page of the query has at most.
func (q SaidQuery) Size() int {
	if q.Limit <= 0 || q.Limit > MaxSaidPage {
		return MaxSaidPage
	}
	return q.Limit
}

// A SaidPage is a page of lines, newest first.
type SaidPage struct {
	Lines []Said
	Next  string // Before of the next page, which may be empty; "" on the last page
}

// Conversations stores what was said and heard, as long as history is kept.
type Conversations interface {
	AddSaid(ctx context.Context, c handoff.Caller, lines []Said) error
	Said(ctx context.Context, c handoff.Caller, q SaidQuery) (SaidPage, error)
	DropSaid(ctx context.Context, c handoff.Caller) error
}

// SaidWords returns the words by which a search finds a line.
func SaidWords(l Said) []string { return ledger.Words(l.Text) }

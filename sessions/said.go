package sessions

import (
	"context"
	"time"

	"switchboard/handoff"
)

// Bounds of what is kept of conversations.
const (
	MaxSaidText  = 4 << 10 // bytes of a line; the rest is cut
	MaxSaidLines = 5000    // of one caller; the oldest go
	MaxSaidPage  = 100     // lines that are given or taken at once
)

// WhoCall is the Who of a line that tells of a call which is over; no page makes one.
const WhoCall = "call"

// A Said is one line of a caller's conversations.
type Said struct {
	ID   string    `json:"id"` // the same line twice is kept once
	At   time.Time `json:"at"`
	Who  string    `json:"who"` // you, voice or [WhoCall]
	Text string    `json:"text"`
}

// Bounded is the line as it is kept: to the millisecond.
func (l Said) Bounded() Said {
	l.At, l.Text = l.At.UTC().Truncate(time.Millisecond), handoff.Clip(l.Text, MaxSaidText)
	return l
}

// SaidQuery narrows a page of conversations; see [SearchWords] for Search.
type SaidQuery struct {
	Search string
	Limit  int    // at most [MaxSaidPage]; 0 is that many
	Before string // from the page before; "": the newest
}

// Size is how many lines a query gets.
func (q SaidQuery) Size() int {
	if q.Limit <= 0 || q.Limit > MaxSaidPage {
		return MaxSaidPage
	}
	return q.Limit
}

// A SaidPage is some lines, newest first.
type SaidPage struct {
	Lines []Said
	Next  string // asks for the page after this one, which may be empty; "": there is none
}

// Conversations keep what was said and heard, as long as history is kept.
type Conversations interface {
	AddSaid(ctx context.Context, c handoff.Caller, lines []Said) error
	Said(ctx context.Context, c handoff.Caller, q SaidQuery) (SaidPage, error)
	DropSaid(ctx context.Context, c handoff.Caller) error
}

// SaidWords are the words under which a line is found.
func SaidWords(l Said) []string { return words(l.Text) }

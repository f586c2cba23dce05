package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"switchboard/handoff"
)

// BrokenFor is how long after a broken-off call the next call is told about it.
const BrokenFor = 24 * time.Hour

const (
	// brokenID is the id of the caller's document about the call that is open or broke off.
	brokenID = "call: the last one"
	// maxBrokenLines is how many of the last lines of a call are kept or read.
	maxBrokenLines = 12
	// maxBroken bounds the callers whose last lines are in memory; beyond it all of them are dropped.
	maxBroken = 1000
	// saidLate is how long after the end of a call its last line may arrive.
	saidLate = 10 * time.Second
)

// BrokenCalls remembers calls that ended against their caller's will. The store keeps only the times of a call. This
// process keeps the last lines in memory; after a restart they are read from the caller's conversations, as far as
// those are kept. Its methods may be used from any goroutine.
type BrokenCalls struct {
	documents     Documents     // Set once
	conversations Conversations // Set once

	mu     sync.Mutex
	open   map[handoff.Caller]int                // Guarded by mu: how many calls are open in this process
	lines  map[handoff.Caller][]handoff.SaidLine // Guarded by mu: the last lines of calls that broke off in this process
	unread map[handoff.Caller]bool               // Guarded by mu: the document of the call before could not be read
}

// NewBrokenCalls returns a memory over the documents and conversations of a store.
func NewBrokenCalls(d Documents, c Conversations) *BrokenCalls {
	return &BrokenCalls{documents: d, conversations: c, open: map[handoff.Caller]int{},
		lines: map[handoff.Caller][]handoff.SaidLine{}, unread: map[handoff.Caller]bool{}}
}

// brokenTimes is the body of the document.
type brokenTimes struct {
	Began time.Time  `json:"began"`
	Ended *time.Time `json:"ended,omitempty"` // nil while the call is open, and if the process died during it
}

// Begin notes that a call began, and returns the call before it if that one broke off; with an error it may be
// incomplete. If the store cannot be read, the broken call is kept for the call after this one.
func (b *BrokenCalls) Begin(ctx context.Context, c handoff.Caller, began time.Time) (handoff.BrokenCall, bool, error) {
	b.mu.Lock()
	others, lines := b.open[c], b.lines[c]
	b.open[c]++
	b.mu.Unlock()
	d, there, err := b.documents.Document(ctx, c, brokenID)
	b.mu.Lock()
	if err == nil {
		delete(b.lines, c)
		delete(b.unread, c)
	} else if others == 0 {
		b.unread[c] = true
	}
	b.mu.Unlock()
	if err != nil {
		return handoff.BrokenCall{}, false, err
	}
	errPut := b.put(ctx, c, brokenTimes{Began: began})
	var last brokenTimes
	if !there || json.Unmarshal(d.Body, &last) != nil || last.Ended == nil && others > 0 {
		return handoff.BrokenCall{}, false, errPut
	}
	broken := handoff.BrokenCall{Began: last.Began, Lines: lines}
	if last.Ended != nil {
		broken.Ended = *last.Ended
	}
	if lines == nil {
		broken.Lines, err = b.said(ctx, c, broken)
	}
	return broken, true, errors.Join(errPut, err)
}

// said returns the last lines of a call out of the caller's conversations.
func (b *BrokenCalls) said(ctx context.Context, c handoff.Caller, call handoff.BrokenCall) ([]handoff.SaidLine, error) {
	page, err := b.conversations.Said(ctx, c, SaidQuery{})
	var lines []handoff.SaidLine
	for _, l := range page.Lines {
		late := !call.Ended.IsZero() && l.At.After(call.Ended.Add(saidLate))
		if !late && l.Who != WhoCall && !l.At.Before(call.Began.Truncate(time.Millisecond)) && len(lines) < maxBrokenLines {
			lines = append(lines, handoff.SaidLine{Caller: l.Who == "you", Text: l.Text})
		}
	}
	slices.Reverse(lines)
	return lines, err
}

// End notes that a call ended; broken is nil if it ended as its caller wanted.
func (b *BrokenCalls) End(ctx context.Context, c handoff.Caller, broken *handoff.BrokenCall) error {
	b.mu.Lock()
	if b.open[c]--; b.open[c] <= 0 {
		delete(b.open, c)
	}
	others, unread := b.open[c], b.unread[c]
	if broken != nil {
		lines := slices.Clone(broken.Lines)
		if unread {
			lines = slices.Concat(b.lines[c], lines)
		}
		if len(b.lines) >= maxBroken {
			clear(b.lines)
		}
		b.lines[c] = lines[max(0, len(lines)-maxBrokenLines):]
	}
	if broken != nil || others == 0 {
		delete(b.unread, c)
	}
	b.mu.Unlock()
	switch {
	case broken != nil:
		return b.put(ctx, c, brokenTimes{Began: broken.Began, Ended: &broken.Ended})
	case others > 0, unread:
		return nil
	}
	_, err := b.documents.DropDocument(ctx, c, brokenID)
	return err
}

// Forget drops the lines of a caller that are in memory.
func (b *BrokenCalls) Forget(c handoff.Caller) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.lines, c)
}

func (b *BrokenCalls) put(ctx context.Context, c handoff.Caller, times brokenTimes) error {
	return b.documents.PutDocument(ctx, Document{Owner: c, ID: brokenID, Body: []byte(handoff.Encode(times)),
		Ends: time.Now().Add(BrokenFor)})
}

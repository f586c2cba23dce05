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

// BrokenFor is how long a call that broke off is told of.
const BrokenFor = 24 * time.Hour

const (
	// brokenID names the document of a caller: the call that is open, or broke off.
	brokenID = "call: the last one"
	// maxBrokenLines is how many lines are read from history.
	maxBrokenLines = 12
	// maxBroken is how many callers' last words are known beside history; the others' are not any more.
	maxBroken = 1000
	// saidLate is how long after a call its last line may be told.
	saidLate = 10 * time.Second
)

// BrokenCalls remembers calls that ended without their caller's will. The store has when that was, and no words: after
// a restart those are read from the caller's conversations, as far as they are kept there. This process knows them by
// itself. Its methods may be used from any goroutine.
type BrokenCalls struct {
	documents     Documents     // Set once
	conversations Conversations // Set once

	mu     sync.Mutex
	open   map[handoff.Caller]int                // Guarded by mu: calls that are open in this process
	words  map[handoff.Caller][]handoff.SaidLine // Guarded by mu: of calls that broke off in this process
	unread map[handoff.Caller]bool               // Guarded by mu: what an earlier call left could not be read
}

// NewBrokenCalls returns the memory of a store.
func NewBrokenCalls(d Documents, c Conversations) *BrokenCalls {
	return &BrokenCalls{documents: d, conversations: c, open: map[handoff.Caller]int{},
		words: map[handoff.Caller][]handoff.SaidLine{}, unread: map[handoff.Caller]bool{}}
}

// brokenTimes is the document.
type brokenTimes struct {
	Began time.Time  `json:"began"`
	Ended *time.Time `json:"ended,omitempty"` // nil: the call is open, or the process ended with it
}

// Begin notes that a call is open, and takes what is known of the last one that broke off; with an error perhaps not
// all of it. Where the store does not tell of that one, it is left to the call after this.
func (b *BrokenCalls) Begin(ctx context.Context, c handoff.Caller, began time.Time) (handoff.BrokenCall, bool, error) {
	b.mu.Lock()
	others, words := b.open[c], b.words[c]
	b.open[c]++
	b.mu.Unlock()
	d, there, err := b.documents.Document(ctx, c, brokenID)
	b.mu.Lock()
	if err == nil {
		delete(b.words, c)
		delete(b.unread, c)
	} else if others == 0 {
		b.unread[c] = true
	}
	b.mu.Unlock()
	if err != nil {
		return handoff.BrokenCall{}, false, err
	}
	unkept := b.put(ctx, c, brokenTimes{Began: began})
	var last brokenTimes
	if !there || json.Unmarshal(d.Body, &last) != nil || last.Ended == nil && others > 0 {
		return handoff.BrokenCall{}, false, unkept
	}
	broken := handoff.BrokenCall{Began: last.Began, Lines: words}
	if last.Ended != nil {
		broken.Ended = *last.Ended
	}
	if words == nil {
		broken.Lines, err = b.said(ctx, c, broken)
	}
	return broken, true, errors.Join(unkept, err)
}

// said reads the last lines of a call from the caller's conversations.
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

// End notes how a call ended: nil by the caller's will.
func (b *BrokenCalls) End(ctx context.Context, c handoff.Caller, broken *handoff.BrokenCall) error {
	b.mu.Lock()
	if b.open[c]--; b.open[c] <= 0 {
		delete(b.open, c)
	}
	others, unread := b.open[c], b.unread[c]
	if broken != nil {
		lines := slices.Clone(broken.Lines)
		if unread {
			lines = slices.Concat(b.words[c], lines)
		}
		if len(b.words) >= maxBroken {
			clear(b.words)
		}
		b.words[c] = lines[max(0, len(lines)-maxBrokenLines):]
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

// Forget forgets the words that this process knows of a caller.
func (b *BrokenCalls) Forget(c handoff.Caller) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.words, c)
}

func (b *BrokenCalls) put(ctx context.Context, c handoff.Caller, times brokenTimes) error {
	body, err := json.Marshal(times)
	if err != nil {
		return handoff.Fault(handoff.CodeInternal, "", err.Error())
	}
	return b.documents.PutDocument(ctx, Document{Owner: c, ID: brokenID, Body: body, Ends: time.Now().Add(BrokenFor)})
}

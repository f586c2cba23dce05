package turns

import (
	"slices"
	"sync/atomic"

	"switchboard/handoff"
)

// Bounds of what is kept of turns until somebody reads it.
const (
	// From here on deltas are dropped, those already kept first. They are advisory: the finished item has
	// the whole text. A slow reader must never stop the connection, because then the server would queue
	// for every thread on it.
	softUpdates = 1024
	SoftBytes   = 1 << 20
	// From here on the turn is given up: its follower gets an error and may look at the thread. Everything
	// left is worth more than a delta and is never dropped singly.
	HardUpdates = 8192
	hardBytes   = 8 << 20
	// MaxHeld bounds the updates of all turns of one [Tally] that nobody has read, in bytes. From there on, a turn
	// that has more than its share (SoftBytes) is given up.
	MaxHeld = 64 << 20
)

// maxJoined bounds the deltas that are joined into one, in bytes.
const maxJoined = 16 << 10

// A Tally counts what the buffers of one connection left out and hold. It is safe for concurrent use.
type Tally struct {
	GivenUp atomic.Uint64 // turns given up because nobody read them
	Deltas  atomic.Uint64 // deltas dropped because nobody read them
	Bytes   atomic.Int64  // of updates that nobody has read
}

// A Buffer keeps the updates of one turn in order until they are read. The zero value is an empty one without a
// tally, for whose updates nobody can wait.
type Buffer struct {
	queue  []handoff.Update
	bytes  int
	deltas int             // in queue
	holed  map[string]bool // items of which a delta was dropped: what follows would read wrong
	burst  bool            // given up
	tally  *Tally          // Set once: of the connection; nil: none
	wake   chan struct{}   // Set once, holds one: something changed
}

// NewBuffer returns an empty buffer that counts with others; nil: by itself.
func NewBuffer(t *Tally) Buffer { return Buffer{tally: t, wake: make(chan struct{}, 1)} }

// Awake gives a token when there may be something to take, or the turn was given up. It may be waited for while others
// use the buffer.
func (b *Buffer) Awake() <-chan struct{} { return b.wake }

// Wake has whoever waits look.
func (b *Buffer) Wake() {
	select {
	case b.wake <- struct{}{}:
	default: // it is about to
	}
}

// add counts bytes, which may be less than 0.
func (b *Buffer) add(n int) {
	b.bytes += n
	if b.tally != nil {
		b.tally.Bytes.Add(int64(n))
	}
}

// overflows reports whether the turn holds more than it may.
func (b *Buffer) overflows() bool {
	return len(b.queue) > HardUpdates || b.bytes > hardBytes ||
		b.tally != nil && b.bytes > SoftBytes && b.tally.Bytes.Load() > MaxHeld
}

// Drop lets go of everything. Who follows the turn gets an error.
func (b *Buffer) Drop() {
	b.add(-b.bytes)
	b.queue, b.deltas, b.holed, b.burst = nil, 0, nil, true
	b.Wake()
}

// bound gives the turn up if it holds more than it may.
func (b *Buffer) bound() {
	if !b.overflows() {
		return
	}
	b.Drop()
	if b.tally != nil {
		b.tally.GivenUp.Add(1)
	}
}

// Put appends updates.
func (b *Buffer) Put(updates ...handoff.Update) {
	for _, u := range updates {
		b.putOne(u)
	}
	b.Wake()
}

func (b *Buffer) putOne(u handoff.Update) {
	if b.burst {
		return
	}
	d, isDelta := u.(handoff.Delta)
	full := len(b.queue) >= softUpdates || b.bytes >= SoftBytes
	switch {
	case isDelta && (full || b.holed[d.ItemID]):
		b.hole(d.ItemID)
		return
	case isDelta && b.join(d):
		return
	case isDelta:
		b.deltas++
	case full && b.deltas > 0:
		b.dropDeltas()
	}
	b.queue = append(b.queue, u)
	b.add(weight(u))
	b.bound()
}

// PutFirst puts updates before all others, but after the beginning of the turn. Nothing of the turn has
// been taken yet, and they are few.
func (b *Buffer) PutFirst(updates ...handoff.Update) {
	if b.burst {
		return
	}
	at := 0
	if len(b.queue) > 0 {
		if _, begins := b.queue[0].(handoff.Started); begins {
			at = 1
		}
	}
	b.queue = slices.Insert(b.queue, at, updates...)
	for _, u := range updates {
		b.add(weight(u))
	}
	b.bound()
}

// Reword gives the end of the turn, which is the last update, the words that were read since.
func (b *Buffer) Reword(text string) {
	if len(b.queue) == 0 {
		return
	}
	if end, ok := b.queue[len(b.queue)-1].(handoff.TurnEnded); ok {
		b.add(len(text) - len(end.Text))
		end.Text = text
		b.queue[len(b.queue)-1] = end
	}
}

// Clear lets go of everything that was not read.
func (b *Buffer) Clear() {
	b.add(-b.bytes)
	b.queue, b.deltas = nil, 0
}

// Len is how many updates were not read.
func (b *Buffer) Len() int { return len(b.queue) }

// Lost reports whether the turn was given up: what comes from now on is left out.
func (b *Buffer) Lost() bool { return b.burst }

// join appends a delta to the one before it when nobody has read that yet.
func (b *Buffer) join(d handoff.Delta) bool {
	if len(b.queue) == 0 {
		return false
	}
	last, ok := b.queue[len(b.queue)-1].(handoff.Delta)
	if !ok || last.ItemID != d.ItemID || len(last.Text)+len(d.Text) > maxJoined {
		return false
	}
	last.Text += d.Text
	b.queue[len(b.queue)-1] = last
	b.add(len(d.Text))
	return true
}

// dropDeltas removes all deltas.
func (b *Buffer) dropDeltas() {
	kept := b.queue[:0]
	for _, u := range b.queue {
		if d, ok := u.(handoff.Delta); ok {
			b.add(-weight(d))
			b.hole(d.ItemID)
			continue
		}
		kept = append(kept, u)
	}
	clear(b.queue[len(kept):])
	b.queue, b.deltas = kept, 0
}

func (b *Buffer) hole(item string) {
	if b.holed == nil {
		b.holed = map[string]bool{}
	}
	b.holed[item] = true
	if b.tally != nil {
		b.tally.Deltas.Add(1)
	}
}

// Take removes the oldest update.
func (b *Buffer) Take() (handoff.Update, bool) {
	if len(b.queue) == 0 {
		return nil, false
	}
	u := b.queue[0]
	b.queue[0] = nil
	b.queue = b.queue[1:]
	b.add(-weight(u))
	if _, ok := u.(handoff.Delta); ok {
		b.deltas--
	}
	return u, true
}

// weight estimates the memory of an update, in bytes.
func weight(u handoff.Update) int {
	const base = 64
	switch u := u.(type) {
	case handoff.Delta:
		return base + len(u.Text)
	case handoff.ItemStarted:
		return base + len(u.Item.Text) + len(u.Item.Arguments) + len(u.Item.Output)
	case handoff.ItemDone:
		return base + len(u.Item.Text) + len(u.Item.Arguments) + len(u.Item.Output)
	case handoff.Question:
		return base + len(u.Text) + len(u.Command) + len(u.Reason) + sizeOf(u.Changes)
	case handoff.TurnEnded:
		return base + len(u.Text)
	}
	return base
}

func sizeOf(texts []string) int {
	n := 0
	for _, text := range texts {
		n += len(text)
	}
	return n
}

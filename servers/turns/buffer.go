package turns

import (
	"slices"
	"sync/atomic"

	"switchboard/handoff"
)

// Bounds of updates that are not read yet.
const (
	// softUpdates and SoftBytes bound a turn's updates beyond which its deltas are dropped, those in the buffer first.
	// Deltas are advisory: the finished item has the whole text. A slow reader must never stop the connection, because
	// then the server would queue for every thread on it.
	softUpdates = 1024
	SoftBytes   = 1 << 20
	// HardUpdates and hardBytes bound a turn's updates beyond which the turn is given up: its follower gets an error
	// and may read the thread. Updates other than deltas are never dropped one by one.
	HardUpdates = 8192
	hardBytes   = 8 << 20
	// MaxHeld bounds the updates of all turns of one [Tally], in bytes. Beyond it, a turn with more than SoftBytes is
	// given up.
	MaxHeld = 64 << 20
)

// maxJoined bounds the deltas that are joined into one, in bytes.
const maxJoined = 16 << 10

// A Tally has the counters of all buffers of one connection. It is safe for concurrent use.
type Tally struct {
	GivenUp atomic.Uint64 // turns that were given up
	Deltas  atomic.Uint64 // deltas that were dropped
	Bytes   atomic.Int64  // of updates that are not read yet
}

// A Buffer keeps the updates of one turn in order until they are read. The zero value is an empty buffer without a
// tally, which never gives a token for [Buffer.Awake].
type Buffer struct {
	queue  []handoff.Update
	bytes  int
	deltas int             // in queue
	holed  map[string]bool // items of which a delta was dropped: their further deltas are dropped too
	burst  bool            // the turn was given up
	tally  *Tally          // Set once: of the connection; nil: none
	wake   chan struct{}   // Set once: has a token after a change
}

// NewBuffer returns an empty buffer that counts in t, which may be nil.
func NewBuffer(t *Tally) Buffer { return Buffer{tally: t, wake: make(chan struct{}, 1)} }

// Awake returns a channel that has a token when there may be an update, or the turn was given up. It is safe to receive
// from it while others use the buffer.
func (b *Buffer) Awake() <-chan struct{} { return b.wake }

// Wake puts a token into the channel of Awake.
func (b *Buffer) Wake() {
	select {
	case b.wake <- struct{}{}:
	default: // a token is there already
	}
}

// add adds to the counts of bytes. n may be negative.
func (b *Buffer) add(n int) {
	b.bytes += n
	if b.tally != nil {
		b.tally.Bytes.Add(int64(n))
	}
}

// Drop drops all updates, and gives the turn up: its follower gets an error.
func (b *Buffer) Drop() {
	b.add(-b.bytes)
	b.queue, b.deltas, b.holed, b.burst = nil, 0, nil, true
	b.Wake()
}

// bound gives the turn up if the buffer is beyond its hard bounds.
func (b *Buffer) bound() {
	if len(b.queue) <= HardUpdates && b.bytes <= hardBytes &&
		(b.tally == nil || b.bytes <= SoftBytes || b.tally.Bytes.Load() <= MaxHeld) {
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

// PutFirst inserts a few updates before all others, but after Started. No update may have been taken yet.
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

// Reword replaces the text of the end of the turn, if that is the last update.
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

// Clear drops all updates, without giving the turn up.
func (b *Buffer) Clear() {
	b.add(-b.bytes)
	b.queue, b.deltas = nil, 0
}

// Len returns the number of updates that are not read yet.
func (b *Buffer) Len() int { return len(b.queue) }

// Lost reports whether the turn was given up: further updates are dropped.
func (b *Buffer) Lost() bool { return b.burst }

// join appends a delta to the last update, if that is a delta of the same item.
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

// hole notes that a delta of an item was dropped.
func (b *Buffer) hole(item string) {
	if b.holed == nil {
		b.holed = map[string]bool{}
	}
	b.holed[item] = true
	if b.tally != nil {
		b.tally.Deltas.Add(1)
	}
}

// Take removes and returns the oldest update; false: there is none.
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
		return base + itemWeight(&u.Item)
	case handoff.ItemDone:
		return base + itemWeight(&u.Item)
	case handoff.Question:
		n := base + len(u.Text) + len(u.Command) + len(u.Reason)
		for _, path := range u.Changes {
			n += len(path)
		}
		return n
	case handoff.TurnEnded:
		return base + len(u.Text)
	}
	return base
}

func itemWeight(it *handoff.Item) int {
	n := len(it.Text) + len(it.Arguments) + len(it.Output)
	for _, c := range it.Changes {
		n += len(c.Path) + len(c.To) + len(c.Diff)
	}
	return n
}

package router

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"switchboard/handoff"
)

// enter makes a call one that hears of the caller's works.
func (b *book) enter(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, c)
}

// leave ends that.
func (b *book) leave(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = slices.DeleteFunc(b.calls, func(o *call) bool { return o == c })
}

// live returns the newest open call, or nil.
func (b *book) live() *call {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.calls) == 0 {
		return nil
	}
	return b.calls[len(b.calls)-1]
}

// orphan notes that no call hears of a work.
func (b *book) orphan(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.works[id] != nil {
		b.orphaned[id] = true
	}
}

// claimOrphan takes a work over for a call. False means that another call has it.
func (b *book) claimOrphan(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.orphaned[id]
	delete(b.orphaned, id)
	return was
}

// orphans returns the works that no call hears of, oldest first.
func (b *book) orphans() []*work {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []*work
	for id := range b.orphaned {
		out = append(out, b.works[id])
	}
	slices.SortFunc(out, func(x, y *work) int { return strings.Compare(x.ID, y.ID) })
	return out
}

// lineOf returns what the ledger is told of a record; nil writes nothing.
func (b *book) lineOf(id string) *line {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines[id]
}

// allLines returns what the ledger is told of each record.
func (b *book) allLines() []*line {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Values(b.lines))
}

// setLine is for a record without a work.
func (b *book) setLine(id string, l *line) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines[id] = l
}

// updates returns what the caller wants to hear, or what the settings say.
func (b *book) updates(otherwise handoff.SpeechLevel) handoff.SpeechLevel {
	b.mu.Lock()
	defer b.mu.Unlock()
	return cmp.Or(b.level, otherwise)
}

func (b *book) setUpdates(l handoff.SpeechLevel) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.level = l
}

// openCalls returns the caller's calls.
func (b *book) openCalls() []*call {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls)
}

package router

import (
	"maps"
	"slices"

	"switchboard/handoff"
)

// publish adds an event to the log of a run and gives it to who attends to the run. False: nobody heard it.
func (b *callerState) publish(id string, kind handoff.RunKind) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	rec := b.findLocked(id)
	if rec == nil { // pushed out by newer ones
		return false
	}
	e := b.logLocked(rec, kind)
	if _, closed := kind.(handoff.RunAnswered); closed { // it may have been asked in another call, too
		for _, a := range b.attending {
			a.listener.Hear(e)
		}
		return true
	}
	a := b.ears[id]
	if a == nil || !a.listener.Hear(e) {
		return false
	}
	if _, ended := kind.(handoff.RunEnded); ended {
		a.told = append(a.told, id)
	}
	return true
}

// noted says that the ledger has an entry of a run.
func (b *callerState) noted(id string) {
	b.mu.Lock()
	b.runLogLocked(id).noted = true
	b.mu.Unlock()
	b.publish(id, handoff.RunNoted{})
}

// allWriters returns what the ledger is told of each record.
func (b *callerState) allWriters() []*ledgerWriter {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Values(b.writers))
}

// setWriter is for a record without a run.
func (b *callerState) setWriter(id string, l *ledgerWriter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writers[id] = l
}

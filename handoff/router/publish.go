package router

import (
	"context"
	"iter"
	"maps"
	"slices"
	"switchboard/handoff"
)

// Bounds of a run's log. Who follows and is further behind gets a snapshot instead.
const (
	maxLog      = 128 // events of a run that goes on
	maxEndedLog = 8   // of one that has ended
)

// A runLog is what happened to a run, the newest of it.
type runLog struct {
	last    uint64 // number of the newest event
	noted   bool
	over    bool            // nothing follows
	rec     *handoff.Record // as it stands, without items; nil: it has changed since it was last asked for
	events  []logged
	changed chan struct{} // closed at the next event; nil while nobody waits
}

// A logged is one event of a log. Events share a record that did not change between them.
type logged struct {
	seq   uint64
	noted bool
	rec   *handoff.Record
	kind  handoff.RunKind
}

func (e logged) event() handoff.RunEvent {
	return handoff.RunEvent{Run: handoff.RunID(e.rec.ID), Seq: e.seq, Record: *e.rec, Noted: e.noted, Kind: e.kind}
}

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

func (b *callerState) runLogLocked(id string) *runLog {
	l := b.logs[id]
	if l == nil {
		l = &runLog{}
		b.logs[id] = l
	}
	return l
}

// eventLocked is an event as a listener gets it, which is not in the log.
func (b *callerState) eventLocked(rec *handoff.Record, kind handoff.RunKind) handoff.RunEvent {
	return b.runLogLocked(rec.ID).entry(rec, kind).event()
}

func (l *runLog) entry(rec *handoff.Record, kind handoff.RunKind) logged {
	if l.rec == nil {
		l.rec = new(*rec)
		l.rec.Items = nil
	}
	return logged{seq: l.last, noted: l.noted, rec: l.rec, kind: kind}
}

func (b *callerState) logLocked(rec *handoff.Record, kind handoff.RunKind) handoff.RunEvent {
	l := b.runLogLocked(rec.ID)
	l.last++
	e := l.entry(rec, kind)
	l.events = append(l.events, e)
	most := maxLog
	switch kind.(type) {
	case handoff.RunEnded, handoff.RunYielded:
		l.over, most = true, maxEndedLog
	}
	if n := len(l.events) - most; n > 0 {
		l.events = slices.Delete(l.events, 0, n)
	}
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	return e.event()
}

// Follow implements [handoff.Runs].
func (r *Router) Follow(ctx context.Context, c handoff.Caller, id handoff.RunID, after uint64) iter.Seq2[handoff.RunEvent, error] {
	b := r.caller(c)
	return func(yield func(handoff.RunEvent, error) bool) {
		for {
			events, over, changed := b.eventsAfter(string(id), after)
			if len(events) == 0 && changed == nil && !over {
				yield(handoff.RunEvent{}, handoff.Fault(handoff.CodeNotFound, "such work", ""))
				return
			}
			for _, e := range events {
				if after = e.Seq; !yield(e, nil) {
					return
				}
			}
			if over {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(handoff.RunEvent{}, handoff.AsError(context.Cause(ctx)))
				return
			}
		}
	}
}

// eventsAfter returns what came after an event, whether nothing follows it, and what is closed at the next one.
// Without anything: there is no such run.
func (b *callerState) eventsAfter(id string, after uint64) (events []handoff.RunEvent, over bool, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rec := b.findLocked(id)
	if rec == nil {
		return nil, false, nil
	}
	l := b.runLogLocked(id)
	over = l.over || rec.Outcome != "" && b.runs[id] == nil
	first := l.last - uint64(len(l.events)) // number before the oldest kept
	switch {
	case after > l.last, after < first, l.last == 0 && after == 0:
		events = []handoff.RunEvent{b.eventLocked(rec, handoff.RunSnapshot{})}
	default:
		for _, e := range l.events[after-first:] {
			events = append(events, e.event())
		}
	}
	if over {
		return events, true, nil
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return events, false, l.changed
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

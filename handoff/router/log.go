package router

import (
	"context"
	"iter"
	"slices"

	"switchboard/handoff"
)

// Bounds of a run's log. A follower that is further behind gets a snapshot instead.
const (
	maxLog      = 128 // events of an open run, without deltas
	maxEndedLog = 8   // events of a run that has ended, without deltas

	maxDeltas     = 512       // deltas; when there are more, all of them are removed
	maxDeltaBytes = 256 << 10 // of the texts of all deltas
)

// A runLog holds the newest events of a run.
type runLog struct {
	last      uint64          // number of the newest event
	noted     bool            // the ledger has an entry of the run
	over      bool            // no event follows
	rec       *handoff.Record // the current record, without items; nil: it has changed
	used      handoff.Usage   // the newest
	events    []logEntry      // by place
	place     uint64          // of the newest entry; places have no gaps when entries are added
	deltas    int             // number of deltas in events
	bytes     int             // of the texts of these deltas
	followers int             // without any, deltas are left out
	changed   chan struct{}   // closed at the next event; nil while nobody waits
}

// A logEntry is one event of a log. Entries share a record that did not change between them. A delta has the number
// (seq) of the event before it, but a place of its own.
type logEntry struct {
	seq, place uint64
	noted      bool
	rec        *handoff.Record
	kind       handoff.RunKind
}

func (e logEntry) event() handoff.RunEvent {
	return handoff.RunEvent{Run: handoff.RunID(e.rec.ID), Seq: e.seq, Record: *e.rec, Noted: e.noted, Kind: e.kind}
}

func (e logEntry) isDelta() bool {
	_, delta := e.kind.(handoff.RunDelta)
	return delta
}

// event returns an event for a listener, which is not added to the log.
func (r *recordState) event(kind handoff.RunKind) handoff.RunEvent { return r.entry(kind).event() }

// record adds an event to the log of a run; listeners do not get it.
func (g *registry) record(id string, kind handoff.RunKind) {
	g.with(id, func(rec *recordState) { rec.record(kind) })
}

// record adds an event to the log.
func (r *recordState) record(kind handoff.RunKind) handoff.RunEvent {
	l := &r.log
	l.last++
	limit := maxLog
	switch k := kind.(type) {
	case handoff.RunUsage:
		l.used, r.Usage = k.Usage, new(k.Usage)
	case handoff.RunEnded, handoff.RunYielded:
		l.over, limit = true, maxEndedLog
	}
	e := r.entry(kind)
	l.add(e)
	l.trim(limit)
	return e.event()
}

// delta adds a delta to the log, if somebody follows. If there are too many, all older deltas are removed, and no other
// event.
func (r *recordState) delta(d handoff.RunDelta) {
	l := &r.log
	if l.followers == 0 {
		return
	}
	if l.deltas >= maxDeltas || l.bytes+len(d.Text) > maxDeltaBytes {
		l.events = slices.DeleteFunc(l.events, logEntry.isDelta)
		l.deltas, l.bytes = 0, 0
	}
	l.deltas++
	l.bytes += len(d.Text)
	l.add(r.entry(d))
}

func (r *recordState) entry(kind handoff.RunKind) logEntry {
	l := &r.log
	if l.rec == nil {
		l.rec = new(r.Record)
		l.rec.Items = nil
	}
	return logEntry{seq: l.last, noted: l.noted, rec: l.rec, kind: kind}
}

func (l *runLog) add(e logEntry) {
	l.place++
	e.place = l.place
	l.events = append(l.events, e)
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// trim removes the oldest events, with the deltas before them, until limit events are left, deltas not counted.
func (l *runLog) trim(limit int) {
	n := len(l.events) - l.deltas - limit
	if n <= 0 {
		return
	}
	i := 0
	for ; n > 0; i++ {
		if !l.events[i].isDelta() {
			n--
			continue
		}
		l.deltas--
		l.bytes -= len(l.events[i].kind.(handoff.RunDelta).Text)
	}
	l.events = slices.Delete(l.events, 0, i)
}

// from returns the entries after a place, or, if place is 0, after the event with number after.
func (l *runLog) from(after, place uint64) []logEntry {
	i, _ := slices.BinarySearchFunc(l.events, place+1, func(e logEntry, place uint64) int {
		if e.place < place {
			return -1
		}
		return 1
	})
	if place == 0 {
		i = slices.IndexFunc(l.events, func(e logEntry) bool { return e.seq > after || e.seq == after && e.isDelta() })
		if i < 0 {
			return nil
		}
	}
	return l.events[i:]
}

// first returns the number of the event before the oldest one in the log.
func (l *runLog) first() uint64 { return l.last - uint64(len(l.events)-l.deltas) }

// A follower is a reader's position in a log.
type follower struct {
	after, place uint64             // number and place of the last entry that was read; place 0: none was
	events       []handoff.RunEvent // result of the last read
}

// Follow implements [handoff.Runs].
func (v Service) Follow(
	ctx context.Context, by handoff.Grant, id handoff.RunID, after uint64,
) iter.Seq2[handoff.RunEvent, error] {
	state := v.of(by.Caller)
	g := &state.registry
	return func(yield func(handoff.RunEvent, error) bool) {
		g.follows(string(id), 1)
		defer g.follows(string(id), -1)
		for f := (follower{after: after}); ; {
			over, changed := g.read(string(id), &f)
			if len(f.events) == 0 && changed == nil && !over {
				yield(handoff.RunEvent{}, state.router.notFound())
				return
			}
			for _, e := range f.events {
				if !e.Record.Shown(by) {
					yield(handoff.RunEvent{}, state.router.notFound())
					return
				}
				if !yield(e, nil) {
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

// follows adds n to the number of followers of a run.
func (g *registry) follows(id string, n int) {
	g.with(id, func(rec *recordState) { rec.log.followers += n })
}

// over reports whether the end of a run was published.
func (g *registry) over(id string) (over bool) {
	g.with(id, func(rec *recordState) { over = rec.log.over })
	return over
}

// read sets the follower's events to those that it has not read. over reports whether no more follow; else changed is
// closed at the next event. Without events, over and changed there is no such run.
func (g *registry) read(id string, f *follower) (over bool, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(f.events)
	f.events = f.events[:0]
	rec := g.findLocked(id)
	if rec == nil {
		return false, nil
	}
	l := &rec.log
	over = l.over || rec.Outcome != "" && rec.run == nil
	if over && l.last == 0 { // the run is of an earlier life, and only its end is known
		l.last++
		rec.record(handoff.RunEnded{})
	}
	switch {
	case f.after > l.last, f.after < l.first(), l.last == 0 && f.place == 0:
		f.events = append(f.events, rec.event(handoff.RunSnapshot{Items: slices.Clone(rec.Items), Usage: l.used}))
		if l.over { // the last event tells the follower that no more follow
			f.events[0].Seq--
			f.events = append(f.events, l.events[len(l.events)-1].event())
		}
	default:
		for _, e := range l.from(f.after, f.place) {
			f.events = append(f.events, e.event())
		}
	}
	f.after, f.place = l.last, l.place
	if over {
		return true, nil
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return false, l.changed
}

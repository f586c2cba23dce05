package work

import (
	"slices"

	"switchboard/handoff"
)

// Bounds of the log of a handoff. A follower that is further behind gets a snapshot instead.
const (
	maxLog      = 128 // events of an open handoff, without deltas
	maxEndedLog = 8   // events of one that has ended, without deltas

	maxDeltas     = 512       // deltas; when there are more, all of them are removed
	maxDeltaBytes = 256 << 10 // of the texts of all deltas
)

// A log holds the newest events of a handoff.
type log struct {
	last      uint64          // number of the newest event
	noted     bool            // the store has the handoff
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
	kind       handoff.EventKind
}

func (e logEntry) event() handoff.Event {
	return handoff.Event{ID: handoff.ID(e.rec.ID), Seq: e.seq, Record: *e.rec, Noted: e.noted, Kind: e.kind}
}

func (e logEntry) isDelta() bool {
	_, delta := e.kind.(handoff.EventDelta)
	return delta
}

// event returns an event for a listener, which is not added to the log.
func (h *Handoff) event(kind handoff.EventKind) handoff.Event { return h.entry(kind).event() }

// logEvent adds an event to the log.
func (h *Handoff) logEvent(kind handoff.EventKind) handoff.Event {
	l := &h.log
	l.last++
	limit := maxLog
	switch k := kind.(type) {
	case handoff.EventUsage:
		l.used, h.Usage = k.Usage, new(k.Usage)
	case handoff.EventEnded, handoff.EventYielded:
		l.over, limit = true, maxEndedLog
	}
	e := h.entry(kind)
	l.add(e)
	l.trim(limit)
	return e.event()
}

// logDelta adds a delta to the log, if somebody follows. If there are too many, all older deltas are removed, and no
// other event.
func (h *Handoff) logDelta(d handoff.EventDelta) {
	l := &h.log
	if l.followers == 0 {
		return
	}
	if l.deltas >= maxDeltas || l.bytes+len(d.Text) > maxDeltaBytes {
		l.events = slices.DeleteFunc(l.events, logEntry.isDelta)
		l.deltas, l.bytes = 0, 0
	}
	l.deltas++
	l.bytes += len(d.Text)
	l.add(h.entry(d))
}

func (h *Handoff) entry(kind handoff.EventKind) logEntry {
	l := &h.log
	if l.rec == nil {
		l.rec = new(h.Record)
		l.rec.Items = nil
	}
	return logEntry{seq: l.last, noted: l.noted, rec: l.rec, kind: kind}
}

func (l *log) add(e logEntry) {
	l.place++
	e.place = l.place
	l.events = append(l.events, e)
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// trim removes the oldest events, with the deltas before them, until limit events are left, deltas not counted.
func (l *log) trim(limit int) {
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
		l.bytes -= len(l.events[i].kind.(handoff.EventDelta).Text)
	}
	l.events = slices.Delete(l.events, 0, i)
}

// from returns the entries after a place, or, if place is 0, after the event with number after.
func (l *log) from(after, place uint64) []logEntry {
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
func (l *log) first() uint64 { return l.last - uint64(len(l.events)-l.deltas) }

// Read reads the events of a handoff that its reader has not read. After and place say how far that is; a reader
// begins with the number of the last event that it knows. Events, Over and Changed are results: Over means that no
// more follow, else Changed is closed at the next event. Without any of them there is no such work.
type Read struct {
	ID    string
	After uint64
	place uint64 // of the last entry that was read; 0: none was

	Events  []handoff.Event
	Over    bool
	Changed <-chan struct{}
}

func (r *Read) apply(s *State) {
	clear(r.Events)
	r.Events, r.Over, r.Changed = r.Events[:0], false, nil
	h := s.find(r.ID)
	if h == nil {
		return
	}
	l := &h.log
	r.Over = l.over || h.Outcome != "" && !h.open
	if r.Over && l.last == 0 { // the work is of an earlier life, and only its end is known
		l.last++
		h.logEvent(handoff.EventEnded{})
	}
	switch {
	case r.After > l.last, r.After < l.first(), l.last == 0 && r.place == 0:
		r.Events = append(r.Events, h.event(handoff.EventSnapshot{Items: slices.Clone(h.Items), Usage: l.used}))
		if l.over { // the last event tells the follower that no more follow
			r.Events[0].Seq--
			r.Events = append(r.Events, l.events[len(l.events)-1].event())
		}
	default:
		for _, e := range l.from(r.After, r.place) {
			r.Events = append(r.Events, e.event())
		}
	}
	r.After, r.place = l.last, l.place
	if r.Over {
		return
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	r.Changed = l.changed
}

// Follows says how many readers of a handoff came, or left.
type Follows struct {
	ID string
	N  int
}

func (f *Follows) apply(s *State) {
	if h := s.find(f.ID); h != nil {
		h.log.followers += f.N
	}
}

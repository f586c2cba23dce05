package router

import (
	"context"
	"iter"
	"slices"

	"switchboard/handoff"
)

// Bounds of a run's log. A follower that is further behind gets a snapshot instead.
const (
	maxLog      = 128 // events of a run that goes on
	maxEndedLog = 8   // of one that has ended

	maxDeltas     = 512       // deltas among them: when there are more, all of them go
	maxDeltaBytes = 256 << 10 // of their texts
)

// A runLog is what happened to a run, the newest of it.
type runLog struct {
	last      uint64 // number of the newest event
	noted     bool
	over      bool            // nothing follows
	rec       *handoff.Record // as it stands, without items; nil: it has changed since it was last asked for
	used      handoff.Usage   // as last told
	events    []logged        // by place
	place     uint64          // of the newest in events, deltas too, without gaps when it was added
	deltas    int             // in events
	bytes     int             // of their texts
	followers int             // without any, deltas are left out
	changed   chan struct{}   // closed at the next event; nil while nobody waits
}

// A logged is one event of a log. Events share a record that did not change between them.
type logged struct {
	seq, place uint64
	noted      bool
	rec        *handoff.Record
	kind       handoff.RunKind
}

func (e logged) event() handoff.RunEvent {
	return handoff.RunEvent{Run: handoff.RunID(e.rec.ID), Seq: e.seq, Record: *e.rec, Noted: e.noted, Kind: e.kind}
}

func (e logged) isDelta() bool {
	_, delta := e.kind.(handoff.RunDelta)
	return delta
}

// event is an event as a listener gets it, which is not in the log.
func (r *recordState) event(kind handoff.RunKind) handoff.RunEvent { return r.entry(kind).event() }

// record adds an event for who follows the run; listeners do not get it.
func (g *registry) record(id string, kind handoff.RunKind) {
	g.with(id, func(rec *recordState) { rec.record(kind) })
}

// record adds an event to the log.
func (r *recordState) record(kind handoff.RunKind) handoff.RunEvent {
	l := &r.log
	l.last++
	most := maxLog
	switch k := kind.(type) {
	case handoff.RunUsage:
		l.used, r.Usage = k.Usage, new(k.Usage)
	case handoff.RunEnded, handoff.RunYielded:
		l.over, most = true, maxEndedLog
	}
	e := r.entry(kind)
	l.add(e)
	l.trim(most)
	return e.event()
}

// delta adds a delta, if somebody follows. The oldest go before anything else does.
func (r *recordState) delta(d handoff.RunDelta) {
	l := &r.log
	if l.followers == 0 {
		return
	}
	if l.deltas >= maxDeltas || l.bytes+len(d.Text) > maxDeltaBytes {
		l.events = slices.DeleteFunc(l.events, logged.isDelta)
		l.deltas, l.bytes = 0, 0
	}
	l.deltas++
	l.bytes += len(d.Text)
	l.add(r.entry(d))
}

func (r *recordState) entry(kind handoff.RunKind) logged {
	l := &r.log
	if l.rec == nil {
		l.rec = new(r.Record)
		l.rec.Items = nil
	}
	return logged{seq: l.last, noted: l.noted, rec: l.rec, kind: kind}
}

func (l *runLog) add(e logged) {
	l.place++
	e.place = l.place
	l.events = append(l.events, e)
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// trim keeps the newest events, with the deltas between them.
func (l *runLog) trim(most int) {
	n := len(l.events) - l.deltas - most
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

// from returns what comes after an event, or, where place is known, after that.
func (l *runLog) from(after, place uint64) []logged {
	i, _ := slices.BinarySearchFunc(l.events, place+1, func(e logged, place uint64) int {
		if e.place < place {
			return -1
		}
		return 1
	})
	if place == 0 {
		i = slices.IndexFunc(l.events, func(e logged) bool { return e.seq > after || e.seq == after && e.isDelta() })
		if i < 0 {
			return nil
		}
	}
	return l.events[i:]
}

// first is the number of the event before the oldest that is kept.
func (l *runLog) first() uint64 { return l.last - uint64(len(l.events)-l.deltas) }

// A follower is how far somebody has read a log.
type follower struct {
	after, place uint64
	events       []handoff.RunEvent // what was read last
}

// Follow implements [handoff.Runs].
func (v Service) Follow(
	ctx context.Context, c handoff.Caller, id handoff.RunID, after uint64,
) iter.Seq2[handoff.RunEvent, error] {
	b := v.of(c)
	g := &b.registry
	return func(yield func(handoff.RunEvent, error) bool) {
		g.follows(string(id), 1)
		defer g.follows(string(id), -1)
		for f := (follower{after: after}); ; {
			over, changed := g.read(string(id), &f)
			if len(f.events) == 0 && changed == nil && !over {
				yield(handoff.RunEvent{}, b.router.notFound())
				return
			}
			for _, e := range f.events {
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

// follows counts who follows a run.
func (g *registry) follows(id string, n int) {
	g.with(id, func(rec *recordState) { rec.log.followers += n })
}

// over reports whether the end of a run was published: its outcome is in the ledger.
func (g *registry) over(id string) (over bool) {
	g.with(id, func(rec *recordState) { over = rec.log.over })
	return over
}

// read gives a follower what came since, and reports whether nothing follows it, and what is closed at the next one.
// Without anything: there is no such run.
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
	if over && l.last == 0 { // of an earlier life: of all that happened only the end is known
		l.last++
		rec.record(handoff.RunEnded{})
	}
	switch {
	case f.after > l.last, f.after < l.first(), l.last == 0 && f.place == 0:
		f.events = append(f.events, rec.event(handoff.RunSnapshot{Items: slices.Clone(rec.Items), Usage: l.used}))
		if l.over { // and who gets no more than that is told that no more comes
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

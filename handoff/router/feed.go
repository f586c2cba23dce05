package router

import (
	"slices"

	"switchboard/handoff"
)

// A feed publishes what happens to a caller's runs, to pages and to the listeners that attend.
type feed struct {
	pages     handoff.Feed  // safe by itself
	registry  *registry     // Set once
	questions *questions    // Set once
	attending []*attendance // Guarded by the mu of registry: oldest first
}

// An attendance is one listener of a caller, from [Service.Attend] until it leaves.
type attendance struct {
	grant    handoff.Grant    // Set once
	listener handoff.Listener // Set once
}

// may reports whether the listener may hear of a run, and take its outcome.
func (a *attendance) may(rec *handoff.Record) bool { return rec.Told(a.grant) }

// enter adds a listener, and gives it the runs that have none.
func (f *feed) enter(a *attendance) {
	f.registry.mu.Lock()
	f.attending = append(f.attending, a)
	f.registry.mu.Unlock()
	f.handOver()
}

// exit removes a listener. It returns its open runs, oldest first, and the ids of the runs whose outcome it was given
// and nobody heard, in the order in which they ended.
func (f *feed) exit(a *attendance) (runs []*run, unheard []string) {
	f.registry.mu.Lock()
	defer f.registry.mu.Unlock()
	f.attending = slices.DeleteFunc(f.attending, func(o *attendance) bool { return o == a })
	for _, rec := range f.registry.records {
		if rec.attendedBy == a && rec.run != nil {
			rec.attendedBy = nil
			runs = append(runs, rec.run)
		}
	}
	for _, rec := range f.registry.endedLocked(func(r *recordState) bool { return r.givenTo == a }) {
		rec.givenTo = nil
		unheard = append(unheard, rec.ID)
	}
	return runs, unheard
}

// attends reports whether a listener is still there.
func (f *feed) attends(a *attendance) bool {
	f.registry.mu.Lock()
	defer f.registry.mu.Unlock()
	return slices.Contains(f.attending, a)
}

// attended reports whether a listener has a run.
func (f *feed) attended(id string) (attended bool) {
	f.registry.with(id, func(rec *recordState) { attended = rec.attendedBy != nil })
	return attended
}

// attendanceOf returns the attendance of a listener, or nil.
func (f *feed) attendanceOf(l handoff.Listener) *attendance {
	f.registry.mu.Lock()
	defer f.registry.mu.Unlock()
	for _, a := range f.attending {
		if l != nil && a.listener == l {
			return a
		}
	}
	return nil
}

// offer gives a run to a listener that attends, now or later.
func (f *feed) offer(id string) {
	f.registry.with(id, func(rec *recordState) { rec.offered = rec.offered || rec.run != nil })
	f.handOver()
}

// handOver gives each offered run without a listener to the newest listener that may hear of it, oldest run first.
func (f *feed) handOver() {
	f.registry.mu.Lock()
	defer f.registry.mu.Unlock()
	for _, rec := range f.registry.records {
		if !rec.offered || rec.attendedBy != nil || rec.run == nil || rec.log.over {
			continue
		}
		for _, a := range slices.Backward(f.attending) {
			if !a.may(&rec.Record) {
				continue
			}
			var open []handoff.OpenQuestion
			for _, q := range f.questions.of(rec.ID) {
				open = append(open, q.OpenQuestion)
			}
			if a.listener.Hear(rec.event(handoff.RunTaken{Questions: open})) {
				rec.attendedBy = a
				break
			}
		}
	}
}

// publish adds an event to the log of a run, and gives it to the run's listener. It reports whether a listener took it.
func (f *feed) publish(id string, kind handoff.RunKind) bool {
	f.registry.mu.Lock()
	defer f.registry.mu.Unlock()
	rec := f.registry.findLocked(id)
	if rec == nil { // pushed out by newer ones
		return false
	}
	e := rec.record(kind)
	if _, closed := kind.(handoff.RunAnswered); closed { // the question may have been asked in other calls, too
		for _, a := range f.attending {
			a.listener.Hear(e)
		}
		return true
	}
	a := rec.attendedBy
	if a == nil || !a.listener.Hear(e) {
		return false
	}
	if _, ended := kind.(handoff.RunEnded); ended {
		rec.givenTo = a
	}
	return true
}

// byHand tells every listener that may hear of a run what the caller did with it outside of calls.
func (f *feed) byHand(id string, e handoff.RunByHand) {
	f.registry.mu.Lock()
	defer f.registry.mu.Unlock()
	rec := f.registry.findLocked(id)
	if rec == nil { // pushed out by newer ones
		return
	}
	for _, a := range f.attending {
		if a.may(&rec.Record) {
			a.listener.Hear(rec.event(e))
		}
	}
}

// noted publishes that the ledger has an entry of a run.
func (f *feed) noted(id string) {
	f.registry.with(id, func(rec *recordState) { rec.log.noted = true })
	f.publish(id, handoff.RunNoted{})
}

// idle reports whether nobody attends and every record has been heard to its end.
func (f *feed) idle() bool {
	f.registry.mu.Lock()
	defer f.registry.mu.Unlock()
	return len(f.attending) == 0 && !slices.ContainsFunc(f.registry.records, func(rec *recordState) bool {
		return rec.run != nil || rec.State != handoff.StatusDelivered
	})
}

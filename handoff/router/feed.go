package router

import (
	"slices"

	"switchboard/handoff"
)

// A feed is who hears what happens to a caller's runs: pages, and those who attend for the caller.
type feed struct {
	pages     handoff.Feed  // safe by itself
	registry  *registry     // Set once
	questions *questions    // Set once
	attending []*attendance // Guarded by the mu of registry: oldest first
}

// An attendance is one listener of a caller's, from [Service.Attend] until it leaves.
type attendance struct {
	grant    handoff.Grant    // Set once
	listener handoff.Listener // Set once
}

// may reports whether the listener may hear of a run.
func (a *attendance) may(rec *handoff.Record) bool { return rec.Shown(a.grant) }

// enter adds a listener and gives it the runs that nobody hears of.
func (f *feed) enter(a *attendance) {
	f.registry.mu.Lock()
	f.attending = append(f.attending, a)
	f.registry.mu.Unlock()
	f.handOver()
}

// exit takes a listener away. It returns the runs that it attended to, oldest first, and those whose outcome it was
// given and nobody heard, in the order in which they ended.
func (f *feed) exit(a *attendance) (runs []*run, told []string) {
	f.registry.mu.Lock()
	defer f.registry.mu.Unlock()
	f.attending = slices.DeleteFunc(f.attending, func(o *attendance) bool { return o == a })
	for _, rec := range f.registry.records {
		if rec.hears == a && rec.run != nil {
			rec.hears = nil
			runs = append(runs, rec.run)
		}
	}
	for _, rec := range f.registry.endedLocked(func(r *recordState) bool { return r.told == a }) {
		rec.told = nil
		told = append(told, rec.ID)
	}
	return runs, told
}

// attends reports whether a listener is still there.
func (f *feed) attends(a *attendance) bool {
	f.registry.mu.Lock()
	defer f.registry.mu.Unlock()
	return slices.Contains(f.attending, a)
}

// attended reports whether somebody hears of a run.
func (f *feed) attended(id string) (attended bool) {
	f.registry.with(id, func(rec *recordState) { attended = rec.hears != nil })
	return attended
}

// by returns the attendance of a listener, or nil.
func (f *feed) by(l handoff.Listener) *attendance {
	f.registry.mu.Lock()
	defer f.registry.mu.Unlock()
	for _, a := range f.attending {
		if l != nil && a.listener == l {
			return a
		}
	}
	return nil
}

// offer leaves a run to whoever attends for its caller, now or later.
func (f *feed) offer(id string) {
	f.registry.with(id, func(rec *recordState) { rec.offered = rec.offered || rec.run != nil })
	f.handOver()
}

// handOver gives the runs that nobody hears of to the newest listener that may hear of them, oldest first.
func (f *feed) handOver() {
	f.registry.mu.Lock()
	defer f.registry.mu.Unlock()
	for _, rec := range f.registry.records {
		if !rec.offered || rec.hears != nil || rec.run == nil || rec.log.over {
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
				rec.hears = a
				break
			}
		}
	}
}

// publish adds an event to the log of a run and gives it to who attends to the run. False: nobody heard it.
func (f *feed) publish(id string, kind handoff.RunKind) bool {
	f.registry.mu.Lock()
	defer f.registry.mu.Unlock()
	rec := f.registry.findLocked(id)
	if rec == nil { // pushed out by newer ones
		return false
	}
	e := rec.record(kind)
	if _, closed := kind.(handoff.RunAnswered); closed { // it may have been asked in another call, too
		for _, a := range f.attending {
			a.listener.Hear(e)
		}
		return true
	}
	a := rec.hears
	if a == nil || !a.listener.Hear(e) {
		return false
	}
	if _, ended := kind.(handoff.RunEnded); ended {
		rec.told = a
	}
	return true
}

// byHand tells every listener that may hear of a run what the caller did about it outside of calls.
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

// noted says that the ledger has an entry of a run.
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

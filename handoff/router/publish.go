package router

import "switchboard/handoff"

// publish adds an event to the log of a run and gives it to who attends to the run. False: nobody heard it.
func (c *callerState) publish(id string, kind handoff.RunKind) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	rec := c.findLocked(id)
	if rec == nil { // pushed out by newer ones
		return false
	}
	e := rec.record(kind)
	if _, closed := kind.(handoff.RunAnswered); closed { // it may have been asked in another call, too
		for _, a := range c.attending {
			a.listener.Hear(e)
		}
		return true
	}
	a := rec.hears
	if a == nil || !a.listener.Hear(e) {
		return false
	}
	if _, ended := kind.(handoff.RunEnded); ended {
		a.told = append(a.told, id)
	}
	return true
}

// noted says that the ledger has an entry of a run.
func (c *callerState) noted(id string) {
	c.with(id, func(rec *recordState) { rec.log.noted = true })
	c.publish(id, handoff.RunNoted{})
}

// allWriters returns what the ledger is told of each record.
func (c *callerState) allWriters() (all []*ledgerWriter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rec := range c.records {
		if rec.writer != nil {
			all = append(all, rec.writer)
		}
	}
	return all
}

// setWriter is for a record without a run.
func (c *callerState) setWriter(id string, l *ledgerWriter) {
	c.with(id, func(rec *recordState) { rec.writer = l })
}

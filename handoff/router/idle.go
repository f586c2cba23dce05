package router

import (
	"slices"
	"time"

	"switchboard/handoff"
)

// maxCallers is how many callers are known at a time, not counting those with something open. When there are
// more, those who have been away longest are let go of: their sticky sessions and what they have not heard are
// read from the store when they come back.
const maxCallers = 1000

// awayFor is how long a caller must not have been asked about to be let go of: whoever holds their state without a
// trace of it there is done with it by then.
const awayFor = 10 * time.Minute

// letGoLocked lets go of callers who have been away longest, until there is room.
func (r *Router) letGoLocked(now time.Time) {
	if len(r.callers) < maxCallers {
		return
	}
	var away []handoff.Caller
	for c, b := range r.callers {
		if now.Sub(b.asked) >= awayFor && b.idle() {
			away = append(away, c)
		}
	}
	slices.SortFunc(away, func(x, y handoff.Caller) int { return r.callers[x].asked.Compare(r.callers[y].asked) })
	for _, c := range away[:min(len(away), maxCallers/4)] { // some at once: looking costs
		_, slow := r.callers[c].feed.Load()
		r.counts.slow.Add(slow)
		delete(r.callers, c)
	}
}

// idle reports whether everything about the caller is in the store: nobody attends, no run or question is open, no page
// listens, and there is nothing to be told or written.
func (c *callerState) idle() bool {
	if listeners, _ := c.feed.Load(); listeners > 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.attending)+len(c.questions)+len(c.outbox)+len(c.unstored) > 0 || c.storing {
		return false
	}
	return !slices.ContainsFunc(c.records, func(rec *recordState) bool { return rec.run != nil || rec.State != handoff.StatusDelivered })
}

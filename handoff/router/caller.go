package router

import (
	"time"

	"switchboard/handoff"
)

// A caller is the state of one caller. Each part is safe for concurrent use. Methods that wait for the store or an
// agent are methods of caller, never of a part.
type caller struct {
	router *Router        // Set once
	who    handoff.Caller // Set once

	registry   registry
	feed       feed
	questions  questions
	stickies   stickies
	prefetches prefetches
	claims     claims
}

func newCaller(r *Router, who handoff.Caller) *caller {
	c := &caller{router: r, who: who, registry: registry{counts: r.cfg.Counts, byKey: map[string]string{}}}
	pages := &c.feed.pages
	c.registry.pages = pages
	c.feed.registry, c.feed.questions = &c.registry, &c.questions
	c.questions.pages, c.questions.counts, c.questions.open = pages, r.cfg.Counts, map[handoff.QuestionID]*question{}
	c.stickies.pages = pages
	c.stickies.inUse, c.stickies.chosen = map[stickyKey]handoff.Sticky{}, map[stickyKey]time.Time{}
	c.stickies.unstored = map[stickyKey]stickyWrite{}
	c.prefetches.byKey = map[string]*prefetch{}
	c.claims.owners = map[string]string{}
	return c
}

// ended detaches the run from its record, and closes its open questions.
func (c *caller) ended(id string) {
	c.registry.with(id, func(rec *recordState) { rec.run, rec.offered, rec.attendedBy = nil, false, nil })
	for _, q := range c.questions.of(id) {
		c.questions.close(q.Shown.ID)
	}
}

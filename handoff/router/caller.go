package router

import (
	"sync"
	"time"

	"switchboard/handoff"
)

// A caller is what the router knows of one caller and does for them. Each part is safe by itself; what waits for the
// store or an agent is no method of a part.
type caller struct {
	router *Router        // Set once
	who    handoff.Caller // Set once

	registry   registry
	feed       feed
	outbox     outbox
	questions  questions
	stickies   stickies
	prefetches prefetches
	claims     claims
}

func newCaller(r *Router, who handoff.Caller) *caller {
	c := &caller{router: r, who: who, registry: registry{counts: r.counts, byKey: map[string]string{}}}
	pages := &c.feed.pages
	c.registry.pages = pages
	c.feed.registry, c.feed.questions = &c.registry, &c.questions
	c.outbox.registry, c.outbox.feed = &c.registry, &c.feed
	c.questions.pages, c.questions.counts, c.questions.open = pages, r.counts, map[handoff.QuestionID]*question{}
	c.stickies.pages = pages
	c.stickies.inUse, c.stickies.chosen = map[stickyKey]handoff.Sticky{}, map[stickyKey]time.Time{}
	c.stickies.unstored = map[stickyKey]stickyWrite{}
	c.prefetches.byKey = map[string]*prefetch{}
	c.claims.owners = map[string]string{}
	return c
}

// open adds a record. Where it takes the place of one that is still to be told, that is left to the ledger, in which a
// later call finds it; the entries of others are let go of once all of them is written.
func (c *caller) open(rec handoff.Record, w *run) {
	removed := c.registry.open(rec, w)
	if removed == nil {
		return
	}
	c.outbox.forget(removed.ID)
	if !removed.heard() {
		removed.writer.release()
	}
}

// ended closes a record's run and its open questions.
func (c *caller) ended(id string) {
	c.registry.with(id, func(rec *recordState) { rec.run, rec.offered, rec.hears = nil, false, nil })
	for _, q := range c.questions.of(id) {
		c.questions.close(q.shown.ID)
	}
}

// idle reports whether everything about the caller is in the store: nobody attends, no run or question is open, no page
// listens, and there is nothing to be told or written.
func (c *caller) idle() bool {
	listeners, _ := c.feed.pages.Load()
	return listeners == 0 && c.feed.idle() && c.questions.count() == 0 && c.stickies.stored() && c.claims.none()
}

// claims are the entries of the ledger that this life of the router has in hand for a caller.
type claims struct {
	mu     sync.Mutex
	owners map[string]string // Guarded by mu: their owners, by key
}

// take takes an entry in hand for an owner.
func (l *claims) take(key, owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owners[key] = owner
}

// takeLeft takes an entry in hand that a former life left. False means that it is already: there is never a second
// owner of a handoff here.
func (l *claims) takeLeft(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, had := l.owners[key]
	if !had {
		l.owners[key] = ""
	}
	return !had
}

// release lets go of an entry that needs nobody any more, unless its key has another owner by now.
func (l *claims) release(key, owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owners[key] == owner {
		delete(l.owners, key)
	}
}

func (l *claims) none() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.owners) == 0
}

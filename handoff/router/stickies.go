package router

import (
	"context"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// A stickyWrite is what the store has to learn of one sticky session; without a thread it is cleared.
type stickyWrite struct {
	sticky handoff.Sticky
	clear  bool
}

// stick sees to it that the store has a sticky session, or has it no more, as the caller's state does. The store is
// written behind: one write after the other, of each session the newest alone, repeated until the store is
// back.
//
// A caller without a name cannot come back to anything, so nothing is stored for them.
func (r *Router) stick(c handoff.Caller, b *callerState, w stickyWrite) {
	if c.Nameless() {
		return
	}
	if !b.queueSticky(w) {
		return
	}
	r.finally(func(ctx context.Context) { r.writeStickies(ctx, c, b) })
}

// writeStickies writes until nothing is left. When the process ends it tries each once more.
func (r *Router) writeStickies(ctx context.Context, c handoff.Caller, b *callerState) {
	for try := 0; ; {
		w, more := b.nextSticky()
		if !more {
			return
		}
		err := r.writeSticky(ctx, c, w)
		if err != nil {
			r.log.Warn("sticky session not stored", zap.String("principal", c.Principal), zap.String("server", w.sticky.Target.Server), zap.Error(err))
		}
		if err != nil && retried(err) && ctx.Err() == nil {
			b.returnSticky(w)
			r.pause(ctx, try)
			try++
			continue
		}
		try = 0
	}
}

func (r *Router) writeSticky(ctx context.Context, c handoff.Caller, w stickyWrite) error {
	ctx, cancel := writing(ctx)
	defer cancel()
	if w.clear {
		return r.stickies.Clear(ctx, c, w.sticky.Target)
	}
	return r.stickies.Set(ctx, c, w.sticky)
}

// queueSticky adds a write; it replaces an older one of the same server or project, so that there are never
// more than those. True: nobody writes them yet, the caller has to.
func (c *callerState) queueSticky(w stickyWrite) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unstored[keyOf(w.sticky.Target)] = w
	begin := !c.storing
	c.storing = true
	return begin
}

// nextSticky takes a write out. False: there is none, and from here on nobody writes.
func (c *callerState) nextSticky() (stickyWrite, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(c.unstored), func(x, y stickyKey) int { return strings.Compare(x.String(), y.String()) })
	if len(keys) == 0 {
		c.storing = false
		return stickyWrite{}, false
	}
	w := c.unstored[keys[0]]
	delete(c.unstored, keys[0])
	return w, true
}

// returnSticky puts a write back that failed, unless a newer one has come.
func (c *callerState) returnSticky(w stickyWrite) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, newer := c.unstored[keyOf(w.sticky.Target)]; !newer {
		c.unstored[keyOf(w.sticky.Target)] = w
	}
}

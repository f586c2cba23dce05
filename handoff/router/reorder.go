package router

import (
	"context"
	"slices"

	"switchboard/handoff"
)

// Move puts work that waits for other work of its caller before another piece that waits there, or behind all of them:
// "". It begins nothing and lets nothing go, and what other callers wait for keeps its turn. Where one of the two does
// not wait there any more, nothing changes, and that is an error. After a restart nothing waits in a queue: each is
// paused, and the caller is asked.
func (v Service) Move(_ context.Context, g handoff.Grant, id, before string) error {
	c := v.of(g.Caller)
	rec, w := c.registry.find(id)
	switch {
	case rec.ID == "" || !rec.Shown(g):
		return c.router.notFound()
	case w == nil, rec.Outcome != "":
		return handoff.Fault(handoff.CodeWorkEnded, "", "")
	}
	c.registry.moving.Lock() // so that the places that are shown are those of one order
	defer c.registry.moving.Unlock()
	own := map[string]bool{}
	for _, open := range c.registry.runs() {
		own[open.ID] = true
	}
	order := c.router.cfg.Queues.move(id, before, own)
	if order == nil {
		return handoff.Fault(handoff.CodeMalformed, "one of the two does not wait there any more", "")
	}
	for i, waiting := range order {
		c.registry.change(waiting, func(rec *handoff.Record) {
			if rec.Waits != "" {
				rec.Place = i + 1
			}
		})
	}
	return nil
}

// move puts a run that waits before another one of the same queue, or behind all of them: "". Only runs of own change
// places, among themselves. It returns those in their new order; nil: one of the two does not wait there, and nothing
// changes.
func (l *Queues) move(id, before string, own map[string]bool) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.all {
		if !slices.Contains(n.waiting, id) {
			continue
		}
		order := slices.DeleteFunc(slices.Clone(n.waiting), func(w string) bool { return !own[w] || w == id })
		to := len(order)
		if before != "" {
			to = slices.Index(order, before)
		}
		if to < 0 || !own[id] {
			return nil
		}
		order = slices.Insert(order, to, id)
		next := 0
		for i, w := range n.waiting {
			if own[w] {
				n.waiting[i] = order[next]
				next++
			}
		}
		n.wake() // another one may be first now
		return order
	}
	return nil
}

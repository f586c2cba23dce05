package router

import (
	"context"
	"slices"

	"switchboard/handoff"
)

// Move puts waiting work before another piece of work that waits in the same queue, or behind all of the caller's: "".
// It begins and ends nothing, and the work of other callers keeps its place. If one of the two does not wait there any
// more, nothing changes, and Move returns an error. (After a restart no work waits in a queue: it is paused instead.)
func (v Service) Move(_ context.Context, g handoff.Grant, id, before string) error {
	if err := g.May(handoff.ActMove); err != nil {
		return err
	}
	c := v.of(g.Caller)
	rec, w := c.registry.find(id)
	switch {
	case rec.ID == "" || !rec.Shown(g):
		return c.router.notFound()
	case w == nil, rec.Outcome != "":
		return handoff.Fault(handoff.CodeWorkEnded, "", "")
	}
	c.registry.moving.Lock() // so that the shown places come from one order
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

// move puts a waiting run before another one of the same queue, or behind all of them: "". Only runs of own change
// places, among themselves. It returns own's waiting runs in their new order, or nil, without a change, if one of the
// two does not wait there.
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
		n.wake() // another run may be first now
		return order
	}
	return nil
}

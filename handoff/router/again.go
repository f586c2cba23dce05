package router

import (
	"context"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// keyed is what a request is known by: the key of its ledger entry, and the hash of what was asked.
type keyed struct{ key, args string }

func keyedBy(c handoff.Caller, key, args string) keyed {
	return keyed{ledger.Key("runs of "+c.String(), key), args}
}

// again returns the id of the run that a request which may be of a former life is the same as; "" when it is to be
// begun. What is over and was told stands in the ledger alone.
func (c *caller) again(ctx context.Context, k keyed) (string, error) {
	if err := c.router.Recovered(ctx, storeTimeout); err != nil {
		return "", err
	}
	switch known, e := c.registry.same(k); {
	case e != nil:
		return "", e
	case known != "", c.router.past == nil:
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	e, ok, err := c.router.past.Find(ctx, c.who, k.key)
	switch {
	case err != nil:
		return "", handoff.Because(handoff.CodeStoreDown, "", err)
	case !ok, e.Free():
		return "", nil
	case e.Args != k.args:
		return "", handoff.Fault(handoff.CodeConflict, "", "")
	case e.Status != handoff.StatusDelivered:
		c.adopt(ctx, []ledger.Entry{e})
	default:
		rec, err := c.pastRecord(ctx, e)
		if err != nil {
			return "", handoff.Because(handoff.CodeStoreDown, "", err)
		}
		c.registry.opening.Lock()
		if known, _ := c.registry.find(rec.ID); known.ID == "" { // else it was listed, or asked for again, since
			c.open(rec, nil)
		}
		c.registry.restored(rec.ID, e)
		c.registry.opening.Unlock()
	}
	if known, _ := c.registry.same(k); known != "" {
		return known, nil
	}
	// Somebody else reads it at this moment.
	return "", handoff.Fault(handoff.CodeStoreDown, "", "what was done before is being read")
}

// openKeyed adds a record, unless one with its key is there: then it returns that one's id. may is asked before
// it is added, with what still writes of one that had the key and never began.
func (c *caller) openKeyed(
	rec handoff.Record, w *run, k keyed, may func(former *ledgerWriter) *handoff.Error,
) (same string, e *handoff.Error) {
	c.registry.opening.Lock()
	defer c.registry.opening.Unlock()
	by := c.feed.by(w.req.By)
	same, err := c.registry.same(k)
	if same != "" || err != nil {
		return same, err
	}
	former, notBegun := c.registry.freed(k)
	if e := may(former); e != nil {
		return "", e
	}
	if notBegun != "" {
		w.req.Instead = handoff.RunID(notBegun)
	}
	c.open(rec, w)
	c.registry.setKey(rec.ID, k)
	c.registry.closePaused(string(w.req.Instead), rec.ID)
	if by != nil {
		c.registry.with(rec.ID, func(rec *recordState) { rec.offered, rec.hears = true, by })
	}
	return "", nil
}

// open adds a record. Where it takes the place of one that is still to be told, that is left to the ledger, in which a
// later call finds it; the entries of others are let go of once all of them is written.
func (c *caller) open(rec handoff.Record, w *run) {
	if removed := c.registry.open(rec, w); removed != nil && !removed.heard() {
		removed.writer.release()
	}
}

// same returns the id of the record that has a key, unless the key is free.
func (g *registry) same(k keyed) (string, *handoff.Error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	rec := g.findLocked(g.byKey[k.key])
	switch {
	case rec == nil, rec.free():
		return "", nil
	case rec.key.args != k.args:
		return "", handoff.Fault(handoff.CodeConflict, "", "")
	}
	return rec.ID, nil
}

// free reports whether the key of the record may be asked under again; see [ledger.Entry.Free].
func (r *recordState) free() bool {
	if r.begun != "" { // what was begun instead has the words
		return false
	}
	e := ledger.Entry{Status: r.State, Attempt: r.attempt, Facts: ledger.Facts{Turn: r.TurnID, Outcome: r.Outcome}}
	if r.Error != nil {
		e.Code = r.Error.Code
	}
	if r.Paused { // heard or not, the caller has not decided yet
		e.Status = handoff.StatusCompleted
	}
	return e.Free()
}

// freed returns what writes of the record that had a free key, and its id if the caller is asked about it; nothing when
// nobody had it.
func (g *registry) freed(k keyed) (writer *ledgerWriter, notBegun string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	rec := g.findLocked(g.byKey[k.key])
	if rec == nil {
		return nil, ""
	}
	if rec.NotBegun() {
		notBegun = rec.ID
	}
	return rec.writer, notBegun
}

// setKey notes by what a record is known.
func (g *registry) setKey(id string, k keyed) {
	g.with(id, func(rec *recordState) { rec.key, g.byKey[k.key] = k, id })
}

// restored notes by what the record of an entry is known, whether it was sent, and that the ledger has it.
func (g *registry) restored(id string, e ledger.Entry) {
	g.setKey(id, keyed{e.Key, e.Args})
	g.with(id, func(rec *recordState) { rec.attempt, rec.log.noted = e.Attempt, true })
}

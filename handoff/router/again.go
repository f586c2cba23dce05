package router

import (
	"cmp"
	"context"
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// ledgerKey identifies a request: by the key of its ledger entry, and the hash of its arguments.
type ledgerKey struct{ key, args string }

func ledgerKeyOf(c handoff.Caller, key, args string) ledgerKey {
	return ledgerKey{ledger.Key("runs of "+c.String(), key), args}
}

// findRepeat returns the id of the run that a request repeats, also if that run is of an earlier life; "": there is
// none, and the request begins one. A run that is over and was heard may be in the ledger alone.
func (c *caller) findRepeat(ctx context.Context, k ledgerKey) (string, error) {
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
		return "", handoff.StoreDown(err)
	case !ok, e.Free():
		return "", nil
	case e.Args != k.args:
		return "", handoff.Fault(handoff.CodeConflict, "", "")
	case e.Status != handoff.StatusDelivered:
		c.adopt(ctx, []ledger.Entry{e})
	default:
		rec, err := c.pastRecord(ctx, e)
		if err != nil {
			return "", handoff.StoreDown(err)
		}
		c.registry.opening.Lock()
		if known, _ := c.registry.find(rec.ID); known.ID == "" { // else it was added meanwhile
			c.open(rec, nil)
		}
		c.registry.restored(rec.ID, e)
		c.registry.opening.Unlock()
	}
	if known, _ := c.registry.same(k); known != "" {
		return known, nil
	}
	// Another goroutine is taking it up.
	return "", handoff.Fault(handoff.CodeStoreDown, handoff.WhyStoreReading, "")
}

// openKeyed adds a record, unless there is one with the same key, whose id it returns. Before it adds the record it
// calls may, which may refuse; former is the writer of an earlier run that had the key and never began, or nil.
func (c *caller) openKeyed(
	rec handoff.Record, w *run, k ledgerKey, may func(former *ledgerWriter) *handoff.Error,
) (same string, e *handoff.Error) {
	c.registry.opening.Lock()
	defer c.registry.opening.Unlock()
	by := c.feed.attendanceOf(w.req.By)
	same, err := c.registry.same(k)
	if same != "" || err != nil {
		return same, err
	}
	same, unbegun := c.registry.repeated(w.req.Print)
	if same != "" {
		return same, nil
	}
	former, notBegun := c.registry.formerOf(k)
	notBegun = cmp.Or(notBegun, unbegun)
	if e := may(former); e != nil {
		return "", e
	}
	if notBegun != "" {
		w.req.Instead = handoff.RunID(notBegun)
	}
	c.open(rec, w)
	c.registry.setKey(rec.ID, k)
	c.registry.closePaused(string(w.req.Instead), rec.ID)
	c.registry.with(rec.ID, func(rec *recordState) {
		if rec.print, rec.asking = w.req.Print, w.asking; by != nil {
			rec.offered, rec.attendedBy = true, by
		}
	})
	return "", nil
}

// findAsked returns the id of the run that a request repeats, by its key or its print; "": it begins one.
func (c *caller) findAsked(ctx context.Context, req handoff.Request, args string) (same string, err error) {
	if req.Again {
		same, err = c.findRepeat(ctx, ledgerKeyOf(c.who, req.Key, args))
	}
	if same == "" && err == nil && req.Print != "" {
		same, err = c.findPrinted(ctx, req.Print)
	}
	return same, err
}

// findPrinted returns the id of the work that a request with a print repeats, also if that is of an earlier life; "":
// there is none, and the request begins one.
func (c *caller) findPrinted(ctx context.Context, print string) (string, error) {
	if err := c.router.Recovered(ctx, storeTimeout); err != nil {
		return "", err
	}
	if err := c.router.Recall(ctx, c.who); err != nil { // work that somebody else was told of is history
		return "", handoff.StoreDown(err)
	}
	same, _ := c.registry.repeated(print)
	return same, nil
}

// repeated returns the id of the newest record with a print, or the one that was begun in its place. If such a record
// was not begun, and may be begun by a repetition, repeated returns its id as unbegun. Both are "" if there is none.
func (g *registry) repeated(print string) (same, unbegun string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, rec := range slices.Backward(g.records) {
		switch {
		case print == "" || rec.print != print || !rec.repeatable():
			continue
		case !rec.free():
			return cmp.Or(rec.begunAs, rec.ID), ""
		case rec.NotBegun():
			return "", rec.ID
		}
		break
	}
	return "", ""
}

// repeatable reports whether the request of the record can be repeated by its print.
func (r *recordState) repeatable() bool {
	return r.print != "" && !r.asking && time.Since(r.CreatedAt) < ledger.KeyFor
}

// Answered notes that who asked for work has the answer, whatever that is: the same request is new work then.
func (v Service) Answered(g handoff.Grant, id handoff.RunID) {
	printed, records := false, &v.of(g.Caller).registry
	records.with(string(id), func(rec *recordState) { printed, rec.print = rec.print != "", "" })
	if printed {
		records.writer(string(id)).setPrint(ledger.Answered)
	}
}

// Told is Answered and Heard: who asked was told the outcome.
func (v Service) Told(ctx context.Context, g handoff.Grant, id handoff.RunID) error {
	v.Answered(g, id)
	return v.Heard(ctx, g, id)
}

// open adds a record. If that removes a record whose outcome was not heard, its ledger entry is released at once, so
// that a later call finds it there. Other entries are released when their last step is written.
func (c *caller) open(rec handoff.Record, w *run) {
	if removed := c.registry.open(rec, w); removed != nil && !removed.heard() {
		removed.writer.release()
	}
}

// same returns the id of the record that has a key, or "" if the key is free. It is a conflict if that record had other
// arguments.
func (g *registry) same(k ledgerKey) (string, *handoff.Error) {
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

// free reports whether a new run may have the key of the record; see [ledger.Entry.Free].
func (r *recordState) free() bool {
	if r.begunAs != "" { // the run that was begun instead has the words
		return false
	}
	e := ledger.Entry{Status: r.State, Attempt: r.attempts, Facts: ledger.Facts{Turn: r.TurnID, Outcome: r.Outcome}}
	if r.Error != nil {
		e.Code = r.Error.Code
	}
	if r.Paused { // the caller has not decided yet, even if the outcome was heard
		e.Status = handoff.StatusCompleted
	}
	return e.Free()
}

// formerOf returns the writer of the record that had a key, which is free now, and the record's id if it was not begun.
// Without such a record both are zero.
func (g *registry) formerOf(k ledgerKey) (writer *ledgerWriter, notBegun string) {
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

// setKey sets the key of a record.
func (g *registry) setKey(id string, k ledgerKey) {
	g.with(id, func(rec *recordState) { rec.key, g.byKey[k.key] = k, id })
}

// printOf returns the print of an entry, or "" if its asker has the answer.
func printOf(e ledger.Entry) string {
	if e.Print == ledger.Answered {
		return ""
	}
	return e.Print
}

// restored sets the fields of a record that were restored from its entry: the key, the print, the number of attempts,
// and that the ledger has it.
func (g *registry) restored(id string, e ledger.Entry) {
	g.setKey(id, ledgerKey{e.Key, e.Args})
	g.with(id, func(rec *recordState) { rec.attempts, rec.log.noted, rec.print = e.Attempt, true, printOf(e) })
}

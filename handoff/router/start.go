package router

import (
	"context"
	"strings"
	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/phase"
	"switchboard/handoff/tools"
	"time"
)

// maxKey bounds the name that an asker gives a request, in bytes.
const maxKey = 256

// Start takes work from somebody who is not in a call, and returns its record once the ledger has it: from there
// on it has exactly one outcome, which is on the feed, in the record, and told in the caller's open or next call.
// What cannot be begun is an error instead. The same key again, in any life of the process, starts nothing: it
// gives the same record, or [handoff.CodeConflict] when something else was asked under it.
func (r *Router) Start(ctx context.Context, g handoff.Grant, req handoff.RunRequest) (handoff.Record, error) {
	args, err := runArguments(req)
	switch {
	case err != nil:
		return handoff.Record{}, err
	case len(req.Key) > maxKey:
		return handoff.Record{}, handoff.Fault(handoff.CodeTooLarge, "the key of the request", "")
	case g.Caller.Nameless(): // nobody could ever hear of it
		return handoff.Record{}, handoff.Fault(handoff.CodeNotGranted, "work outside of a call needs a named caller", "")
	}
	id, b := r.nextID(), r.book(g.Caller)
	w := r.newWork(id, g.Caller, b, endedCall())
	if req.Key == "" {
		req.Key = id
	}
	asked := keyed{ledger.Key("runs of "+g.Caller.String(), req.Key), ledger.Hash(handoff.Encode(args))}
	now := time.Now()
	w.grant, w.args, w.began, w.asked, w.alone = g, args, now, now, true
	w.req.CallID = req.Key
	rec := handoff.Record{ID: id, Server: args.Server, Prompt: args.Prompt, State: handoff.StatusAccepted, CreatedAt: now}
	same, e := b.openKeyed(rec, w, asked, func() *handoff.Error {
		if e := r.rates.take(g, now); e != nil {
			return e
		}
		w.line = r.newLine(asked.key, g.Caller, id, asked.args)
		return nil
	})
	switch {
	case e != nil:
		return handoff.Record{}, e
	case same != "":
		return r.Handoff(g, same)
	}
	if !r.start(w.run) {
		r.cancelUnrun(b, id)
		return handoff.Record{}, handoff.Fault(handoff.CodeShutdown, "", "")
	}
	return r.promised(ctx, w)
}

// Steer gives more words to work that runs, as a request of its own: they go into its turn, or, should that end
// this moment, come after it in the same session.
func (r *Router) Steer(ctx context.Context, g handoff.Grant, id string, req handoff.RunRequest) (handoff.Record, error) {
	rec, w := r.book(g.Caller).find(id)
	switch {
	case rec.ID == "" || !rec.Shown(g):
		return handoff.Record{}, handoff.Fault(handoff.CodeNotFound, "such work", "")
	case w == nil, rec.Outcome != "":
		return handoff.Record{}, handoff.Fault(handoff.CodeWorkEnded, "", "")
	case rec.ThreadID == "" || rec.ThreadID == handoff.NewThread:
		return handoff.Record{}, handoff.Fault(handoff.CodeMalformed, "that work has no session yet; ask again in a moment", "")
	}
	req.Target = handoff.Target{Server: rec.Server, Project: rec.Project, Thread: rec.ThreadID}
	return r.Start(ctx, g, req)
}

// runArguments checks a request as those of the voice model are checked.
func runArguments(req handoff.RunRequest) (tools.CodexArguments, error) {
	server := strings.TrimSpace(req.Target.Server)
	if req.Target.Project != "" {
		server += "/" + req.Target.Project
	}
	args := tools.CodexArguments{Server: server, Thread: req.Target.Thread, Prompt: req.Prompt}
	return args, args.Check()
}

// promised waits until the ledger has the work, or until it is over without that: then whoever asked hears why,
// unless they have gone.
func (r *Router) promised(ctx context.Context, w *work) (handoff.Record, error) {
	select {
	case <-w.entry:
	case <-w.over:
	}
	rec, _ := w.book.find(w.ID)
	select {
	case <-w.entry:
		return rec, nil
	default:
	}
	if ctx.Err() != nil {
		r.keep(w.caller, w.book, w.ID)
		return rec, handoff.AsError(context.Cause(ctx))
	}
	r.delivered(w.book, w.ID)
	if rec.Fault != nil {
		return rec, rec.Fault
	}
	return rec, nil
}

// cancelUnrun closes the record of work that the end of the process kept from running.
func (r *Router) cancelUnrun(b *book, id string) {
	b.change(id, func(rec *handoff.Record) {
		rec.State, rec.Outcome, rec.EndedAt = handoff.StatusCompleted, handoff.OutcomeCancelled, new(time.Now())
	})
	b.ended(id)
}

// offerToCalls leaves work that no call asked for to a call of its caller, now or later.
func (w *work) offerToCalls() {
	w.order(order{fact: phase.FactCallEnded})
	w.book.orphan(w.ID)
	if live := w.book.live(); live != nil {
		live.post(func(s *serving) { s.adopt(w) })
	}
}

// keyed is what a request is known by: the key of its ledger entry, and the hash of what was asked.
type keyed struct{ key, args string }

// openKeyed adds a record, unless one with its key is there: then it returns that one's id. may is asked before
// it is added.
func (b *book) openKeyed(rec handoff.Record, w *work, k keyed, may func() *handoff.Error) (same string, e *handoff.Error) {
	b.opening.Lock()
	defer b.opening.Unlock()
	b.mu.Lock()
	for id, other := range b.keys {
		if other.key == k.key {
			b.mu.Unlock()
			if other.args != k.args {
				return "", handoff.Fault(handoff.CodeConflict, "", "")
			}
			return id, nil
		}
	}
	b.mu.Unlock()
	if e := may(); e != nil {
		return "", e
	}
	b.open(rec, w)
	b.setKey(rec.ID, k)
	return "", nil
}

// setKey notes by what a record is known.
func (b *book) setKey(id string, k keyed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.findLocked(id) != nil {
		b.keys[id] = k
	}
}

package router

import (
	"context"
	"iter"
	"sync"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/work"
)

// Start implements [handoff.Handoffs]. With [handoff.CodeJoined] comes the id of a handoff that was begun earlier in
// place of the same handoff (see [handoff.Request]).
func (v Service) Start(ctx context.Context, g handoff.Grant, req handoff.Request) (handoff.ID, error) {
	r, done, err := v.giver(g)
	if err != nil {
		return "", err
	}
	defer done()
	return r.startAs(ctx, g, req, work.ArgsOf(req))
}

// Repeats returns the handoff that Start would return for a request because it is one that is known; "": Start would
// begin one. A front that checks other things before Start asks Repeats first: for a repetition those may look
// different by now.
func (v Service) Repeats(ctx context.Context, g handoff.Grant, req handoff.Request) (handoff.ID, error) {
	r, done, err := v.giver(g)
	if err != nil {
		return "", err
	}
	defer done()
	same, _, err := r.findAsked(ctx, req, work.ArgsOf(req))
	return handoff.ID(same), err
}

// startAs is Start; args is the hash of the request's arguments.
func (r *Router) startAs(ctx context.Context, g handoff.Grant, req handoff.Request, args string) (handoff.ID, error) {
	if g.Caller != r.cfg.Caller {
		return "", handoff.Fault(handoff.CodeInternal, "", "the router of another caller was asked")
	}
	same, former, err := r.findAsked(ctx, req, args)
	if same != "" || err != nil {
		return handoff.ID(same), err
	}
	req.Waits = req.Waits && ctx.Err() == nil
	a := &work.Asked{Grant: g, Request: req, Args: args, Former: former}
	a.Span = handoff.SpanOf(ctx).Begin("handoff")
	if ask(r, a); !a.New {
		a.Span.End(handoff.CodeOf(a.Err))
		return a.ID, a.Err
	}
	if req.Waits && req.Print != "" {
		context.AfterFunc(ctx, func() { ask(r, &work.Gone{ID: string(a.ID)}) })
	}
	return a.ID, nil
}

// findAsked returns the id of the handoff that a request repeats, by its key or its print, also if that is of an
// earlier life; "": there is none, and the request begins one. former is the past entry of its key, which is free.
func (r *Router) findAsked(
	ctx context.Context, req handoff.Request, args string,
) (same string, former *ledger.Entry, err error) {
	switch {
	case req.First: // nothing that has to be read
		ask(r, &work.Repeats{Print: req.Print, First: true})
		return "", nil, nil
	case !req.Again && req.Print == "":
		return "", nil, nil
	}
	if err := r.Recovered(ctx, work.StoreTakes); err != nil {
		return "", nil, err
	}
	if req.Print != "" {
		if err := r.Recall(ctx, r.cfg.Caller); err != nil { // work that somebody else was told of is history
			return "", nil, handoff.StoreDown(err)
		}
	}
	if err := r.open(ctx); err != nil {
		return "", nil, err
	}
	known := &work.Repeats{Args: args, Print: req.Print, Surely: req.Again}
	if req.Again && req.Key != "" {
		known.Key = work.KeyOf(r.cfg.Caller, req.Key)
	}
	if ask(r, known); known.ID != "" || known.Err != nil {
		return known.ID, nil, asError(known.Err)
	}
	if known.Key == "" || r.past == nil {
		return "", nil, nil
	}
	return r.findPast(ctx, known.Key, args)
}

// findPast looks for a handoff that is over and was heard, which may be in the store alone.
func (r *Router) findPast(ctx context.Context, key, args string) (same string, former *ledger.Entry, err error) {
	ctx, cancel := context.WithTimeout(ctx, work.StoreTakes)
	defer cancel()
	e, ok, err := r.past.Find(ctx, r.cfg.Caller, key)
	switch {
	case err != nil:
		return "", nil, handoff.StoreDown(err)
	case !ok:
		return "", nil, nil
	case e.Outcome == "": // it is about to be over, and the store does not have that yet
		return "", nil, handoff.Fault(handoff.CodeStoreDown, handoff.WhyStoreReading, "")
	case e.Free():
		return "", &e, nil
	case e.Args != args:
		return "", nil, handoff.Fault(handoff.CodeConflict, "", "")
	}
	bodies, err := r.past.Bodies(ctx, r.cfg.Caller, key)
	if err != nil {
		return "", nil, handoff.StoreDown(err)
	}
	p := ask(r, &work.Past{Entry: e, Body: bodies[key], Args: args})
	return p.ID, nil, nil
}

// Give is Start for fronts that must be sure: it returns the record once the store has the work. If the handoff ends
// without having begun, its fault is returned as an error.
func (v Service) Give(ctx context.Context, g handoff.Grant, req handoff.Request) (handoff.Record, error) {
	r, done, err := v.giver(g)
	if err != nil {
		return handoff.Record{}, err
	}
	defer done()
	return r.giveAs(ctx, g, req, work.ArgsOf(req))
}

// giveAs is Give; args is the hash of the request's arguments.
func (r *Router) giveAs(
	ctx context.Context, g handoff.Grant, req handoff.Request, args string,
) (handoff.Record, error) {
	req.Waits = true
	id, err := r.startAs(ctx, g, req, args)
	if err != nil {
		return handoff.Record{}, err
	}
	return r.promised(ctx, g, id)
}

// promised waits until the store has a handoff, or its outcome, and returns its record.
func (r *Router) promised(ctx context.Context, g handoff.Grant, id handoff.ID) (handoff.Record, error) {
	hasEnded := false // it has an outcome, which is returned once the store has that, too
	for e, err := range r.Follow(ctx, g, id, 0) {
		if err != nil {
			// The client has gone, so the outcome of work that was never noted is kept.
			if found := ask(r, &work.Find{ID: string(id)}); !found.Open && found.Record.State == handoff.StatusCompleted {
				ask(r, &work.Keep{ID: string(id)})
			}
			return handoff.Record{}, err
		}
		_, ended := e.Kind.(handoff.EventEnded)
		switch {
		case ended && hasEnded:
			return r.Handoff(g, string(id))
		case e.Noted || e.Record.State == handoff.StatusDelivered:
			hasEnded = e.Record.Outcome != "" || ask(r, &work.Find{ID: string(id)}).Over // the event may be an old one
			if !hasEnded {
				return e.Record, nil
			}
		case ended && ctx.Err() != nil: // nobody is there to be told
			ask(r, &work.Keep{ID: string(id)})
			return e.Record, handoff.AsError(ctx.Err())
		case ended:
			err := r.Heard(ctx, g, id)
			if e.Record.Fault != nil {
				err = e.Record.Fault
			}
			return e.Record, err
		}
	}
	return r.Handoff(g, string(id))
}

// Steer gives more words to running work, as a separate request. They go into its turn, or, if the turn ends at this
// moment, into a new turn of the same session. It waits as [Service.Give] does.
func (v Service) Steer(ctx context.Context, g handoff.Grant, id string, req handoff.Request) (handoff.Record, error) {
	if err := g.May(handoff.ActGive); err != nil {
		return handoff.Record{}, err
	}
	r := v.of(g.Caller)
	args := ledger.Hash(handoff.Encode([]any{"steer", id, req.Input}))
	switch same, _, err := r.findAsked(ctx, req, args); { // the work may have ended since
	case err != nil:
		return handoff.Record{}, err
	case same != "":
		return r.promised(ctx, g, handoff.ID(same))
	}
	found := ask(r, &work.Find{ID: id})
	rec := found.Record
	switch {
	case rec.ID == "" || !rec.Shown(g):
		return handoff.Record{}, r.notFound()
	case !found.Open, rec.Outcome != "":
		return handoff.Record{}, handoff.Fault(handoff.CodeWorkEnded, "", "")
	case rec.ThreadID == "" || rec.ThreadID == handoff.NewThread:
		e := handoff.Fault(handoff.CodeMalformed, "that work has no session yet; ask again in a moment", "")
		return handoff.Record{}, e
	}
	req.Target = handoff.Target{Server: rec.Server, Project: rec.Project, Thread: rec.ThreadID}
	return r.giveAs(ctx, g, req, args)
}

// Follow implements [handoff.Handoffs].
func (v Service) Follow(
	ctx context.Context, by handoff.Grant, id handoff.ID, after uint64,
) iter.Seq2[handoff.Event, error] {
	r := v.of(by.Caller)
	return func(yield func(handoff.Event, error) bool) {
		ask(r, &work.Follows{ID: string(id), N: 1})
		defer func() { ask(r, &work.Follows{ID: string(id), N: -1}) }()
		for read := (&work.Read{ID: string(id), After: after}); ; {
			ask(r, read)
			if len(read.Events) == 0 && read.Changed == nil && !read.Over {
				yield(handoff.Event{}, r.notFound())
				return
			}
			for _, e := range read.Events {
				if !e.Record.Shown(by) {
					yield(handoff.Event{}, r.notFound())
					return
				}
				if !yield(e, nil) {
					return
				}
			}
			if read.Over {
				return
			}
			select {
			case <-read.Changed:
			case <-ctx.Done():
				yield(handoff.Event{}, handoff.AsError(context.Cause(ctx)))
				return
			}
		}
	}
}

// Answered notes that who asked for work has the answer, whatever that is, or wants none: the same request is new work
// then. For the time lost, while the answer may be lost on its way, one with [handoff.Request.Again] is the same work.
func (v Service) Answered(g handoff.Grant, id handoff.ID, lost time.Duration) {
	ask(v.of(g.Caller), &work.Answered{ID: string(id), Lost: lost})
}

// Told is Answered and Heard: who asked was told the outcome.
func (v Service) Told(ctx context.Context, g handoff.Grant, id handoff.ID) error {
	v.Answered(g, id, 0)
	return v.Heard(ctx, g, id)
}

// Heard implements [handoff.Handoffs].
func (v Service) Heard(_ context.Context, g handoff.Grant, id handoff.ID) error {
	_, err := v.heard(g, id)
	return err
}

// HeardForGood is Heard, and waits for the store, for a second at most. It is for fronts that answer a client: if the
// process were killed before that, the outcome would be told again.
func (v Service) HeardForGood(ctx context.Context, g handoff.Grant, id handoff.ID) error {
	kept, err := v.heard(g, id)
	await(ctx, kept)
	return err
}

func (v Service) heard(g handoff.Grant, id handoff.ID) (kept <-chan struct{}, err error) {
	r := v.of(g.Caller)
	e := ask(r, &work.Heard{Grant: g, ID: string(id)})
	return e.Kept, r.orUnread(e.Err)
}

// keptWithin bounds how long somebody waits for the store.
const keptWithin = time.Second

// await waits until the store has something, for [keptWithin] at most. nil has nothing to wait for.
func await(ctx context.Context, kept <-chan struct{}) {
	if kept == nil {
		return
	}
	select {
	case <-kept:
	case <-time.After(keptWithin):
	case <-ctx.Done():
	}
}

// Attend lets l hear of handoffs of the grant's caller: of those that it starts, of those whose listener has left, and
// of those that ended while nobody attended. leave ends that. Outcomes that l was given and nobody heard go to the next
// listener.
func (v Service) Attend(g handoff.Grant, l handoff.Listener) (leave func()) {
	r := v.home(g.Caller)
	a := &work.Attendance{Grant: g, Listener: l}
	ask(r, &work.Attend{Attendance: a})
	return sync.OnceFunc(func() { ask(r, &work.Leave{Attendance: a}) })
}

// Stop stops a handoff: one whose turn has not started is cancelled, others are interrupted. The outcome follows on the
// feed. Work that waits for the handoff is paused, and the caller is asked about it. Work that is paused already is
// dropped. What it does to a turn that somebody else began, and that is watched, is said by of; else the error has
// [handoff.CodeNoConsent]. Stop waits only for [Router.Recovered], and for the store when it drops work, each for a
// short time.
func (v Service) Stop(ctx context.Context, g handoff.Grant, id string, of handoff.StopOf) error {
	act := handoff.ActStop
	if of == handoff.StopWatching {
		act = handoff.ActWatch
	}
	if err := g.May(act); err != nil {
		return err
	}
	r := v.of(g.Caller)
	e := ask(r, &work.Stop{Grant: g, ID: id, Of: of})
	if handoff.CodeOf(e.Err) == handoff.CodeNotFound && r.Recovered(ctx, work.StoreTakes) == nil {
		e = ask(r, &work.Stop{Grant: g, ID: id, Of: of})
	}
	await(ctx, e.Kept)
	return r.orUnread(e.Err)
}

// Move puts waiting work before another piece of work that waits in the same queue, or behind all of the caller's: "".
// It begins and ends nothing, and the work of other callers keeps its place. If one of the two does not wait there any
// more, nothing changes, and Move returns an error. (After a restart no work waits in a queue: it is paused instead.)
func (v Service) Move(_ context.Context, g handoff.Grant, id, before string) error {
	if err := g.May(handoff.ActMove); err != nil {
		return err
	}
	r := v.of(g.Caller)
	return r.orUnread(ask(r, &work.Move{Grant: g, ID: id, Before: before}).Err)
}

// asError returns an error that may be nil.
func asError(e *handoff.Error) error {
	if e == nil {
		return nil
	}
	return e
}

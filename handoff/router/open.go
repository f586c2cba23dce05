package router

import (
	"context"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/work"
)

// TakeUp takes up the work that an earlier life left: left is what the store has of the caller; nil: TakeUp reads it.
// Turns that run, or may run, are looked for and followed; outcomes that nobody heard go into the outbox. TakeUp starts
// no turn. It returns when that is done or ctx ends, and waits for a store that is away.
func (r *Router) TakeUp(ctx context.Context, left *ledger.State) {
	take := r.open
	if left != nil {
		take = func(ctx context.Context) error { return r.opened(ctx, *left) }
	}
	for try := 0; take(ctx) != nil; try++ {
		if !r.cfg.Pause(ctx, try) {
			return
		}
	}
	r.LeftNothing()
}

// LeftNothing is called in place of [Router.TakeUp] if the store has no open work of the caller.
func (r *Router) LeftNothing() { r.takenUp.Do(func() { close(r.recovered) }) }

// open reads what the store has of the caller, unless that was done. An error has code [handoff.CodeStoreDown].
func (r *Router) open(ctx context.Context) error {
	open := false
	if r.call(func() { open = r.state.IsOpen() }); open {
		return nil
	}
	if err := r.load(ctx); err != nil {
		return handoff.StoreDown(err)
	}
	return nil
}

// load reads what the store has of the caller. It is of no use if another home may have the caller by then, since that
// one goes on from the store.
func (r *Router) load(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, work.StoreTakes)
	state, err := r.cfg.Store.State(limited, r.cfg.Caller)
	cancel()
	if err == nil {
		err = r.act(func() error { return nil })
	}
	if err != nil {
		r.cfg.Log.Warn("a caller is not read", zap.String("principal", r.cfg.Caller.Principal), zap.Error(err))
		ask(r, &work.Opened{Err: err})
		return err
	}
	return r.opened(ctx, state)
}

// opened reads the whole words of the open handoffs of a state, and has the state take both.
func (r *Router) opened(ctx context.Context, state ledger.State) error {
	o := &work.Opened{State: state, Bodies: map[string]ledger.Body{}}
	for _, e := range ledger.Entries(state.Documents, func(string) {}) {
		if r.past == nil || e.Unkept {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, work.StoreTakes) // each: there may be many
		body, _, err := r.past.Body(limited, r.cfg.Caller, e.Key)
		cancel()
		if err != nil {
			r.cfg.Log.Warn("whole words are not read", zap.String("handoff", e.ClientID), zap.Error(err))
			o.Err = handoff.Because(handoff.CodeUnreachable, "the store", err)
			break
		}
		o.Bodies[e.Key] = body
	}
	ask(r, o)
	return o.Err
}

// maxRecalled bounds the history that a caller gets back after a restart: the newest records.
const maxRecalled = 50

// Recall reads a caller's newest work of earlier lives of the router, so that [Service.Handoffs] lists it, too. It
// reads once; if the store does not answer, the next Recall tries again.
func (v Service) Recall(ctx context.Context, c handoff.Caller) error {
	r := v.of(c)
	if r.past == nil || c.Nameless() || ask(r, &work.HasPast{}).Known {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, work.StoreTakes)
	defer cancel()
	page, err := r.past.History(ctx, c, ledger.HistoryQuery{Limit: maxRecalled})
	if err != nil {
		r.cfg.Log.Warn("history not read", zap.Error(err))
		return err
	}
	if len(page.Entries) > 0 {
		r = v.home(c)
	}
	e := &work.Recalled{}
	for _, row := range page.Entries {
		body, _, err := r.past.Body(ctx, c, row.Key)
		if err != nil {
			r.cfg.Log.Warn("history not read", zap.Error(err))
			return err
		}
		e.Records, e.Prints = append(e.Records, work.PastRecord(row, body, r.registered)), append(e.Prints, row.Print)
	}
	ask(r, e)
	return nil
}

// Past returns what the store keeps of a caller's work under a key, whether it is history yet or not: its words and its
// details, but not its state. It returns false if nothing is kept.
func (v Service) Past(ctx context.Context, g handoff.Grant, key string) (handoff.Record, bool, error) {
	past := v.of(g.Caller).past
	if err := g.May(handoff.ActRead); err != nil || past == nil {
		return handoff.Record{}, false, err
	}
	body, ok, err := past.Body(ctx, g.Caller, key)
	if err != nil || !ok {
		return handoff.Record{}, false, err
	}
	return work.KeptRecord(key, body), true, nil
}

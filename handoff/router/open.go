package router

import (
	"context"
	"maps"
	"slices"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/work"
)

// TakeUp takes up the work that an earlier life left: it reads what the store has of the caller, unless that was done.
// Turns that run, or may run, are looked for and followed; outcomes that nobody heard go into the outbox. TakeUp starts
// no turn. It returns when that is done or ctx ends, and waits for a store that is away.
func (r *Router) TakeUp(ctx context.Context) {
	for try := 0; r.open(ctx) != nil; try++ {
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

// bodiesAtOnce bounds how many handoffs are read at once: their texts may be large.
const bodiesAtOnce = 32

// opened reads the whole words of the open handoffs of a state, and has the state take both.
func (r *Router) opened(ctx context.Context, state ledger.State) error {
	o := &work.Opened{State: state, Bodies: map[string]ledger.Body{}}
	var keys []string
	for _, e := range ledger.Entries(state.Documents, func(string) {}) {
		if r.past != nil && !e.Unkept {
			keys = append(keys, e.Key)
		}
	}
	for some := range slices.Chunk(keys, bodiesAtOnce) {
		limited, cancel := context.WithTimeout(ctx, work.StoreTakes)
		bodies, err := r.past.Bodies(limited, r.cfg.Caller, some...)
		cancel()
		if err != nil {
			r.cfg.Log.Warn("whole words are not read", zap.Error(err))
			o.Err = handoff.Because(handoff.CodeUnreachable, "the store", err)
			break
		}
		maps.Copy(o.Bodies, bodies)
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
	keys := make([]string, len(page.Entries))
	for i, row := range page.Entries {
		keys[i] = row.Key
	}
	bodies, err := r.past.Bodies(ctx, c, keys...)
	if err != nil {
		r.cfg.Log.Warn("history not read", zap.Error(err))
		return err
	}
	for _, row := range page.Entries {
		e.Records = append(e.Records, work.PastRecord(row, bodies[row.Key], r.registered))
		e.Prints = append(e.Prints, row.Print)
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
	bodies, err := past.Bodies(ctx, g.Caller, key)
	body, ok := bodies[key]
	if err != nil || !ok {
		return handoff.Record{}, false, err
	}
	return work.KeptRecord(key, body), true, nil
}

package responses

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers/responses/wire"
	"switchboard/servers/turns"
)

const (
	// defaultIterations is how many responses of one turn may call tools. After that the model is asked once more,
	// without tools.
	defaultIterations = 40
	// writeTime bounds one write to the store.
	writeTime = 5 * time.Second
	// stepTries is how often a step is made while it is not known whether it was written.
	stepTries = 3
	// maxUnsure is how many starts wait to be reconciled. Further ones are found lost when their leases have passed.
	maxUnsure = 1024
)

// stepPauses are between the tries of a step.
var stepPauses = handoff.Backoff{First: 100 * time.Millisecond, Longest: time.Second}

// Causes that end a turn from outside.
var (
	errInterrupted = errors.New("interrupted")
	errShutdown    = errors.New("the service was shut down")
	errFenced      = errors.New("somebody else goes on in this thread")
)

// A run is one turn while it runs.
type run struct {
	server    *Server // Set once, like all up to the next comment
	thread    string
	id        handoff.TurnID
	fence     int64
	threading bool // naming responses is not switched off for it
	hub       *hub
	inbox     inbox
	stop      context.CancelCauseFunc
	done      chan struct{} // closed when it has ended and the store knows
	left      bool          // Guarded by the server's mu: its thread ends with it

	// Owned by the loop.
	items   []threads.Item
	anchor  threads.Anchor
	used    usage
	names   names
	forgot  bool           // the upstream did not know the response that was named; everything was sent since
	full    bool           // the context was full, and was compacted
	asked   map[string]int // how often each call was made with the same arguments
	counted int
	unsure  int // how many of the steers that wait may have been heard: the store did not say
}

// main runs the turn to its end and writes that down.
func (r *run) main(ctx context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	beat := make(chan struct{})
	go func() {
		defer close(beat)
		r.beat(ctx, cancel)
	}()
	end := r.loop(ctx)
	cancel(nil)
	<-beat
	r.end(context.WithoutCancel(ctx), end)
	close(r.done)
}

// beat renews the lease until ctx ends.
func (r *run) beat(ctx context.Context, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(threads.Lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_, err := r.server.advance(ctx, r.sign())
			if err != nil && handoff.AsError(err).Code == handoff.CodeTakenOver {
				cancel(errFenced)
			}
		}
	}
}

// sign is a write of the turn without items, which knows nothing of the loop's.
func (r *run) sign() threads.Append {
	return threads.Append{Owner: r.server.cfg.Name, Thread: r.thread, Turn: string(r.id), Fence: r.fence,
		At: r.server.cfg.Now()}
}

// step is a write of the turn by its loop.
func (r *run) step(items []threads.Item) threads.Append {
	w := r.sign()
	w.From, w.Items = len(r.items), items
	return w
}

// loop asks the model and runs what it calls until it has nothing more to call and nobody has more to say.
func (r *run) loop(ctx context.Context) threads.End {
	for {
		a, err := r.ask(ctx)
		if err != nil {
			return r.broken(ctx, err)
		}
		final := r.final()
		r.counted++
		calls := a.calls()
		if len(calls) > 0 && !final {
			if err := r.answer(ctx, calls); err != nil {
				return r.broken(ctx, err)
			}
			continue
		}
		if !r.inbox.closeIfEmpty() {
			continue
		}
		if final || a.Incomplete {
			return threads.End{Status: threads.Incomplete}
		}
		return threads.End{Status: threads.Completed}
	}
}

// final reports whether the next answer is the last: no tool may be called any more.
func (r *run) final() bool { return r.counted >= r.server.cfg.Iterations }

// steered makes items of what the turn was told besides.
func steered(steers []steer) []threads.Item {
	var items []threads.Item
	for _, s := range steers {
		items = append(items, threads.Item{JSON: userItem(s.input)})
	}
	return items
}

// hear keeps what the turn was told besides, now that the model answers to it. Until then it is no part of the
// thread: when it is handed back, no later turn may find it there.
func (r *run) hear(ctx context.Context, steers []steer) error {
	if len(steers) == 0 {
		return nil
	}
	step := r.step(steered(steers))
	step.Heard = steers[len(steers)-1].n
	err := r.write(ctx, step)
	switch {
	case err == nil:
		r.inbox.heard(len(steers))
	case unsure(err):
		r.unsure = len(steers)
	}
	return cmp.Or(err, context.Cause(ctx))
}

// ask asks the model and keeps its answer. A response that the upstream does not know any more is replaced by the
// whole history, once; a full context is compacted, once.
func (r *run) ask(ctx context.Context) (answer, error) {
	for {
		m, up := r.server.cfg.Model, r.server.upstream
		steers := r.inbox.waiting()
		p := planned(slices.Concat(r.items, steered(steers)), r.anchor,
			continuation{ByID: m.byID(r.threading) && !r.forgot, Upstream: up.key, Now: r.server.cfg.Now()})
		params := m.request(asking{
			Plan: p, Threading: r.threading, Thread: r.thread,
			Tools: r.server.definitions, Allowed: r.server.workspace.Allowed(), Final: r.final(),
		})
		a, heard, err := up.ask(ctx, params, listener{
			r.hub, r.names.name, func() error { return r.hear(ctx, steers) },
			func(items []json.RawMessage) error { return r.keep(ctx, r.from(items), nil) },
		})
		if err == nil {
			r.forgot = false
			return a, r.heard(ctx, a, m.stores(r.threading))
		}
		switch said := asRefusal(err); {
		case said != nil && said.kind == refusedForgot && p.Previous != "" && !heard:
			r.forgot = true
			r.server.count.forgotten.Add(1)
			continue
		case said != nil && said.kind == refusedFull && !r.full && !heard:
			if it, ok := compacted(r.items); ok {
				r.full = true
				r.server.count.compacted.Add(1)
				if err := r.keep(ctx, []threads.Item{it}, nil); err != nil {
					return answer{}, err
				}
				continue
			}
		}
		return a, err
	}
}

// from makes items of what the model said.
func (r *run) from(said []json.RawMessage) []threads.Item {
	var items []threads.Item
	for _, it := range said {
		items = append(items, threads.Item{From: r.server.upstream.key, JSON: it})
	}
	return items
}

// heard writes an answer and its usage down. stored says that the next request can name its id.
func (r *run) heard(ctx context.Context, a answer, stored bool) error {
	items := r.from(a.Rest)
	var anchor *threads.Anchor
	if stored && a.ID != "" {
		anchor = &threads.Anchor{Response: a.ID, Upstream: r.server.upstream.key, Items: len(r.items) + len(items),
			At: r.server.cfg.Now()}
	}
	if len(a.Usage.Raw) > 0 {
		r.used = r.used.plus(a.Usage)
		r.hub.report(func(u *turns.Reducer) []handoff.Update { return u.Used(a.Usage.Usage) })
	}
	return r.keep(ctx, items, anchor)
}

// keep writes items down before anything is done with them. An interrupt does not tear it.
func (r *run) keep(ctx context.Context, items []threads.Item, anchor *threads.Anchor) error {
	if len(items) == 0 && anchor == nil {
		return nil
	}
	step := r.step(items)
	step.Anchor = anchor
	return cmp.Or(r.write(ctx, step), context.Cause(ctx))
}

// write makes a step of the loop.
func (r *run) write(ctx context.Context, step threads.Append) error {
	if _, err := r.server.advance(context.WithoutCancel(ctx), step); err != nil {
		return err
	}
	r.items = append(r.items, step.Items...)
	if step.Anchor != nil {
		r.anchor = *step.Anchor
	}
	return nil
}

// broken ends a turn that could not go on.
func (r *run) broken(ctx context.Context, err error) threads.End {
	if cause := context.Cause(ctx); errors.Is(cause, errInterrupted) || errors.Is(cause, errShutdown) {
		return threads.End{Status: threads.Interrupted, Detail: cause.Error()}
	}
	end := threads.End{Status: threads.Failed, Code: string(handoff.CodeAgentFailed)}
	if said := asRefusal(err); said != nil {
		end.Code, end.Detail = string(codes[said.kind]), said.Error()
	} else if e, ok := errors.AsType[*handoff.Error](err); ok {
		end.Code, end.Detail = string(e.Code), e.Detail
	} else {
		end.Detail = handoff.ClipRunes(err.Error(), maxDetail)
	}
	return end
}

// end writes the end down and tells it. An end that cannot be written is told nevertheless; the turn is found lost
// when its lease has passed.
func (r *run) end(ctx context.Context, end threads.End) {
	undelivered := r.inbox.undelivered()
	end.Append, end.Text = r.step(nil), r.hub.answerTo()
	if len(r.used.Raw) > 0 {
		end.Usage = wire.Encode(r.used)
	}
	kept, err := r.server.advance(ctx, end)
	switch {
	case err != nil:
		r.server.log.Warn("the end of a turn could not be written", zap.Error(err))
	case kept.Turn.Until > len(r.items): // they are in the thread after all
		undelivered = undelivered[r.unsure:]
	}
	r.server.forget(r)
	ended := handoff.TurnEnded{
		Status: statuses[end.Status], Code: handoff.Code(end.Code), Detail: end.Detail, Text: end.Text,
		Undelivered: undelivered,
	}
	r.hub.report(func(u *turns.Reducer) []handoff.Update { return u.End(ended, nil) })
}

// statuses are the ends of turns as they are told. Set once.
var statuses = map[threads.Status]handoff.TurnStatus{
	threads.Completed: handoff.TurnCompleted, threads.Incomplete: handoff.TurnCompleted,
	threads.Failed: handoff.TurnFailed, threads.Interrupted: handoff.TurnInterrupted,
}

// interrupt ends the turn from outside. It reports whether there was anything to end.
func (r *run) interrupt(cause error) bool {
	return r.inbox.close(func() { r.stop(cause) })
}

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
	"switchboard/servers/turns"
)

const (
	// defaultIterations is how many responses of one turn may call tools. After that the model is asked once more,
	// without tools.
	defaultIterations = 40
	// writeTime bounds one write to the store.
	writeTime = 5 * time.Second
	// stepTries is how often a step is tried while it is uncertain whether it was written.
	stepTries = 3
	// awayFor is how long a running turn waits for the store.
	awayFor = 10 * time.Minute
	// maxUnsure bounds the starts that wait to be reconciled. Turns of further ones count as lost.
	maxUnsure = 1024
)

// stepPauses are the pauses between these tries.
var stepPauses = handoff.Backoff{First: 100 * time.Millisecond, Longest: time.Second}

// Causes of the end of a turn from outside.
var (
	errInterrupted = errors.New("interrupted")
	errShutdown    = errors.New("the service was shut down")
)

// A run is a running turn.
type run struct {
	// Set once, but for detached.
	server    *Server
	thread    string
	id        handoff.TurnID
	turn      handoff.Turn // what it was started with
	key       string       // of its claim; guarded by the server's starting
	fence     int64        // 0 until it is claimed; likewise
	threading bool         // whether its requests may name responses
	hub       *hub
	inbox     inbox
	stop      context.CancelCauseFunc
	done      chan struct{} // closed when the turn has ended and its end is stored
	detached  bool          // Guarded by the server's mu: an ephemeral thread was closed, and ends with this turn

	// Owned by the loop.
	items        []threads.Item
	anchor       threads.Anchor
	names        names
	resendAll    bool           // the upstream did not know the named response: the next request sends everything
	compacted    bool           // the context was full, and the thread was compacted
	calls        map[string]int // how often each call was made, by name and arguments
	answers      int            // how many answers the model gave
	unsureSteers int            // how many of the waiting steers were perhaps written to the thread
}

// main runs the turn and stores its end.
func (r *run) main(ctx context.Context) {
	end := r.loop(ctx)
	r.end(context.WithoutCancel(ctx), end)
	close(r.done)
}

// emptyStep returns a write of the turn without items. Any goroutine may make one.
func (r *run) emptyStep() threads.Append {
	return threads.Append{Owner: r.server.cfg.Name, Thread: r.thread, Turn: string(r.id), Fence: r.fence,
		At: time.Now()}
}

// step returns a write of items by the loop.
func (r *run) step(items []threads.Item) threads.Append {
	w := r.emptyStep()
	w.From, w.Items = len(r.items), items
	return w
}

// loop asks the model and runs the tools that it calls, until it calls none and no steer waits.
func (r *run) loop(ctx context.Context) threads.End {
	for {
		a, err := r.ask(ctx)
		if err != nil {
			return r.failure(ctx, err)
		}
		final := r.final()
		r.answers++
		calls := a.calls()
		if len(calls) > 0 && !final {
			if err := r.answer(ctx, calls); err != nil {
				return r.failure(ctx, err)
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

// final reports whether the next answer is the last one, which may call no tool.
func (r *run) final() bool { return r.answers >= r.server.cfg.Iterations }

// steered returns steers as items.
func steered(steers []steer) []threads.Item {
	var items []threads.Item
	for _, s := range steers {
		items = append(items, threads.Item{JSON: userItem(s.input)})
	}
	return items
}

// hear stores steers as items, now that the model has begun to answer them. Before that they are no part of the
// thread: if they are returned as undelivered, no later turn may find them there.
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
		r.unsureSteers = len(steers)
	}
	return cmp.Or(err, context.Cause(ctx))
}

// ask asks the model and stores its answer. If the upstream does not know the named response, it sends the whole
// history once; if the context is full, it compacts the thread once.
func (r *run) ask(ctx context.Context) (answer, error) {
	for {
		m, up := r.server.cfg.Model, r.server.upstream
		steers := r.inbox.waiting()
		p := planned(slices.Concat(r.items, steered(steers)), r.anchor,
			continuation{ByID: m.byID(r.threading) && !r.resendAll, Upstream: up.key, Now: time.Now()})
		params := m.request(requestOptions{
			Plan: p, Threading: r.threading, Thread: r.thread,
			Tools: r.server.tools, Allowed: r.server.cfg.Workspace.Allowed(), Final: r.final(),
		})
		a, begun, err := up.ask(ctx, params, listener{
			r.hub, r.names.name, func() error { return r.hear(ctx, steers) },
			func(items []json.RawMessage) error { return r.keep(ctx, r.modelItems(items), nil) },
		})
		if err == nil {
			r.resendAll = false
			return a, r.keepAnswer(ctx, a, m.stores(r.threading))
		}
		switch refusal := asRefusal(err); {
		case refusal != nil && refusal.kind == refusedForgot && p.Previous != "" && !begun:
			r.resendAll = true
			r.server.count.forgotten.Add(1)
			continue
		case refusal != nil && refusal.kind == refusedFull && !r.compacted && !begun:
			if it, ok := compacted(r.items); ok {
				r.compacted = true
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

// modelItems returns output of the model as items.
func (r *run) modelItems(output []json.RawMessage) []threads.Item {
	var items []threads.Item
	for _, it := range output {
		items = append(items, threads.Item{From: r.server.upstream.key, JSON: it})
	}
	return items
}

// keepAnswer stores an answer and its usage. stored says whether the next request can name the id of the answer.
func (r *run) keepAnswer(ctx context.Context, a answer, stored bool) error {
	items := r.modelItems(a.Rest)
	var anchor *threads.Anchor
	if stored && a.ID != "" {
		anchor = &threads.Anchor{Response: a.ID, Upstream: r.server.upstream.key, Items: len(r.items) + len(items),
			At: time.Now()}
	}
	if a.Usage != (handoff.Usage{}) {
		r.hub.report(func(u *turns.Reducer) []handoff.Update { return u.Used(a.Usage) })
	}
	return r.keep(ctx, items, anchor)
}

// keep stores items before anything is done with them. An interrupt does not cut the write short.
func (r *run) keep(ctx context.Context, items []threads.Item, anchor *threads.Anchor) error {
	if len(items) == 0 && anchor == nil {
		return nil
	}
	step := r.step(items)
	step.Anchor = anchor
	return cmp.Or(r.write(ctx, step), context.Cause(ctx))
}

// write makes a step of the loop. While the store is away the turn waits for it, until ctx ends or for awayFor: what it
// has done must be known before it goes on.
func (r *run) write(ctx context.Context, step threads.Append) error {
	for try, began := 1, time.Now(); ; try++ {
		_, err := r.server.advance(context.WithoutCancel(ctx), step)
		if err == nil {
			break
		}
		if !unsure(err) || time.Since(began) > awayFor {
			return err
		}
		select {
		case <-time.After(stepPauses.Pause(try)):
		case <-ctx.Done():
			return err
		}
	}
	r.items = append(r.items, step.Items...)
	if step.Anchor != nil {
		r.anchor = *step.Anchor
	}
	return nil
}

// failure returns the end of a turn that could not go on.
func (r *run) failure(ctx context.Context, err error) threads.End {
	if cause := context.Cause(ctx); errors.Is(cause, errInterrupted) || errors.Is(cause, errShutdown) {
		return threads.End{Status: threads.Interrupted, Detail: cause.Error()}
	}
	end := threads.End{Status: threads.Failed, Code: string(handoff.CodeAgentFailed)}
	if refusal := asRefusal(err); refusal != nil {
		end.Code, end.Detail = string(codes[refusal.kind]), refusal.Error()
	} else if e, ok := errors.AsType[*handoff.Error](err); ok {
		end.Code, end.Detail = string(e.Code), e.Detail
	} else {
		end.Detail = handoff.ClipRunes(err.Error(), maxDetail)
	}
	return end
}

// end stores the end and publishes it. An end that cannot be stored is published all the same: the store goes on to
// call it running, and the next claim takes it for lost.
func (r *run) end(ctx context.Context, end threads.End) {
	undelivered := r.inbox.undelivered()
	end.Append = r.step(nil)
	end.Text, end.Usage = r.hub.result()
	stored, err := r.server.advance(ctx, end)
	switch {
	case err != nil:
		r.server.cfg.Log.Warn("the end of a turn could not be written", zap.Error(err))
	case stored.Turn.Until > len(r.items): // the uncertain steers are in the thread
		undelivered = undelivered[r.unsureSteers:]
	}
	r.server.forget(r)
	ended := handoff.TurnEnded{
		Status: statuses[end.Status], Code: handoff.Code(end.Code), Detail: end.Detail,
		Undelivered: undelivered,
	}
	r.hub.report(func(u *turns.Reducer) []handoff.Update { return u.End(ended, nil) })
}

// statuses are the statuses of ended turns in updates. Set once.
var statuses = map[threads.Status]handoff.TurnStatus{
	threads.Completed: handoff.TurnCompleted, threads.Incomplete: handoff.TurnCompleted,
	threads.Failed: handoff.TurnFailed, threads.Interrupted: handoff.TurnInterrupted,
}

// interrupt ends the turn from outside. It returns false if the turn is ending already.
func (r *run) interrupt(cause error) bool {
	return r.inbox.close(func() { r.stop(cause) })
}

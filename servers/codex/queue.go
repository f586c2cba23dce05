package codex

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// How often queued work is looked for beside listening for it.
const (
	awaitEvery  = 30 * time.Second
	awaitAgain  = 500 * time.Millisecond // it was in neither place: it may just be on its way
	maxNotFound = 3                      // looks in a row, then it counts as taken out
)

// An awaited is an Await that waits for queued work of ours to begin.
type awaited struct {
	id     string        // Set once: ours
	began  chan begun    // Set once, holds one
	rested chan struct{} // Set once, holds one: the thread came to rest
}

// begun is the turn that queued work became.
type begun struct {
	turn   handoff.TurnID
	joined bool // it went into somebody else's turn
}

// Queue gives the server work that begins when the running turn has ended, or at once. What is said beside
// the prompt is left out: the server's queue takes none of it.
func (a *agent) Queue(ctx context.Context, turn handoff.Turn) error {
	if err := a.mayRun(turn.Input); err != nil {
		return err
	}
	if a.conn.noQueue.Load() {
		return handoff.Fault(handoff.CodeUnsupported, a.conn.cfg.Name, "no thread/queue/add")
	}
	if err := a.enter(ctx); err != nil {
		return a.name().fault(err, handoff.CodeUnreachable, handoff.CodeUnreachable)
	}
	defer a.thread.unlock()
	params := queueAddParams{ThreadID: a.thread.id, Input: wireInput(turn.Input), ClientUserMessageID: turn.ID}
	err := a.loaded(ctx, func() error {
		if err := a.conn.checkCeiling(a.thread.mayDo()); err != nil {
			return err
		}
		return a.conn.client.queueAdd(ctx, params)
	})
	if refusedAs(err, refusedUnknown) {
		a.conn.noQueue.Store(true)
	}
	if err != nil {
		return a.name().fault(err, handoff.CodeUnreachable, handoff.CodeUnknownStart)
	}
	return nil
}

// Await returns the turn that queued work with our id became, once it has begun. It listens, and reads the
// thread and its queue at the beginning and now and then. The server holds its queue back after an
// interrupt, until a turn completes: when the thread rests a while with our work queued, it is begun here.
func (a *agent) Await(ctx context.Context, id string) (handoff.TurnID, error) {
	w := a.thread.await(id)
	defer a.thread.endAwait(w)
	missing, idle := 0, false
	for {
		found, entry, err := a.seek(ctx, id)
		_, busy := a.thread.runs()
		pause := awaitEvery
		switch {
		case found != nil:
			return a.found(*found)
		case refusedAs(err, refusedGone), refusedAs(err, refusedArchived):
			return "", a.name().fault(err, handoff.CodeAgentGone, handoff.CodeAgentGone)
		case err != nil: // a lost connection shows below
		case entry == "":
			if missing++; missing >= maxNotFound {
				return "", handoff.Fault(handoff.CodeNotPending, "", "neither queued nor begun")
			}
			pause = awaitAgain
		case idle && !busy:
			if turn := a.nudge(ctx, entry, id); turn != "" {
				return a.found(begun{turn, a.thread.isForeign(turn)})
			}
			pause = restGrace
		case !busy:
			pause = restGrace
		}
		if entry != "" {
			missing = 0
		}
		b, rested, err := a.listen(ctx, w, pause)
		switch {
		case b != nil:
			return a.found(*b)
		case err != nil:
			return "", err
		}
		idle = entry != "" && !busy && !rested
	}
}

// listen waits for what an Await waits for, or d. rested says that the thread came to rest meanwhile.
func (a *agent) listen(ctx context.Context, w *awaited, d time.Duration) (b *begun, rested bool, err error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	var cause error
	select {
	case b := <-w.began:
		return &b, false, nil
	case <-w.rested:
		return nil, true, nil
	case <-timer.C:
		return nil, false, nil
	case <-ctx.Done():
		return nil, false, handoff.AsError(context.Cause(ctx))
	case <-a.closed:
		cause = errDetached
	case <-a.conn.peer.done:
		cause = a.conn.peer.lost()
	}
	return nil, false, a.name().fault(cause, handoff.CodeAgentGone, handoff.CodeAgentGone)
}

// nudge begins queued work of ours that the server holds back, and returns its turn, or "".
func (a *agent) nudge(ctx context.Context, entry, id string) handoff.TurnID {
	if err := a.enter(ctx); err != nil {
		return ""
	}
	defer a.thread.unlock()
	before, busy := a.thread.runs()
	if busy || a.conn.checkCeiling(a.thread.mayDo()) != nil {
		return ""
	}
	result, err := a.conn.client.queueStart(ctx, a.thread.id, entry, func(r *turnResult) {
		a.thread.claim(handoff.TurnID(r.Turn.ID), before, id)
	})
	if err != nil {
		a.conn.log.Info("queued work did not begin", zap.String("thread", a.thread.id), zap.Error(err))
		return ""
	}
	return handoff.TurnID(result.Turn.ID)
}

// Unqueue takes queued work with our id out of the queue.
func (a *agent) Unqueue(ctx context.Context, id string) error {
	queue, err := a.conn.client.queueList(ctx, a.thread.id)
	if err != nil {
		return a.name().fault(err, handoff.CodeAgentGone, handoff.CodeAgentGone)
	}
	i := slices.IndexFunc(queue, func(q queuedSubmission) bool { return q.ClientUserMessageID == id })
	if i < 0 {
		return handoff.Fault(handoff.CodeNotPending, "", "not queued")
	}
	err = a.conn.client.queueDelete(ctx, a.thread.id, queue[i].ID)
	if _, refused := errors.AsType[*rpcError](err); refused {
		return handoff.Fault(handoff.CodeNotPending, "", handoff.ClipRunes(err.Error(), maxDetail)) // it has just begun
	}
	if err != nil {
		return a.name().fault(err, handoff.CodeAgentGone, handoff.CodeAgentGone)
	}
	return nil
}

func (a *agent) found(b begun) (handoff.TurnID, error) {
	if b.joined {
		return b.turn, handoff.Fault(handoff.CodeJoined, a.conn.cfg.Name, "turn "+string(b.turn)+" took it in")
	}
	return b.turn, nil
}

// seek reads whether our work has begun, or its entry in the queue. The queue is read first: work leaves it
// for a turn.
func (a *agent) seek(ctx context.Context, id string) (found *begun, entry string, err error) {
	queue, err := a.conn.client.queueList(ctx, a.thread.id)
	if err != nil {
		return nil, "", err
	}
	for _, q := range queue {
		if q.ClientUserMessageID == id {
			return nil, q.ID, nil
		}
	}
	entries, _, err := a.said(ctx, func(e itemEntry) bool { return e.Item.client() == id })
	if err != nil {
		return nil, "", err
	}
	for _, e := range entries {
		if e.Item.client() == id {
			first, _ := beginning(entries, e.TurnID)
			return &begun{handoff.TurnID(e.TurnID), first.Item.client() != id}, "", nil
		}
	}
	return nil, "", nil
}

// await begins to listen for work with our id.
func (t *thread) await(id string) *awaited {
	w := &awaited{id: id, began: make(chan begun, 1), rested: make(chan struct{}, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.awaited = append(t.awaited, w)
	return w
}

func (t *thread) endAwait(w *awaited) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.awaited = slices.DeleteFunc(t.awaited, func(o *awaited) bool { return o == w })
}

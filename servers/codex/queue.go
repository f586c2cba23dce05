package codex

import (
	"context"
	"slices"
	"time"

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
	id    string     // Set once: ours
	began chan begun // Set once, holds one
}

// begun is the turn that queued work became.
type begun struct {
	turn   handoff.TurnID
	joined bool // it went into somebody else's turn
}

// Queue gives the server work that begins when the running turn has ended, or at once. What is said beside
// the prompt is left out: the server's queue takes none of it.
func (a *agent) Queue(ctx context.Context, turn handoff.Turn) error {
	if err := a.mayRun(turn.Prompt); err != nil {
		return err
	}
	if a.conn.noQueue.Load() {
		return handoff.Fault(handoff.CodeUnsupported, a.conn.cfg.Name, "no thread/queue/add")
	}
	if err := a.enter(ctx); err != nil {
		return a.name().fault(err, handoff.CodeUnreachable, handoff.CodeUnreachable)
	}
	defer a.thread.unlock()
	params := queueAddParams{ThreadID: a.thread.id, Input: textInput(turn.Prompt), ClientUserMessageID: turn.ID}
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
// thread and its queue at the beginning and now and then.
func (a *agent) Await(ctx context.Context, id string) (handoff.TurnID, error) {
	w := a.thread.await(id)
	defer a.thread.endAwait(w)
	for missing := 0; ; {
		found, queued, err := a.seek(ctx, id)
		if err != nil && a.conn.peer.lost() != nil {
			return "", a.name().fault(a.conn.peer.lost(), handoff.CodeAgentGone, handoff.CodeAgentGone)
		}
		if found != nil {
			return a.found(*found)
		}
		pause := awaitEvery
		if err == nil && !queued {
			if missing++; missing >= maxNotFound {
				return "", handoff.Fault(handoff.CodeNotPending, "", "neither queued nor begun")
			}
			pause = awaitAgain
		} else {
			missing = 0
		}
		pauseCtx, cancel := context.WithTimeout(ctx, pause)
		select {
		case b := <-w.began:
			cancel()
			return a.found(b)
		case <-pauseCtx.Done():
			cancel()
			if ctx.Err() != nil {
				return "", handoff.AsError(context.Cause(ctx))
			}
		case <-a.closed:
			cancel()
			return "", a.name().fault(errDetached, handoff.CodeAgentGone, handoff.CodeAgentGone)
		case <-a.conn.peer.done:
			cancel()
			return "", a.name().fault(a.conn.peer.lost(), handoff.CodeAgentGone, handoff.CodeAgentGone)
		}
	}
}

func (a *agent) found(b begun) (handoff.TurnID, error) {
	if b.joined {
		return b.turn, handoff.Fault(handoff.CodeJoined, a.conn.cfg.Name, "turn "+string(b.turn)+" took it in")
	}
	return b.turn, nil
}

// seek reads whether our work is queued or has begun. The queue is read first: work leaves it for a turn.
func (a *agent) seek(ctx context.Context, id string) (found *begun, queued bool, err error) {
	ids, err := a.conn.client.queueList(ctx, a.thread.id)
	if err != nil {
		return nil, false, err
	}
	if slices.Contains(ids, id) {
		return nil, true, nil
	}
	entries, _, err := a.said(ctx, func(e itemEntry) bool { return e.Item.client() == id })
	if err != nil {
		return nil, false, err
	}
	for _, e := range entries {
		if e.Item.client() == id {
			first, _ := beginning(entries, e.TurnID)
			return &begun{handoff.TurnID(e.TurnID), first.Item.client() != id}, false, nil
		}
	}
	return nil, false, nil
}

// await begins to listen for work with our id.
func (t *thread) await(id string) *awaited {
	w := &awaited{id: id, began: make(chan begun, 1)}
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

package responses

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"switchboard/handoff"
	"switchboard/servers/turns"
)

// A hub publishes the updates of a running turn to its followers. A new follower first gets the items so far.
type hub struct {
	mu        sync.Mutex
	reducer   turns.Reducer      // Guarded by mu, like all below
	doneItems []handoff.ItemDone // of each finished item
	open      []handoff.Item     // begun and not finished
	used      handoff.Update     // the newest Usage; nil for none
	end       handoff.Update     // the TurnEnded; nil while the turn runs
	questions map[handoff.QuestionID]*pendingQuestion
	followers map[*follower]bool
}

// A pendingQuestion is a question for whose answer the turn waits.
type pendingQuestion struct {
	handoff.Question
	answer chan handoff.Decision // capacity 1
}

// A follower is one reader of a turn. It buffers updates until they are read.
type follower struct {
	hub        *hub         // Set once
	connection string       // Set once; the Connection in its questions
	buffer     turns.Buffer // Guarded by the hub's mu
}

func newHub(id handoff.TurnID) *hub {
	return &hub{reducer: turns.NewReducer(id), questions: map[handoff.QuestionID]*pendingQuestion{},
		followers: map[*follower]bool{}}
}

// report passes what happened through the reducer and publishes the updates.
func (h *hub) report(happened func(*turns.Reducer) []handoff.Update) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.publish(happened(&h.reducer)...)
}

// publish remembers updates and passes them to the followers. The caller holds mu.
func (h *hub) publish(updates ...handoff.Update) {
	for _, u := range updates {
		switch u := u.(type) {
		case handoff.ItemStarted:
			h.open = append(h.open, u.Item)
		case handoff.ItemDone:
			h.closeItem(u.Item.ID)
			h.doneItems = append(h.doneItems, u)
		case handoff.ItemDropped:
			h.closeItem(u.ItemID)
		case handoff.Usage:
			h.used = u
		case handoff.TurnEnded:
			h.end = u
		}
		for f := range h.followers {
			f.put(u)
		}
	}
}

func (h *hub) closeItem(id string) {
	h.open = slices.DeleteFunc(h.open, func(it handoff.Item) bool { return it.ID == id })
}

// put buffers an update.
func (f *follower) put(u handoff.Update) {
	if q, ok := u.(handoff.Question); ok {
		q.Connection = f.connection
		u = q
	}
	f.buffer.Put(u)
}

// follow adds a follower. It first gets the finished and open items of the turn and its open questions.
func (h *hub) follow(connection string) *follower {
	f := &follower{hub: h, connection: connection, buffer: turns.NewBuffer(nil)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.publish(h.reducer.Begin()...)
	f.put(handoff.Started{Turn: h.reducer.Turn()})
	done := slices.Clone(h.doneItems[max(0, len(h.doneItems)-turns.HardUpdates/2):])
	room := 4 * turns.SoftBytes // for what they printed: else the buffer would have none for the oldest
	for i := range slices.Backward(done) {
		if room -= len(done[i].Item.Output); room < 0 {
			done[i].Item.Output = ""
		}
	}
	for _, u := range done {
		f.put(u)
	}
	if h.used != nil {
		f.put(h.used)
	}
	for _, it := range h.open {
		f.put(handoff.ItemStarted{Item: it})
	}
	open := slices.SortedFunc(maps.Values(h.questions),
		func(a, b *pendingQuestion) int { return a.Asked.Compare(b.Asked) })
	for _, q := range open {
		f.put(q.Question)
	}
	if h.end != nil {
		f.put(h.end)
	}
	h.followers[f] = true
	return f
}

// leave removes a follower.
func (h *hub) leave(f *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.followers, f)
}

// next waits for the next update of a follower. It fails when ctx ends, or closed or lost is closed.
func (h *hub) next(ctx context.Context, f *follower, closed, lost <-chan struct{}) (handoff.Update, error) {
	for {
		if err := whyGone(ctx, closed, lost); err != nil {
			return nil, err
		}
		h.mu.Lock()
		u, ok := f.buffer.Take()
		overflowed := f.buffer.Lost()
		h.mu.Unlock()
		switch {
		case ok:
			return u, nil
		case overflowed:
			return nil, handoff.Fault(handoff.CodeAgentGone, "", "too much of the turn was left unread")
		}
		select {
		case <-f.buffer.Awake():
		case <-ctx.Done():
		case <-closed:
		case <-lost:
		}
	}
}

// whyGone returns why a reader has gone: one of the channels is closed, or ctx has ended. nil if it has not.
func whyGone(ctx context.Context, closed ...<-chan struct{}) error {
	for _, done := range closed {
		select {
		case <-done:
			return handoff.Fault(handoff.CodeAgentGone, "", "the connection is closed")
		default:
		}
	}
	return ctx.Err()
}

// result returns the answer of the turn so far, and its usage for the store; nil for none.
func (h *hub) result() (answer string, used json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if u, ok := h.used.(handoff.Usage); ok {
		used = usageJSON(u)
	}
	return h.reducer.Answer(), used
}

// ask publishes a question and waits for its answer. In any case the question is closed afterwards.
func (h *hub) ask(ctx context.Context, q handoff.Question) (handoff.Decision, error) {
	a := &pendingQuestion{Question: q, answer: make(chan handoff.Decision, 1)}
	h.mu.Lock()
	h.questions[q.ID] = a
	h.publish(q)
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.questions, q.ID)
		h.publish(handoff.QuestionClosed{ID: q.ID})
	}()
	select {
	case d := <-a.answer:
		return d, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// decide answers an open question. It returns false if the decision is not allowed or another one was first.
func (h *hub) decide(id handoff.QuestionID, d handoff.Decision) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.questions[id]
	if a == nil || !slices.Contains(a.Decisions, d) {
		return false
	}
	select {
	case a.answer <- d:
		return true
	default:
		return false // another decision was first
	}
}

// began, delta and finished implement [progress].

func (h *hub) began(it handoff.Item) {
	// The model streams these: they are dropped if they are cut short.
	streamed := it.Kind == handoff.ItemMessage || it.Kind == handoff.ItemReasoning
	h.report(func(r *turns.Reducer) []handoff.Update {
		return r.ItemStarted(turns.Item{Item: it, Streamed: streamed})
	})
}

func (h *hub) delta(item string, kind handoff.DeltaKind, text string) {
	h.report(func(r *turns.Reducer) []handoff.Update { return r.Delta(item, text, kind) })
}

func (h *hub) finished(it handoff.Item) {
	h.report(func(r *turns.Reducer) []handoff.Update { return r.ItemDone(turns.Item{Item: it}) })
}

// hasQuestions reports whether the turn waits for an answer.
func (h *hub) hasQuestions() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.questions) > 0
}

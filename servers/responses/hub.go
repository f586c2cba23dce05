package responses

import (
	"context"
	"maps"
	"slices"
	"sync"

	"switchboard/handoff"
	"switchboard/servers/turns"
)

// A hub passes the updates of a running turn to its followers. A later follower gets the finished items first.
type hub struct {
	mu        sync.Mutex
	reducer   turns.Reducer    // Guarded by mu, like all that follows
	past      []handoff.Update // finished items
	open      []handoff.Item   // begun, not finished
	used      handoff.Update   // nil: nothing was told of it
	end       handoff.Update   // nil: it runs
	questions map[handoff.QuestionID]*asked
	followers map[*follower]bool
}

// asked is a question that the turn waits for.
type asked struct {
	handoff.Question
	answer chan handoff.Decision // holds one
}

// A follower is one reader of a turn. It keeps unread updates, also while nobody reads.
type follower struct {
	connection string       // Set once; what the reader calls its connection in questions
	buffer     turns.Buffer // Guarded by the hub's mu
}

func newHub(id handoff.TurnID) *hub {
	return &hub{reducer: turns.NewReducer(id), questions: map[handoff.QuestionID]*asked{}, followers: map[*follower]bool{}}
}

// report takes what happened through the reducer and tells it.
func (h *hub) report(happened func(*turns.Reducer) []handoff.Update) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tell(happened(&h.reducer)...)
}

// tell remembers and passes on updates. The caller holds mu.
func (h *hub) tell(updates ...handoff.Update) {
	for _, u := range updates {
		switch u := u.(type) {
		case handoff.ItemStarted:
			h.open = append(h.open, u.Item)
		case handoff.ItemDone:
			h.shut(u.Item.ID)
			h.past = append(h.past, u)
		case handoff.ItemDropped:
			h.shut(u.ItemID)
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

func (h *hub) shut(id string) {
	h.open = slices.DeleteFunc(h.open, func(it handoff.Item) bool { return it.ID == id })
}

// put keeps an update for a follower.
func (f *follower) put(u handoff.Update) {
	if q, ok := u.(handoff.Question); ok {
		q.Connection = f.connection
		u = q
	}
	f.buffer.Put(u)
}

// follow adds a reader, which first gets the turn's finished items and its open questions.
func (h *hub) follow(connection string) *follower {
	f := &follower{connection: connection, buffer: turns.NewBuffer(nil)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tell(h.reducer.Begin()...)
	f.put(handoff.Started{Turn: h.reducer.Turn()})
	for _, u := range h.past {
		f.put(u)
	}
	if h.used != nil {
		f.put(h.used)
	}
	for _, it := range h.open {
		f.put(handoff.ItemStarted{Item: it})
	}
	open := slices.SortedFunc(maps.Values(h.questions), func(a, b *asked) int { return a.Asked.Compare(b.Asked) })
	for _, q := range open {
		f.put(q.Question)
	}
	if h.end != nil {
		f.put(h.end)
	}
	h.followers[f] = true
	return f
}

// leave removes a reader.
func (h *hub) leave(f *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.followers, f)
}

// next waits for the next update of a follower. An error means that there is none.
func (h *hub) next(ctx context.Context, f *follower, left, lost <-chan struct{}) (handoff.Update, error) {
	for {
		if err := leftBy(ctx, left, lost); err != nil {
			return nil, err
		}
		h.mu.Lock()
		u, ok := f.buffer.Take()
		burst := f.buffer.Lost()
		h.mu.Unlock()
		switch {
		case ok:
			return u, nil
		case burst:
			return nil, handoff.Fault(handoff.CodeAgentGone, "", "too much of the turn was left unread")
		}
		select {
		case <-f.buffer.Awake():
		case <-ctx.Done():
		case <-left:
		case <-lost:
		}
	}
}

// leftBy returns why nobody reads any more.
func leftBy(ctx context.Context, gone ...<-chan struct{}) error {
	for _, done := range gone {
		select {
		case <-done:
			return handoff.Fault(handoff.CodeAgentGone, "", "the connection is closed")
		default:
		}
	}
	return ctx.Err()
}

// answerTo returns the words of the turn so far.
func (h *hub) answerTo() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reducer.Answer()
}

// ask tells a question and waits for its answer. Whatever ends the waiting closes the question.
func (h *hub) ask(ctx context.Context, q handoff.Question) (handoff.Decision, error) {
	a := &asked{Question: q, answer: make(chan handoff.Decision, 1)}
	h.mu.Lock()
	h.questions[q.ID] = a
	h.tell(q)
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.questions, q.ID)
		h.tell(handoff.QuestionClosed{ID: q.ID})
	}()
	select {
	case d := <-a.answer:
		return d, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// decide answers a question once.
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
		return false // somebody was first
	}
}

// The hub is what a reader of answers tells.

func (h *hub) began(it handoff.Item) {
	written := it.Kind == handoff.ItemMessage || it.Kind == handoff.ItemReasoning // by the model: cut short it is nothing
	h.report(func(r *turns.Reducer) []handoff.Update { return r.ItemStarted(turns.Item{Item: it, Streamed: written}) })
}

func (h *hub) delta(item string, kind handoff.DeltaKind, text string) {
	h.report(func(r *turns.Reducer) []handoff.Update { return r.Delta(item, text, kind) })
}

func (h *hub) finished(it handoff.Item) {
	h.report(func(r *turns.Reducer) []handoff.Update { return r.ItemDone(turns.Item{Item: it}) })
}

// waits reports whether the turn waits for an answer.
func (h *hub) waits() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.questions) > 0
}

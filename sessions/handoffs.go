package sessions

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

const (
	// handoffDoc begins the name of the document of a handoff that is not history; its key follows.
	handoffDoc = "handoff:"
	// maxCached bounds the callers whose state is in memory. Beyond it all are read again.
	maxCached = 4096
	// commitTries bounds how often a step is decided anew because something else was written meanwhile.
	commitTries = 8
)

// The parts of the texts of a handoff.
const (
	partPrompt  = "prompt"
	partText    = "text"
	partDid     = "did"
	partRequest = "request"
)

// A Memory is a store of callers.
type Memory interface {
	Callers
	Pages
}

// Handoffs is the ledger and the history over a store of callers. It decides each step by the table of package ledger,
// from the state that the last batch left, and reads the state again whenever that may differ. It implements
// [ledger.Ledger], [ledger.History] and [switchboard/handoff.Stickies].
type Handoffs struct {
	store Memory            // Set once
	bad   func(name string) // Set once; counts and logs a document that cannot be read

	mu  sync.Mutex
	all map[handoff.Caller]*cached // Guarded by mu
}

// A cached is the state of a caller as this process knows it.
type cached struct {
	turn  chan struct{} // capacity 1; a token in it is the right to use the state
	known bool          // Owned by the holder of the turn: state is what the store has
	state State         // Owned by the holder of the turn
}

// NewHandoffs returns the ledger over a store. bad is told of each document that is left out, since it cannot be read:
// one bad entry must not hide the others.
func NewHandoffs(store Memory, bad func(name string)) *Handoffs {
	return &Handoffs{store: store, bad: bad, all: map[handoff.Caller]*cached{}}
}

// take returns the cached state of a caller, for its only user until [cached.free].
func (h *Handoffs) take(ctx context.Context, c handoff.Caller) (*cached, error) {
	h.mu.Lock()
	s := h.all[c]
	if s == nil {
		if len(h.all) >= maxCached {
			clear(h.all)
		}
		s = &cached{turn: make(chan struct{}, 1)}
		h.all[c] = s
	}
	h.mu.Unlock()
	select {
	case s.turn <- struct{}{}:
		return s, nil
	case <-ctx.Done():
		return nil, handoff.Fault(handoff.CodeUnreachable, "the store", ctx.Err().Error())
	}
}

func (s *cached) free() { <-s.turn }

// read makes the state known.
func (s *cached) read(ctx context.Context, from Callers, c handoff.Caller) (err error) {
	if s.known {
		return nil
	}
	s.state, err = from.State(ctx, c)
	s.known = err == nil
	return err
}

// commit writes a batch and applies it to the state. Unless it is written, the state has to be read again.
func (s *cached) commit(ctx context.Context, to Callers, c handoff.Caller, b Batch) (Committed, error) {
	b.Was, b.Now, b.For = s.state.Version, rand.Text(), StickyFor
	if s.open(b) {
		b.For = 0
	}
	s.known = false
	done, err := to.Commit(ctx, c, b)
	if err != nil || done != Written {
		return done, err
	}
	s.known, s.state.Version = true, b.Now
	if s.state.Documents == nil {
		s.state.Documents = map[string]string{}
	}
	maps.Copy(s.state.Documents, b.Put)
	for _, name := range b.Drop {
		delete(s.state.Documents, name)
	}
	if len(s.state.Documents) == 0 { // the store keeps nothing of the caller
		s.state = State{}
	}
	return done, nil
}

// open reports whether a handoff is open after a batch.
func (s *cached) open(b Batch) bool {
	begins := func(name string) bool { return strings.HasPrefix(name, handoffDoc) }
	for name := range s.state.Documents {
		if begins(name) && !slices.Contains(b.Drop, name) {
			return true
		}
	}
	return slices.ContainsFunc(slices.Collect(maps.Keys(b.Put)), begins)
}

// Advance implements [ledger.Ledger].
func (h *Handoffs) Advance(ctx context.Context, step ledger.Step) (ledger.Entry, error) {
	step, err := step.Check()
	if err == nil {
		_, err = CallerName(step.Caller)
	}
	if err != nil {
		return ledger.Entry{}, err
	}
	s, err := h.take(ctx, step.Caller)
	if err != nil {
		return ledger.Entry{}, err
	}
	defer s.free()
	free := true // the key is taken for one that is not in the past, which the store checks
	for range commitTries {
		if err := s.read(ctx, h.store, step.Caller); err != nil {
			return ledger.Entry{}, err
		}
		row, err := h.find(ctx, s, step, free)
		if err != nil {
			return ledger.Entry{}, err
		}
		after, refusal := row.entry.Apply(step)
		if refusal != nil {
			return after, refusal
		}
		var b Batch // empty, so that a former life hears that it is one
		if after != row.entry {
			b = s.batch(step, row, after)
		}
		done, err := s.commit(ctx, h.store, step.Caller, b)
		switch {
		case err != nil:
			return ledger.Entry{}, err
		case done == Written:
			return after, nil
		case done == NotFree:
			free = false
		}
	}
	return ledger.Entry{}, otherWriter()
}

// otherWriter is the error about a state that changes all the time. A caller has one writer, so it may pass.
func otherWriter() error {
	return handoff.Fault(handoff.CodeUnreachable, "the store", "something else writes for the same caller")
}

// A found is an entry as it is stored.
type found struct {
	entry ledger.Entry
	past  int64 // when it became history, in Unix milliseconds; 0 before
}

// find returns the entry of a step. With free, a step that makes an entry may take it for missing without looking into
// the past.
func (h *Handoffs) find(ctx context.Context, s *cached, step ledger.Step, free bool) (found, error) {
	if text, ok := s.state.Documents[handoffDoc+step.Key]; ok {
		e, err := decodeEntry(text)
		return found{entry: e}, err
	}
	if step.New && free && (ledger.Entry{}).Judge(step) == ledger.Applied {
		return found{}, nil
	}
	row, ok, err := h.store.Past(ctx, step.Caller, step.Key)
	if !ok || err != nil {
		return found{}, err
	}
	e, err := decodeEntry(row.Row)
	return found{e, row.At}, err
}

// batch returns what a step that applies writes.
func (s *cached) batch(step ledger.Step, was found, after ledger.Entry) Batch {
	b := Batch{
		Key: step.Key, Put: map[string]string{}, Texts: map[string]string{}, Free: was.entry.Status == "",
		Clear: was.entry.Anew(step), Promise: step.To == handoff.StatusAccepted || step.To == handoff.StatusDispatching,
	}
	for part, text := range map[string]string{partPrompt: step.Body.Prompt, partText: step.Body.Text,
		partDid: step.Body.Did, partRequest: step.Body.Request} {
		if text != "" {
			b.Texts[part] = text
		}
	}
	if !step.Keeps() && !b.Free {
		b.Texts[partRequest] = ""
	}
	if t := step.Set.Target; step.Makes() {
		b.Owned, b.At = ledger.Owned{Server: t.Server, Thread: t.Thread, Caller: step.Caller}, step.At
	}
	switch {
	case step.To == handoff.StatusDelivered:
		b.pass(after, step.At.UnixMilli())
	case was.past != 0 && !b.Clear:
		b.pass(after, was.past)
	default:
		b.Put[handoffDoc+step.Key] = handoff.Encode(after)
	}
	if step.To != handoff.StatusCompleted || was.past != 0 && !b.Clear {
		return b
	}
	old := s.unheard(after)
	for _, e := range old[:max(0, len(old)-ledger.Waits(step.Caller))] {
		delete(b.Put, handoffDoc+e.Key)
		b.pass(e.History(), step.At.UnixMilli())
	}
	return b
}

// pass moves an entry to the past.
func (b *Batch) pass(e ledger.Entry, at int64) {
	b.Drop = append(b.Drop, handoffDoc+e.Key)
	row := Past{Key: e.Key, At: at, Row: handoff.Encode(e), Unkept: e.Unkept}
	if !e.Unkept {
		row.Words = EntryWords(e)
	}
	b.Past = append(b.Past, row)
}

// unheard returns the outcomes that wait, with the one that comes now, the oldest first. Unreadable ones are left out.
func (s *cached) unheard(now ledger.Entry) []ledger.Entry {
	all := []ledger.Entry{now}
	for name, text := range s.state.Documents {
		if !strings.HasPrefix(name, handoffDoc) || name == handoffDoc+now.Key {
			continue
		}
		if e, err := decodeEntry(text); err == nil && e.Status == handoff.StatusCompleted {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b ledger.Entry) int {
		return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.Key, b.Key))
	})
	return all
}

// decodeEntry returns the entry of a document or of a row of the past.
func decodeEntry(text string) (ledger.Entry, error) {
	var e ledger.Entry
	err := json.Unmarshal([]byte(text), &e)
	if err != nil || e.Key == "" || e.Owner == "" || e.Caller.Principal == "" || e.Status == "" || e.Accepted.IsZero() {
		return ledger.Entry{}, handoff.Fault(handoff.CodeInternal, "", "an entry of the ledger cannot be read")
	}
	return e, nil
}

// Open implements [ledger.Ledger].
func (h *Handoffs) Open(ctx context.Context, c handoff.Caller) ([]ledger.Entry, error) {
	state, err := h.state(ctx, c)
	if err != nil {
		return nil, err
	}
	return h.open(c, state), nil
}

// state reads the state of a caller, and keeps it for the next step.
func (h *Handoffs) state(ctx context.Context, c handoff.Caller) (State, error) {
	if _, err := CallerName(c); err != nil {
		return State{}, err
	}
	s, err := h.take(ctx, c)
	if err != nil {
		return State{}, err
	}
	defer s.free()
	s.known = false // another instance may have written
	if err := s.read(ctx, h.store, c); err != nil {
		return State{}, err
	}
	return State{s.state.Version, maps.Clone(s.state.Documents)}, nil
}

// OpenAll implements [ledger.Ledger].
func (h *Handoffs) OpenAll(ctx context.Context) ([]ledger.Entry, error) {
	states, err := h.store.Waiting(ctx, handoffDoc)
	if err != nil {
		return nil, err
	}
	all := []ledger.Entry{}
	for c, state := range states {
		all = append(all, h.open(c, state)...)
	}
	sortEntries(all)
	return all, nil
}

// open returns the entries of a state, the oldest first.
func (h *Handoffs) open(c handoff.Caller, state State) []ledger.Entry {
	all := []ledger.Entry{}
	for name, text := range state.Documents {
		if !strings.HasPrefix(name, handoffDoc) {
			continue
		}
		e, err := decodeEntry(text)
		if err != nil {
			h.bad(c.String() + " " + name)
			continue
		}
		all = append(all, e)
	}
	sortEntries(all)
	return all
}

func sortEntries(all []ledger.Entry) {
	slices.SortFunc(all, func(a, b ledger.Entry) int {
		return cmp.Or(a.Accepted.Compare(b.Accepted), cmp.Compare(a.Key, b.Key))
	})
}

package handoff

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Bounds of what a call remembers.
const (
	maxWords    = 6    // last utterances of the caller, given to the agent as context
	maxWordSize = 2000 // bytes of one
	maxSeen     = 1024 // call ids, to tell a request that is delivered twice; the oldest is forgotten
)

// A call is the router's side of one voice call.
type call struct {
	voice Voice // Set once

	mu      sync.Mutex
	ended   bool              // Guarded by mu
	pending map[string]string // Guarded by mu: utterances not yet said that carry an outcome, to record ids
}

// say gives an utterance to the voice model. With a record, the utterance carries its outcome, which is
// delivered once it was said. False means that the call has ended and nobody will hear it.
func (c *call) say(u Utterance, records ...string) bool {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return false
	}
	for _, id := range records {
		if id != "" {
			c.pending[u.ID+" "+id] = id
		}
	}
	c.mu.Unlock()
	c.voice.Say(u)
	return true
}

// said returns the records whose outcome an utterance carried.
func (c *call) said(utterance string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []string
	for key, id := range c.pending {
		if key == utterance+" "+id {
			ids = append(ids, id)
			delete(c.pending, key)
		}
	}
	return ids
}

// end closes the call and returns the records whose outcome nobody heard.
func (c *call) end() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	var ids []string
	for _, id := range c.pending {
		ids = append(ids, id)
	}
	c.pending = nil
	return ids
}

// serving is what the loop of one call owns.
type serving struct {
	r      *Router // Set once
	caller Caller  // Set once
	book   *book   // Set once
	call   *call   // Set once
	log    *zap.Logger

	seen  map[string]bool  // Owned by Serve: call ids of requests
	order []string         // Owned by Serve: the same, oldest first
	works map[string]*work // Owned by Serve: works this call asked for
	words []string         // Owned by Serve: the caller's last words
}

// Serve is the loop of one call. It returns after the voice closed its events, or when ctx ends; the works
// go on under Run. Who ends the process ends Run first, so that open requests are answered, and the calls
// after it.
func (r *Router) Serve(ctx context.Context, c Caller, voice Voice) error {
	s := &serving{
		r: r, caller: c, book: r.book(c), log: r.log.With(zap.String("principal", c.Principal)),
		call: &call{voice: voice, pending: map[string]string{}},
		seen: map[string]bool{}, works: map[string]*work{},
	}
	r.start(s.preload)
	s.welcomeBack()
	defer s.hangUp() // also for a voice that closes its events without saying goodbye
	for {
		select {
		case e, open := <-voice.Events():
			if !open {
				return nil
			}
			s.take(e)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// take decides what an event of the call means.
func (s *serving) take(e Event) {
	switch e := e.(type) {
	case Request:
		s.request(e)
	case Heard:
		s.heard(e)
	case Said:
		s.book.delivered(s.call.said(e.ID)...)
	case CallEnded:
		s.hangUp()
	}
}

// preload reads the stickies, so that no request has to wait for the store.
func (s *serving) preload(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := s.r.loadStickies(ctx, s.caller, s.book); err != nil {
		s.log.Warn("sticky sessions not read", zap.Error(err))
	}
}

// welcomeBack tells what ended while nobody listened, once, as one message.
func (s *serving) welcomeBack() {
	records := s.book.takeUnheard()
	if len(records) == 0 {
		return
	}
	ids := make([]string, len(records))
	for i, rec := range records {
		ids[i] = rec.ID
	}
	u := Utterance{ID: s.r.nextID() + "-w", Text: awaySummary(records), Floor: FloorAsk}
	s.call.say(u, ids...)
}

func (s *serving) heard(h Heard) {
	if h.Text == "" {
		return
	}
	s.words = append(s.words, clip(h.Text, maxWordSize))
	if n := len(s.words) - maxWords; n > 0 {
		s.words = s.words[n:]
	}
}

// request answers or starts one function call. Delivered twice, it counts once.
func (s *serving) request(req Request) {
	if s.seen[req.CallID] {
		return
	}
	s.remember(req.CallID)
	id := s.r.nextID()
	if req.Tool != ToolCodex {
		if !s.r.start(func(ctx context.Context) { s.lookup(ctx, id, req) }) {
			s.refuse(id, req, Fault(CodeShutdown, "", ""))
		}
		return
	}
	args, err := parseCodex(req.Arguments)
	if err != nil {
		s.refuse(id, req, AsError(err))
		return
	}
	s.begin(id, req, args)
}

// begin accepts a codex request: from here on it has exactly one outcome.
func (s *serving) begin(id string, req Request, args codexArguments) {
	now := time.Now()
	rec := Record{ID: id, Server: args.Server, Prompt: args.Prompt, State: StatusAccepted, CreatedAt: now}
	w := &work{
		r: s.r, book: s.book, caller: s.caller, call: s.call, req: req, args: args, words: append([]string(nil), s.words...),
		id: id, log: s.log.With(zap.String("handoff", id)), orders: make(chan Fact, commandQueue), began: now,
		rec: Record{ID: id}, facts: make(chan func()),
	}
	s.book.open(rec, w)
	for old, w := range s.works { // those that ended need not be told anything any more
		if _, running := s.book.find(old); running != w {
			delete(s.works, old)
		}
	}
	s.works[id] = w
	if !s.r.start(w.run) {
		s.refuse(id, req, Fault(CodeShutdown, "", ""))
		s.book.change(id, func(r *Record) {
			r.State, r.Outcome, r.EndedAt = StatusCompleted, OutcomeCancelled, new(time.Now())
		})
		s.book.ended(id)
	}
}

// refuse answers a request that was not accepted.
func (s *serving) refuse(id string, req Request, e *Error) {
	s.log.Info("request refused", zap.String("tool", clip(req.Tool, 64)), zap.String("code", string(e.Code)))
	s.call.say(Utterance{ID: id + "-a", CallID: req.CallID, Text: refusal(e), Floor: FloorAsk}, "")
}

func (s *serving) remember(callID string) {
	s.seen[callID] = true
	s.order = append(s.order, callID)
	if len(s.order) > maxSeen {
		delete(s.seen, s.order[0])
		s.order = s.order[1:]
	}
}

// hangUp tells the works that nobody listens any more and keeps what was not said.
func (s *serving) hangUp() {
	for _, w := range s.works {
		w.tell(FactCallEnded)
	}
	s.works = nil
	for _, id := range s.call.end() {
		s.book.keep(id)
	}
}

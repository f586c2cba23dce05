package acp

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/turns"
)

// maxTurns is how many turns of a session are kept for those who follow them, the running one among them.
const maxTurns = 8

// outsideQuiet is for how long nothing must have come of work that the agent began by itself until it counts as over,
// where its end is not told.
const outsideQuiet = 3 * time.Second

// A session is a thread.
type session struct {
	conn *connection   // Set once
	id   string        // Set once
	gate chan struct{} // Set once, holds one: who opens, prompts or closes it
	came chan struct{} // Set once, holds one: something of a history came

	refs int // Guarded by conn.mu

	mu         sync.Mutex
	open       bool      // Guarded by mu, as is all that follows: the agent has it open
	known      bool      // its history is known from its beginning, or as far back as is kept
	replaying  bool      // its history is being told
	cwd, title string    // the title as the agent gave it
	updated    time.Time // when it was changed last, as its agent lists it; zero: not known
	touched    time.Time // when it was used here last
	mode       string    // that it is in
	modes      []string  // that there are
	modeOption string    // the setting that is its mode, where it has no modes; ""
	history    history
	calls      map[string]*call // of what belongs to no turn: of a replay, and of work that the agent began by itself
	turn       *turn            // that runs: its prompt is not answered
	turns      []*turn          // the newest, that may be followed; oldest first, at most maxTurns
	outside    time.Time        // when the agent last did something that it began by itself; zero: it has ended that
	outsideID  string           // of the message that it said then
	questions  turns.Questions[wireQuestion]
}

func newSession(c *connection, id string) *session {
	return &session{conn: c, id: id, gate: make(chan struct{}, 1), came: make(chan struct{}, 1), calls: map[string]*call{}}
}

// enter takes the gate.
func (s *session) enter(ctx context.Context) error {
	select {
	case s.gate <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &servers.NotSentError{Cause: context.Cause(ctx)}
	}
}

func (s *session) leave() { <-s.gate }

func (s *session) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// isIdle reports whether no prompt of ours runs.
func (s *session) isIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn == nil
}

// name is what errors call it.
func (s *session) name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nameLocked()
}

func (s *session) nameLocked() string {
	if s.title != "" {
		return s.title
	}
	return s.history.firstWords()
}

// place returns where it is opened, and whether all of it is known: nobody has changed it since.
func (s *session) place(cfg *Config, found listing) (p place, known bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found.ID != "" {
		s.cwd, s.title = found.Cwd, found.Title
	}
	if s.cwd == "" {
		if s.cwd, err = cfg.directory(""); err != nil {
			return place{}, false, err
		}
	}
	known = s.known && found.ID != "" && !s.updated.IsZero() && found.Updated.Equal(s.updated)
	return place{Session: s.id, Cwd: s.cwd, Servers: []struct{}{}}, known, nil
}

// thread describes it.
func (s *session) thread() servers.Thread {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := servers.Thread{ID: s.id, Title: s.nameLocked(), Dir: s.cwd, Updated: s.updated, Status: handoff.SessionUnknown}
	if s.touched.After(t.Updated) {
		t.Updated = s.touched
	}
	switch {
	case s.turn != nil && s.questions.Len() > 0:
		t.Status = handoff.SessionWaiting
	case s.turn != nil:
		t.Status = handoff.SessionRunning
	case s.open:
		t.Status = handoff.SessionIdle
	}
	return t
}

// text returns its newest lines as they are known here.
func (s *session) text(lines int) servers.Text {
	t := servers.Text{Thread: s.thread()}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Lines, t.More = s.history.lines(lines)
	return t
}

// isCurrent reports whether its history is known to its end: it is open here, or was not changed since.
func (s *session) isCurrent(found listing) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known && (s.open || s.turn != nil || found.ID != "" && found.Updated.Equal(s.updated))
}

// takeModes takes over what the agent says of modes.
func (s *session) takeModes(o *opened) {
	s.mode, s.modes, s.modeOption = "", nil, ""
	if o.Modes != nil {
		s.mode = o.Modes.Current
		for _, m := range o.Modes.Available {
			s.modes = append(s.modes, m.ID)
		}
		return
	}
	for _, option := range o.Options {
		if option.Category == "mode" {
			s.modeOption, s.mode = option.ID, option.current()
			for _, v := range option.Options {
				s.modes = append(s.modes, v.Value)
			}
			return
		}
	}
}

// replay begins a history.
func (s *session) replay() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history, s.replaying, s.known = history{}, true, false
	clear(s.calls)
}

// replayed ends it. It is known when it came whole.
func (s *session) replayed(whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replaying, s.known = false, whole
	clear(s.calls)
}

// hear takes what the agent says of the session. It runs in the reader.
func (s *session) hear(u *update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.turn
	if k != nil && !s.replaying {
		k.sign()
	}
	switch u.Kind {
	case "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update":
		if k != nil && k.gap && !s.replaying {
			return // all of it is read at its end
		}
	}
	switch u.Kind {
	case "user_message_chunk":
		if s.replaying {
			s.heard()
			s.conn.named(u.Message)
			s.history.prompt(u.Message, u.block().Text)
		}
	case "agent_message_chunk":
		s.conn.named(u.Message)
		text := u.block().Text
		switch {
		case text == "":
		case s.replaying:
			s.heard()
			s.history.say(u.Message, text)
		case k == nil || u.Message != "" && u.Message == s.outsideID:
			s.strayLocked(u.Message, text)
		default:
			k.say(u.Message, text)
		}
	case "agent_thought_chunk":
		if k != nil && !s.replaying {
			k.think(u.Message, u.block().Text)
		}
	case "tool_call", "tool_call_update":
		s.callLocked(k, u)
	case "current_mode_update":
		s.mode = handoff.Clip(u.Mode, maxID)
	case "config_option_update":
		for _, o := range u.Options {
			if s.modeOption != "" && o.ID == s.modeOption || s.modeOption == "" && o.Category == "mode" {
				s.mode = o.current()
			}
		}
	case "session_info_update":
		if u.Title != "" {
			s.title = unmarked(u.Title)
		}
		if k != nil && u.Meta.Codex.Status.Type == "systemError" {
			k.broken = true
		}
	case "usage_update":
		if origin := u.Meta.Origin.Kind; origin != "" && origin != "human" {
			s.outside = time.Time{} // that work is over
		}
	}
}

// block is the piece of text that a chunk brings.
func (u *update) block() block {
	var b block
	_ = json.Unmarshal(u.Content, &b) // a tool call has a list there
	return b
}

// heard says that something of a history came.
func (s *session) heard() {
	select {
	case s.came <- struct{}{}:
	default:
	}
}

// named learns whether messages have ids.
func (c *connection) named(id string) {
	if id != "" {
		c.names.Store(namesAlways)
	}
}

// strayLocked takes words that the agent says while no prompt of ours runs. Without an id they are no words of its.
func (s *session) strayLocked(id, text string) {
	s.conn.tally.unowned.Add(1)
	if id == "" && s.conn.names.Load() == namesAlways {
		return
	}
	s.outside, s.outsideID = time.Now(), id
	s.history.say(id, text)
}

// callLocked takes a tool call, or what changed of one.
func (s *session) callLocked(k *turn, u *update) {
	if u.ID == "" {
		return
	}
	for _, past := range s.turns {
		if past != k && past.calls[u.ID] != nil { // a command that goes on after a cancel: its turn has ended
			past.calls[u.ID].merge(u)
			s.history.did(u.ID, past.calls[u.ID].item())
			return
		}
	}
	if k != nil && !s.replaying && s.calls[u.ID] == nil {
		k.call(u)
		return
	}
	c := s.calls[u.ID]
	if c == nil {
		if len(s.calls) >= maxEntries {
			clear(s.calls)
		}
		c = &call{toolCall: toolCall{ID: u.ID}}
		s.calls[u.ID] = c
	}
	c.merge(u)
	if s.replaying {
		s.heard()
	} else {
		s.conn.tally.unowned.Add(1)
		s.outside = time.Now()
	}
	s.history.did(u.ID, c.item())
}

// busyLocked reports whether the agent works on something that it began by itself.
func (s *session) busyLocked() bool {
	return !s.outside.IsZero() && time.Since(s.outside) < outsideQuiet
}

// find returns a turn that may be followed, or nil.
func (s *session) findLocked(id handoff.TurnID) *turn {
	for _, k := range slices.Backward(s.turns) {
		if k.id == id {
			return k
		}
	}
	return nil
}

// keepLocked keeps a turn for those who follow it.
func (s *session) keepLocked(k *turn) {
	s.turns = append(s.turns, k)
	for len(s.turns) > maxTurns {
		s.turns[0].buffer.Drop()
		s.turns = slices.Delete(s.turns, 0, 1)
	}
}

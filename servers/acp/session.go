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

// maxTurns is how many turns of a session can be followed, with the running one.
const maxTurns = 8

// unpromptedQuiet is the pause after which work that the agent began by itself counts as ended, if it reports no end.
const unpromptedQuiet = 3 * time.Second

// A session is a conversation with the agent: a thread of the server.
type session struct {
	conn *connection   // Set once
	id   string        // Set once
	gate chan struct{} // Set once: a semaphore of 1 for opening, prompting and closing
	// sending is set once: a semaphore of 1. Its holder sends a prompt or a cancel. A cancel names no prompt: so none
	// may be sent between the look at which one runs and the cancel of it.
	sending chan struct{}
	// replayProgress is set once. It has a token when a message of a replay has come.
	replayProgress chan struct{}

	refs int // Guarded by conn.mu

	mu         sync.Mutex
	open       bool      // Guarded by mu, as is all that follows: the agent has it open
	known      bool      // history is complete, within its bounds
	replaying  bool      // the agent is replaying its history
	cwd, title string    // the title is the agent's; "": it has given none
	updated    time.Time // its last change in the agent's list; zero: not known
	lastUsed   time.Time // here
	mode       string    // the current one; "": not known
	modes      []string  // the available ones
	modeOption string    // id of the config option that stands for the mode, of an agent without modes; ""
	history    history
	calls      map[string]*call // that belong to no turn: of a replay, and of work that the agent began by itself
	turn       *turn            // the running one: its prompt is not answered; nil: none
	turns      []*turn          // that can be followed, oldest first, at most maxTurns
	unprompted time.Time        // the last message of work that the agent began by itself; zero: there is none

	unpromptedID string // of the agent's last text message outside prompts
	questions    turns.Questions[wireQuestion]
}

// enter acquires the gate.
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

// name returns the session's name for errors: its title, or else its first words.
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

// openParams returns the params to open the session. known reports whether its history is known and unchanged since.
func (s *session) openParams(cfg *Config, found listing) (p openParams, known bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found.ID != "" {
		s.cwd, s.title = found.Cwd, found.Title
	}
	if s.cwd == "" {
		if s.cwd, err = cfg.directory(""); err != nil {
			return openParams{}, false, err
		}
	}
	known = s.known && found.ID != "" && !s.updated.IsZero() && found.Updated.Equal(s.updated)
	return openParams{Session: s.id, Cwd: s.cwd, Servers: []struct{}{}}, known, nil
}

// thread returns the session as a thread of the server.
func (s *session) thread() servers.Thread {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := servers.Thread{ID: s.id, Title: s.nameLocked(), Dir: s.cwd, Updated: s.updated, Status: handoff.SessionUnknown}
	if s.lastUsed.After(t.Updated) {
		t.Updated = s.lastUsed
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

// text returns the session with its newest lines.
func (s *session) text(lines int) servers.Text {
	t := servers.Text{Thread: s.thread()}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Lines, t.More = s.history.lines(lines)
	return t
}

// isCurrent reports whether the history is known up to now: the session is open here, or has not changed since.
func (s *session) isCurrent(found listing) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known && (s.open || s.turn != nil || found.ID != "" && found.Updated.Equal(s.updated))
}

// setModes stores the modes in the answer that made or opened the session.
func (s *session) setModes(o *openResult) {
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

// beginReplay empties the history before a replay.
func (s *session) beginReplay() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history, s.replaying, s.known = history{}, true, false
	clear(s.calls)
}

// endReplay ends a replay. The history is known if the replay was complete.
func (s *session) endReplay(whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replaying, s.known = false, whole
	clear(s.calls)
}

// handleUpdate handles an update of the agent. It runs in the reader.
func (s *session) handleUpdate(u *update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.turn
	if k != nil && !s.replaying {
		k.markBegun()
	}
	switch u.Kind {
	case "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update":
		if k != nil && k.gap && !s.replaying {
			return // readRest reads the turn at its end
		}
	}
	switch u.Kind {
	case "user_message_chunk":
		if s.replaying {
			s.noteReplay()
			s.conn.noteMessageID(u.Message)
			s.history.prompt(u.Message, u.block().Text)
		}
	case "agent_message_chunk":
		s.conn.noteMessageID(u.Message)
		text := u.block().Text
		switch {
		case text == "":
		case s.replaying:
			s.noteReplay()
			s.history.say(u.Message, text)
		case k == nil || u.Message != "" && u.Message == s.unpromptedID:
			s.unpromptedTextLocked(u.Message, text)
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
			s.unprompted = time.Time{} // the agent's own work has ended
		}
	}
}

// block returns the block of a chunk.
func (u *update) block() block {
	var b block
	_ = json.Unmarshal(u.Content, &b) // a tool call has a list instead
	return b
}

// noteReplay notes that a message of a replay has come.
func (s *session) noteReplay() {
	select {
	case s.replayProgress <- struct{}{}:
	default:
	}
}

// noteMessageID notes that the agent's messages have ids, if one has.
func (c *connection) noteMessageID(id string) {
	if id != "" {
		c.messageIDs.Store(idsAlways)
	}
}

// unpromptedTextLocked adds a piece of text outside prompts of ours. If the agent's messages have ids, a piece without
// an id is not the agent's.
func (s *session) unpromptedTextLocked(id, text string) {
	s.conn.tally.unowned.Add(1)
	if id == "" && s.conn.messageIDs.Load() == idsAlways {
		return
	}
	s.unprompted, s.unpromptedID = time.Now(), id
	s.history.say(id, text)
}

// callLocked handles an update of a tool call.
func (s *session) callLocked(k *turn, u *update) {
	if u.ID == "" {
		return
	}
	for _, past := range s.turns {
		if c := past.calls[u.ID]; past != k && c != nil { // a command may go on after its turn was cancelled
			if !c.done {
				c.merge(u)
				s.history.did(u.ID, c.item())
			}
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
		s.noteReplay()
	} else {
		s.conn.tally.unowned.Add(1)
		s.unprompted = time.Now()
	}
	s.history.did(u.ID, c.item())
}

// busyLocked reports whether the agent works by itself, outside prompts of ours.
func (s *session) busyLocked() bool {
	return !s.unprompted.IsZero() && time.Since(s.unprompted) < unpromptedQuiet
}

// findLocked returns a turn that can be followed, or nil.
func (s *session) findLocked(id handoff.TurnID) *turn {
	for _, k := range slices.Backward(s.turns) {
		if k.id == id {
			return k
		}
	}
	return nil
}

// keepLocked adds a turn to those that can be followed, and drops the oldest ones.
func (s *session) keepLocked(k *turn) {
	s.turns = append(s.turns, k)
	for len(s.turns) > maxTurns {
		s.turns[0].buffer.Drop()
		s.turns = slices.Delete(s.turns, 0, 1)
	}
}

package acp

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/servers/jsonrpc"
	"switchboard/servers/turns"
)

// adopt takes over the prompt of an earlier connection in a session, if the agent has a mux: the mux sends all
// messages of the prompt so far. taken reports that the prompt runs; then the session is open. The caller holds the
// session's gate.
func (c *connection) adopt(ctx context.Context, s *session) (taken bool, err error) {
	if !c.can.Meta.Switchboard.Keeps {
		return false, nil
	}
	err = c.peer.CallIn(ctx, doAdopt, sessionParams{s.id}, nil, func(jsonrpc.Reply) { s.caughtUp() })
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	taken = s.turn != nil
	s.open = taken
	s.mu.Unlock()
	if taken {
		if found, ok, err := c.find(ctx, s.id); ok && err == nil {
			s.mu.Lock()
			s.title = found.Title
			s.mu.Unlock()
		}
	}
	return taken, nil
}

// handleAdopted handles a mux's message about a prompt that an earlier connection sent. It runs in the reader.
func (c *connection) handleAdopted(m jsonrpc.Message) {
	var prompt adoptedParams
	var answer answeredParams
	if json.Unmarshal(m.Params, &prompt) != nil || json.Unmarshal(m.Params, &answer) != nil {
		c.peer.Malformed.Add(1)
		return
	}
	s := c.sessionByID(prompt.Session)
	switch {
	case s == nil || !c.can.Meta.Switchboard.Keeps: // only a keeper says that
	case m.Method == onPrompted:
		s.adoptTurn(&prompt)
	default:
		s.mu.Lock()
		k := s.turn
		s.mu.Unlock()
		if k == nil || !k.adopted {
			return
		}
		r := jsonrpc.Reply{Result: answer.Result}
		if answer.Error != nil {
			r.Err = answer.Error
		}
		if answer.Ended != "" {
			r.Err = &endedError{answer.Ended}
		}
		s.answered(k, r)
	}
}

// An endedError is a mux's reason why its agent ended before it answered a prompt.
type endedError struct{ why string }

func (e *endedError) Error() string { return e.why }

// adoptTurn makes the turn of a prompt that an earlier connection sent. From here on the agent's messages belong to it.
func (s *session) adoptTurn(p *adoptedParams) {
	var text strings.Builder
	for _, b := range p.Prompt {
		text.WriteString(b.Text)
	}
	words, id := unmark(text.String())
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == "" || s.turn != nil || s.findLocked(id) != nil {
		return
	}
	k := s.newTurn(id)
	k.adopted, k.catchingUp, k.gap = true, true, p.Gap
	s.turn, s.lastUsed, s.unprompted, s.updated, s.known = k, time.Now(), time.Time{}, time.Time{}, false
	if s.cwd == "" {
		s.cwd = p.Cwd
	}
	s.keepLocked(k)
	s.history.add(entry{turn: id, user: true, text: words})
	k.markBegun()
}

// caughtUp ends the catching up of an adopted turn: all earlier messages have come. It runs in the reader.
func (s *session) caughtUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.turn
	if k == nil || !k.catchingUp {
		return
	}
	k.catchingUp = false
	if m := &k.message; m.id != "" {
		k.report(k.reducer.ItemStarted(turns.Item{Item: handoff.Item{ID: m.id, Kind: handoff.ItemMessage}, Streamed: true}))
		k.report(k.reducer.Delta(m.id, m.text.String(), handoff.DeltaMessage))
	}
	for _, c := range k.calls {
		if c.announced && !c.done {
			k.report(k.reducer.ItemStarted(c.item()))
		}
	}
}

// readRest ends a turn of which messages are missing: it reads what the turn did from the session's history.
func (c *connection) readRest(s *session, k *turn, end handoff.TurnEnded) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), openTimeout, errTimeout)
	defer cancel()
	err := s.enter(ctx)
	if err == nil {
		err = c.open(ctx, s)
		s.leave()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.lost = c.peer.Lost() != nil; k.lost { // the next connection reads it
		k.conclude()
		return
	}
	if items := s.history.items(k.id); len(items) > 0 {
		k.report(k.reducer.CatchUp(items))
	} else {
		end = handoff.TurnEnded{Status: handoff.TurnInterrupted, Code: handoff.CodeAgentEnded,
			Detail: "it said more than is kept while nobody listened, and the session cannot be read"}
		if err != nil {
			end.Detail += ": " + handoff.ClipRunes(err.Error(), maxDetail)
		}
	}
	k.endLocked(end, nil)
	k.conclude()
}

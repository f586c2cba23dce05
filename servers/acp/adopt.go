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

// adopt takes over a prompt that an earlier connection gave a session, where a keeper has it go on: all that came of it
// so far is told here, as if it came now. taken reports that it runs, and with that the session is open. The caller
// holds its gate.
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

// adopted takes what a keeper tells of a prompt that an earlier connection sent. It runs in the reader.
func (c *connection) adopted(m jsonrpc.Message) {
	var prompt adopted
	var answer answeredParams
	if json.Unmarshal(m.Params, &prompt) != nil || json.Unmarshal(m.Params, &answer) != nil {
		c.peer.Malformed.Add(1)
		return
	}
	s := c.known(prompt.Session)
	switch {
	case s == nil:
	case m.Method == onPrompted:
		s.adopt(&prompt)
	default:
		s.mu.Lock()
		k := s.turn
		s.mu.Unlock()
		if k == nil || !k.foreign {
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

// An endedError says that the agent ended before it answered a prompt, as its keeper tells.
type endedError struct{ why string }

func (e *endedError) Error() string { return e.why }

// adopt makes the turn of a prompt that an earlier connection sent. From here on what the agent says is its.
func (s *session) adopt(p *adopted) {
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
	k.foreign, k.quiet, k.gap = true, true, p.Gap
	s.turn, s.touched, s.outside, s.updated, s.known = k, time.Now(), time.Time{}, time.Time{}, false
	if s.cwd == "" {
		s.cwd = p.Cwd
	}
	s.keepLocked(k)
	s.history.add(entry{turn: id, user: true, text: words})
	k.sign()
}

// caughtUp notes that all is told that came before of the turn that was adopted: from here on it is heard as it comes.
// It runs in the reader.
func (s *session) caughtUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.turn
	if k == nil || !k.quiet {
		return
	}
	k.quiet = false
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

// fill reads from its session what a turn did that has ended, and of which not all was heard.
func (c *connection) fill(s *session, k *turn, end handoff.TurnEnded) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), openTimeout, errTimeout)
	defer cancel()
	err := s.enter(ctx)
	if err == nil {
		err = c.open(ctx, s)
		s.leave()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.lost = c.peer.Lost() != nil; k.lost { // the next connection does it
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
	k.report(k.reducer.End(end, nil))
	k.ended = &end
	k.conclude()
}

package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/servers/jsonrpc"
	"switchboard/servers/turns"
)

// Bounds of one turn.
const (
	maxMessage = 1 << 20 // bytes of one message
	maxStrays  = 8 << 10 // bytes of text that is not the agent's
	maxCalls   = 4096    // tool calls
)

// A turn is a prompt of ours, or one that is read from a history. Guarded by its session's mu.
type turn struct {
	session    *session       // Set once
	id         handoff.TurnID // Set once
	reducer    turns.Reducer
	buffer     turns.Buffer
	begun      chan struct{}      // Set once, closed at the first message of the turn
	over       chan struct{}      // Set once, closed by conclude
	hasBegun   bool               // begun is closed
	followed   bool               // a follower reads it
	lost       bool               // the connection was lost before the prompt was answered
	refusal    *jsonrpc.Error     // the agent refused the prompt before it did anything
	silent     bool               // no message of it has come, but perhaps its answer
	broken     bool               // the agent reported an error of its system
	stopped    bool               // we cancelled it
	adopted    bool               // an earlier connection sent its prompt
	catchingUp bool               // its messages are old: only finished items are reported
	gap        bool               // messages are missing: readRest reads the turn at its end
	ended      *handoff.TurnEnded // nil: it runs, or its end is not known
	calls      map[string]*call
	message    struct {
		id   string // "": no message is being written
		text strings.Builder
		cut  bool // a steer came in its middle: the message is abandoned
	}
	unnamed     int             // messages without an id so far
	pendingText []string        // messages without an id, until it is known whether they are the agent's
	splitNext   bool            // the next piece of pendingText begins a new message
	strays      strings.Builder // text that is not the agent's: warnings, errors
}

func (s *session) newTurn(id handoff.TurnID) *turn {
	return &turn{
		session: s, id: id, reducer: turns.NewReducer(id), buffer: turns.NewBuffer(&s.conn.tally.Tally),
		begun: make(chan struct{}), over: make(chan struct{}), silent: true, calls: map[string]*call{},
	}
}

// markBegun notes that a message of the turn has come.
func (k *turn) markBegun() {
	k.silent = false
	if !k.hasBegun {
		k.hasBegun = true
		close(k.begun)
		k.report(k.reducer.Begin())
	}
}

// report puts updates into the buffer of the follower.
func (k *turn) report(updates []handoff.Update) {
	if len(updates) > 0 {
		k.buffer.Put(updates...)
	}
}

// conclude notes that no more updates come. It is called once, and not for a turn that is read from a history.
func (k *turn) conclude() {
	close(k.over)
	k.buffer.Wake()
}

// done reports a finished item and writes it into the history.
func (k *turn) done(it turns.Item) {
	updates := k.reducer.ItemDone(it)
	if len(updates) > 0 {
		k.session.history.did(it.ID, it)
	}
	k.report(updates)
}

// say adds a piece of a message. A piece without an id is not the agent's, unless no message of this agent has an id.
func (k *turn) say(id, text string) {
	if id == "" {
		switch k.session.conn.messageIDs.Load() {
		case idsAlways:
			if k.strays.Len() < maxStrays {
				k.strays.WriteString(text)
			}
			return
		case idsUnknown:
			k.holdText(text)
			return
		}
		if id = k.message.id; id == "" {
			k.unnamed++
			id = fmt.Sprintf("%s-message-%d", k.id, k.unnamed)
		}
	}
	if k.message.id != id {
		k.finish()
		k.message.id = id
		if !k.catchingUp {
			k.report(k.reducer.ItemStarted(turns.Item{Item: handoff.Item{ID: id, Kind: handoff.ItemMessage}, Streamed: true}))
		}
	}
	if k.message.text.Len() < maxMessage {
		k.message.text.WriteString(text)
		if !k.catchingUp {
			k.report(k.reducer.Delta(id, text, handoff.DeltaMessage))
		}
	}
}

// holdText keeps text without an id until it is known whether it is the agent's.
func (k *turn) holdText(text string) {
	if n := len(k.pendingText); n == 0 || k.splitNext {
		k.pendingText, k.splitNext = append(k.pendingText, text), false
	} else if len(k.pendingText[n-1]) < maxMessage {
		k.pendingText[n-1] += text
	}
	if len(k.pendingText) > maxCalls {
		k.pendingText = k.pendingText[1:]
	}
}

// finish ends the message that is being written.
func (k *turn) finish() {
	k.splitNext = true
	if k.message.id == "" {
		return
	}
	it := turns.Item{
		Item:     handoff.Item{ID: k.message.id, Kind: handoff.ItemMessage, Text: k.message.text.String()},
		Streamed: true,
	}
	if k.message.cut { // it stays in the history, but the reducer withdraws it from the follower
		k.session.history.did(it.ID, it)
	} else {
		k.done(it)
	}
	k.message.id, k.message.cut = "", false
	k.message.text.Reset()
}

// think adds a piece of the agent's reasoning.
func (k *turn) think(id, text string) {
	if text == "" || k.catchingUp {
		return
	}
	k.report(k.reducer.Delta(string(k.id)+"-thought-"+id, text, handoff.DeltaReasoning))
}

// call handles an update of a tool call. Text without an id before a call is the agent's: warnings come as notices,
// which we take, and errors only at the end of a turn.
func (k *turn) call(u *update) {
	k.flushPendingText()
	k.finish()
	c := k.calls[u.ID]
	if c == nil {
		if len(k.calls) >= maxCalls {
			return
		}
		c = &call{toolCall: toolCall{ID: u.ID}}
		k.calls[u.ID] = c
	}
	if c.done {
		return
	}
	printed := c.merge(u)
	if !c.announced && c.reportable() {
		c.announced = true
		if !k.catchingUp {
			k.report(k.reducer.ItemStarted(c.item()))
		}
	}
	if c.announced && printed != "" && !k.catchingUp {
		k.report(k.reducer.Delta(c.ID, printed, handoff.DeltaOutput))
	}
	if c.ended() {
		k.done(c.item())
		*c = call{toolCall: toolCall{ID: c.ID}, done: true} // what comes later is not read
	}
}

// answered handles the answer to the prompt: the turn has ended. It runs in the reader.
func (s *session) answered(k *turn, r jsonrpc.Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn != k {
		return
	}
	s.turn, s.lastUsed = nil, time.Now()
	if k.adopted { // the mux closes the session; its modes are not known here
		s.open = false
	}
	e, refused := errors.AsType[*jsonrpc.Error](r.Err)
	_, agentEnded := errors.AsType[*endedError](r.Err)
	over := true
	switch {
	case agentEnded:
		end := handoff.TurnEnded{Status: handoff.TurnInterrupted, Code: handoff.CodeAgentEnded,
			Detail: handoff.ClipRunes(r.Err.Error(), maxDetail)}
		k.finishRunning()
		k.endLocked(end, nil)
	case r.Err != nil && !refused || s.conn.closing.Load():
		k.lost = true
	case refused && k.silent && isRefusal(e) && !k.adopted:
		k.refusal = e
		s.history.withdraw(k.id)
		k.endLocked(handoff.TurnEnded{Status: handoff.TurnFailed, Code: handoff.CodeRefused,
			Detail: handoff.ClipRunes(e.Message, maxDetail)}, nil) // Start may have returned
	default:
		k.markBegun()
		end, used := k.ending(r.Result, e)
		if k.gap {
			s.closeLocked(func(q *openQuestion) bool { return q.Turn == k.id }, true)
			s.conn.work.Go(func() { s.conn.readRest(s, k, end) })
			over = false
			break
		}
		k.endLocked(end, used)
	}
	if !k.hasBegun {
		k.hasBegun = true
		close(k.begun)
	}
	if over {
		k.conclude()
	}
	if s.conn.peer.Lost() == nil {
		s.conn.work.Go(func() { s.conn.afterTurn(s) })
	}
}

// endLocked ends the turn, and closes its questions.
func (k *turn) endLocked(end handoff.TurnEnded, used []handoff.Update) {
	k.session.closeLocked(func(q *openQuestion) bool { return q.Turn == k.id }, true)
	k.report(used)
	k.report(k.reducer.End(end, nil))
	k.ended = &end
}

// isRefusal reports whether an error means that the agent did not take the prompt.
func isRefusal(e *jsonrpc.Error) bool {
	return slices.Contains([]int{codeBadRequest, codeNoMethod, codeBadParams, codeNoSession}, e.Code)
}

// ending returns how the turn ended, and its usage.
func (k *turn) ending(result []byte, failed *jsonrpc.Error) (end handoff.TurnEnded, used []handoff.Update) {
	var p prompted
	var u *usage
	_ = json.Unmarshal(result, &p)  // an invalid result has no stop reason
	_ = json.Unmarshal(p.Usage, &u) // nil if it fails
	wordless := k.message.id == "" && k.reducer.Answer() == "" && !k.gap
	switch {
	case failed != nil && (failed.Code == codeCancelled || k.stopped):
		end.Status = handoff.TurnInterrupted
	case failed != nil:
		end = handoff.TurnEnded{Status: handoff.TurnFailed, Code: turnCode(failed), Detail: failed.Message}
		if text := strings.TrimSpace(k.message.text.String()); strings.Contains(failed.Message, text) {
			k.message.cut = true // the error was also sent as a message
		}
	case p.Stop == "cancelled":
		end.Status = handoff.TurnInterrupted
		end.Detail = k.stillRunning()
	case k.broken, p.Usage != nil && u == nil && wordless: // some failures have the stop reason end_turn
		end = handoff.TurnEnded{Status: handoff.TurnFailed, Detail: strings.TrimSpace(strings.Join(k.pendingText, "") +
			k.strays.String())}
	case p.Stop == "refusal":
		end = handoff.TurnEnded{Status: handoff.TurnFailed, Code: handoff.CodeModelRefused, Detail: p.Stop}
	case p.Stop != "end_turn":
		end = handoff.TurnEnded{Status: handoff.TurnFailed, Detail: "it stopped: " + handoff.ClipRunes(p.Stop, 80)}
	default:
		k.flushPendingText()
	}
	if end.Status != handoff.TurnInterrupted {
		k.finish()
	}
	if end.Status != handoff.TurnCompleted {
		k.finishRunning()
	}
	end.Detail = handoff.ClipRunes(end.Detail, maxDetail)
	if u != nil {
		used = k.reducer.Used(handoff.Usage{
			Input: u.Input + u.CachedRead + u.CachedWrite, Cached: u.CachedRead,
			Output: u.Output + u.Thought, Reasoning: u.Thought,
		})
	}
	return end, used
}

// flushPendingText reports the pending text as messages of the agent, unless messages with ids have come: then it is
// warnings.
func (k *turn) flushPendingText() {
	if len(k.pendingText) == 0 {
		return
	}
	ids := &k.session.conn.messageIDs
	if !ids.CompareAndSwap(idsUnknown, idsNever) && ids.Load() == idsAlways {
		return // warnings
	}
	for _, text := range k.pendingText {
		k.finish()
		k.say("", text)
	}
	k.pendingText = nil
}

// finishRunning reports tool calls that have not ended as failed, at the end of the turn.
func (k *turn) finishRunning() {
	for _, c := range k.calls {
		if c.announced && !c.done {
			it := c.item()
			it.Failed = true
			k.done(it)
		}
	}
}

// stillRunning returns a sentence about a command that may go on after a cancel, or "".
func (k *turn) stillRunning() string {
	for _, c := range k.calls {
		if c.announced && !c.done && c.ToolKind == "execute" {
			return "a command that was running may go on to its end: " + c.item().Text
		}
	}
	return ""
}

package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/servers/jsonrpc"
	"switchboard/servers/turns"
)

// Bounds of one turn.
const (
	maxMessage = 1 << 20 // bytes of one message
	maxStrays  = 8 << 10 // bytes of words that are not the agent's
	maxCalls   = 4096    // tool calls
)

// A turn is a prompt of ours, or one that is read from a history. Guarded by its session's mu.
type turn struct {
	session *session // Set once
	id      handoff.TurnID
	reducer turns.Reducer
	buffer  turns.Buffer
	begun   chan struct{}  // Set once, closed at the first sign of the turn
	over    chan struct{}  // Set once, closed by conclude
	signed  bool           // begun is closed
	reading bool           // somebody follows it
	lost    bool           // its prompt was not answered: the connection was lost
	refusal *jsonrpc.Error // the agent refused the prompt before it did anything
	silent  bool           // nothing came of it yet but its answer
	broken  bool           // the agent said that its system failed
	stopped bool           // we cancelled it
	foreign bool           // an earlier connection sent its prompt
	quiet   bool           // what is heard of it was said before: only what is finished is reported
	gap     bool           // what the agent said of it was not all kept: it is read from the session when it has ended
	ended   *handoff.TurnEnded
	calls   map[string]*call
	message struct {
		id   string // "": none is being written
		text strings.Builder
		cut  bool // words of ours came in its middle: it is abandoned
	}
	nameless int             // messages without an id
	held     []string        // messages without an id, while it is not known what these are
	apart    bool            // the next piece of held begins another
	strays   strings.Builder // words that are not the agent's: warnings, errors
}

func (s *session) newTurn(id handoff.TurnID) *turn {
	return &turn{
		session: s, id: id, reducer: turns.NewReducer(id), buffer: turns.NewBuffer(&s.conn.tally.Tally),
		begun: make(chan struct{}), over: make(chan struct{}), silent: true, calls: map[string]*call{},
	}
}

// sign notes that something came of the turn.
func (k *turn) sign() {
	k.silent = false
	if !k.signed {
		k.signed = true
		close(k.begun)
		k.report(k.reducer.Begin())
	}
}

// report hands updates to whoever follows the turn.
func (k *turn) report(updates []handoff.Update) {
	if len(updates) > 0 {
		k.buffer.Put(updates...)
	}
}

// conclude says that nothing more comes of the turn. It is called once, and not of one that is read from a history.
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

// say takes a piece of a message. One without an id is not the agent's, unless no message of this agent has one.
func (k *turn) say(id, text string) {
	if id == "" {
		switch k.session.conn.names.Load() {
		case namesAlways:
			if k.strays.Len() < maxStrays {
				k.strays.WriteString(text)
			}
			return
		case namesUnknown:
			k.hold(text)
			return
		}
		if id = k.message.id; id == "" {
			id = k.nextName()
		}
	}
	if k.message.id != id {
		k.finish()
		k.message.id = id
		if !k.quiet {
			k.report(k.reducer.ItemStarted(turns.Item{Item: handoff.Item{ID: id, Kind: handoff.ItemMessage}, Streamed: true}))
		}
	}
	if k.message.text.Len() < maxMessage {
		k.message.text.WriteString(text)
		if !k.quiet {
			k.report(k.reducer.Delta(id, text, handoff.DeltaMessage))
		}
	}
}

func (k *turn) nextName() string {
	k.nameless++
	return fmt.Sprintf("%s-message-%d", k.id, k.nameless)
}

// hold keeps words until it is known what words without an id are.
func (k *turn) hold(text string) {
	if n := len(k.held); n == 0 || k.apart {
		k.held, k.apart = append(k.held, text), false
	} else if len(k.held[n-1]) < maxMessage {
		k.held[n-1] += text
	}
	if len(k.held) > maxCalls {
		k.held = k.held[1:]
	}
}

// finish ends the message that is being written: something else has begun.
func (k *turn) finish() {
	k.apart = true
	if k.message.id == "" {
		return
	}
	it := turns.Item{
		Item:     handoff.Item{ID: k.message.id, Kind: handoff.ItemMessage, Text: k.message.text.String()},
		Streamed: true,
	}
	if k.message.cut { // it stands there, and is not told: the reducer withdraws it
		k.session.history.did(it.ID, it)
	} else {
		k.done(it)
	}
	k.message.id, k.message.cut = "", false
	k.message.text.Reset()
}

// think takes a piece of what the agent thinks.
func (k *turn) think(id, text string) {
	if text == "" || k.quiet {
		return
	}
	k.report(k.reducer.Delta(string(k.id)+"-thought-"+id, text, handoff.DeltaReasoning))
}

// call takes a tool call, or what changed of one. Warnings come as notices, because we take these, and errors come at
// the end of a turn: words without an id that are followed by a call are the agent's.
func (k *turn) call(u *update) {
	k.tellHeld()
	k.finish()
	c := k.calls[u.ID]
	if c == nil {
		if len(k.calls) >= maxCalls {
			return
		}
		c = &call{toolCall: toolCall{ID: u.ID}}
		k.calls[u.ID] = c
	}
	printed := c.merge(u)
	if !c.announced && c.known() {
		c.announced = true
		if !k.quiet {
			k.report(k.reducer.ItemStarted(c.item()))
		}
	}
	if c.announced && printed != "" && !c.done && !k.quiet {
		k.report(k.reducer.Delta(c.ID, printed, handoff.DeltaOutput))
	}
	if c.ended() {
		c.done = true
		k.done(c.item())
	}
}

// answered takes what became of the prompt: its turn has ended. It runs in the reader.
func (s *session) answered(k *turn, r jsonrpc.Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn != k {
		return
	}
	s.turn, s.touched = nil, time.Now()
	if k.foreign { // its keeper closes the session, whose modes are not known here
		s.open = false
	}
	e, refused := errors.AsType[*jsonrpc.Error](r.Err)
	_, agentEnded := errors.AsType[*endedError](r.Err)
	over := true
	switch {
	case agentEnded:
		end := handoff.TurnEnded{Status: handoff.TurnInterrupted, Code: handoff.CodeAgentEnded,
			Detail: handoff.ClipRunes(r.Err.Error(), maxDetail)}
		k.cutShort()
		k.endLocked(end, nil)
	case r.Err != nil && !refused || s.conn.closing.Load():
		k.lost = true
	case refused && k.silent && isRefusal(e) && !k.foreign:
		k.refusal = e
		s.history.withdraw(k.id)
	default:
		k.sign()
		end, used := k.ending(r.Result, e)
		if k.gap {
			s.closeLocked(func(q *openQuestion) bool { return q.Turn == k.id }, true)
			s.conn.work.Go(func() { s.conn.fill(s, k, end) })
			over = false
			break
		}
		k.endLocked(end, used)
	}
	if !k.signed {
		k.signed = true
		close(k.begun)
	}
	if over {
		k.conclude()
	}
	if s.conn.peer.Lost() == nil {
		s.conn.work.Go(func() { s.conn.rest(s) })
	}
}

// endLocked ends the turn, and closes its questions.
func (k *turn) endLocked(end handoff.TurnEnded, used []handoff.Update) {
	k.session.closeLocked(func(q *openQuestion) bool { return q.Turn == k.id }, true)
	k.report(used)
	k.report(k.reducer.End(end, nil))
	k.ended = &end
}

// isRefusal reports whether an error says that a prompt was not taken.
func isRefusal(e *jsonrpc.Error) bool {
	switch e.Code {
	case codeBadRequest, codeNoMethod, codeBadParams, codeNoSession:
		return true
	}
	return false
}

// ending says how the turn ended, and what it used.
func (k *turn) ending(result []byte, failed *jsonrpc.Error) (end handoff.TurnEnded, used []handoff.Update) {
	var p prompted
	var u *usage
	_ = json.Unmarshal(result, &p)  // what cannot be read has no stop reason
	_ = json.Unmarshal(p.Usage, &u) // likewise
	wordless := k.message.id == "" && k.reducer.Answer() == "" && !k.gap
	switch {
	case failed != nil && (failed.Code == codeCancelled || k.stopped):
		end.Status = handoff.TurnInterrupted
	case failed != nil:
		end = handoff.TurnEnded{Status: handoff.TurnFailed, Code: turnCode(failed), Detail: failed.Message}
		if text := strings.TrimSpace(k.message.text.String()); strings.Contains(failed.Message, text) {
			k.message.cut = true // the error, said as if the agent had said it
		}
	case p.Stop == "cancelled":
		end.Status = handoff.TurnInterrupted
		end.Detail = k.goingOn()
	case k.broken, p.Usage != nil && u == nil && wordless: // a failure may say that the turn ended well
		end = handoff.TurnEnded{Status: handoff.TurnFailed, Detail: strings.TrimSpace(strings.Join(k.held, "") +
			k.strays.String())}
	case p.Stop == "refusal":
		end = handoff.TurnEnded{Status: handoff.TurnFailed, Code: handoff.CodeModelRefused, Detail: p.Stop}
	case p.Stop != "end_turn":
		end = handoff.TurnEnded{Status: handoff.TurnFailed, Detail: "it stopped: " + handoff.ClipRunes(p.Stop, 80)}
	default:
		k.tellHeld()
	}
	if end.Status != handoff.TurnInterrupted {
		k.finish()
	}
	if end.Status != handoff.TurnCompleted {
		k.cutShort()
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

// tellHeld tells the messages that were held: no other came.
func (k *turn) tellHeld() {
	if len(k.held) == 0 {
		return
	}
	names := &k.session.conn.names
	if !names.CompareAndSwap(namesUnknown, namesNever) && names.Load() == namesAlways {
		return // warnings
	}
	for _, text := range k.held {
		k.finish()
		k.say("", text)
	}
	k.held = nil
}

// cutShort finishes what was running when the turn ended: it has run so far.
func (k *turn) cutShort() {
	for _, c := range k.calls {
		if c.announced && !c.done {
			it := c.item()
			it.Failed = true
			k.done(it)
		}
	}
}

// goingOn names what an agent may still be running after a cancel.
func (k *turn) goingOn() string {
	for _, c := range k.calls {
		if c.announced && !c.done && c.ToolKind == "execute" {
			return "a command that was running may go on to its end: " + c.item().Text
		}
	}
	return ""
}

package simulator

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"switchboard/handoff"
)

// maxInput is how many characters the input of a turn may have.
const maxInput = 1 << 20

// A Start is a turn/start or turn/steer that a machine received.
type Start struct {
	Thread   string
	Turn     string // the turn that it began or steered; "" after StartLost
	Prompt   string
	ClientID string // clientUserMessageId
	Asked    string // the first 4 KiB of the params; "" for a steer
	Steered  bool   // it steered a running turn
	At       time.Time
}

// turnParams are the params of the methods on turns.
type turnParams struct {
	Input    []struct{ Type, Text string }
	ClientID *string `json:"clientUserMessageId"`
	Expected *string `json:"expectedTurnId"`
	TurnID   *string `json:"turnId"`
}

func (p turnParams) input() (input, *refusal) {
	var texts []string
	for _, in := range p.Input {
		if in.Type == "text" {
			texts = append(texts, in.Text)
		}
	}
	text := strings.Join(texts, "\n")
	if n := utf8.RuneCountInString(text); n > maxInput {
		return input{}, &refusal{code: codeParams, text: "input is too large", data: map[string]any{
			"input_error_code": "input_too_large", "max_chars": maxInput, "actual_chars": n,
		}}
	}
	return input{text: text, client: p.ClientID}, nil
}

// turnStart begins a turn. On a thread with a running turn it becomes a steer and answers with that turn, as the real
// one does.
func turnStart(t *thread, r request, p turnParams) *refusal {
	in, no := p.input()
	if no != nil {
		return no
	}
	start := Start{Thread: t.id, Prompt: in.text, Asked: handoff.Clip(string(r.args), 4<<10), At: time.Now(),
		Steered: t.turn != nil}
	if in.client != nil {
		start.ClientID = *in.client
	}
	fault := t.m.faults.Start
	if t.m.faults.StartOnce {
		t.m.faults.Start = StartFine
	}
	if fault == StartLost {
		t.m.starts = append(t.m.starts, start)
		r.conn.Lose(errCut)
		return nil
	}
	u := t.turn
	if u == nil {
		u = &turn{id: newID(start.At), thread: t, status: turnRunning}
	}
	start.Turn = u.id
	t.m.starts = append(t.m.starts, start)
	if fault == StartCut {
		r.conn.Lose(errCut)
	} else {
		r.conn.reply(r.id, map[string]any{"turn": u.wire(viewNone)})
	}
	switch {
	case t.turn != nil:
		u.steer(in)
	case fault == StartSlow:
		t.turn, u.coming = u, true
		u.next = t.m.later(slowStart, func() { u.begin(); u.work(in) })
	default:
		u.begin()
		u.work(in)
	}
	return nil
}

// slowStart is how long after its answer a turn begins with [StartSlow]; with the real one it was 3 to 8 ms.
const slowStart = 20 * time.Millisecond

// work begins the work of a turn that has begun.
func (u *turn) work(in input) {
	u.say(in)
	u.plan(in, false)
	u.advance()
}

// begin begins a turn and notifies the clients.
func (u *turn) begin() {
	t := u.thread
	t.turn, t.stored, u.coming = u, true, false
	t.turns = append(t.turns, u)
	t.unload.cancel()
	u.started = time.Now()
	t.updated = u.started
	t.setStatus(statusActive)
	t.publish("turn/started", map[string]any{"turn": u.wire(viewNone)})
}

// say adds the user's message to a turn.
func (u *turn) say(in input) {
	if in.text == "" {
		return // a turn without a message
	}
	if u.thread.preview == "" {
		u.thread.preview = in.text
	}
	it := &item{kind: "userMessage", text: in.text, client: in.client}
	u.openItem(it)
	u.closeItem(it)
}

// plan sets the frames of a turn for an input.
func (u *turn) plan(in input, steered bool) {
	u.frames, u.hangs = nil, false
	t := u.thread
	prompt := Prompt{Text: in.text, Steered: steered}
	var steps []Step
	if t.m.script != nil {
		steps = t.m.script(prompt)
	}
	if steps == nil {
		s := t.scene()
		s.steered = steered
		steps = plan(s, in.text)
	}
	if t.m.holds != nil && t.m.holds(prompt) {
		steps = slices.Insert(slices.Clone(steps), len(steps)-1, Step(Hang{}))
	}
	u.frames = frames(steps)
}

// scene returns what the built-in agent knows in a thread.
func (t *thread) scene() scene {
	return scene{
		dir: t.cwd, branch: cmp.Or(t.branch, "main"), failing: isShop(t.cwd) && !t.m.fixed,
		sawFailure: t.sawFailure, pushed: t.pushed, done: t.done,
	}
}

// advance runs the frames of a turn until it has to wait.
func (u *turn) advance() {
	for u.status == turnRunning && u.ask == nil {
		if len(u.steers) > 0 && !u.busy() {
			u.absorb()
			continue
		}
		if len(u.frames) == 0 {
			u.finish(turnCompleted, "")
			return
		}
		f := u.frames[0]
		if f.after > 0 {
			u.frames[0].after = 0
			u.next = u.thread.m.after(f.after, u.advance)
			return
		}
		u.frames = u.frames[1:]
		if f.do(u) {
			return
		}
	}
}

// steer adds an input to a running turn. The agent hears it at once while it speaks or thinks; a command, an edit or a
// request to the clients ends first.
func (u *turn) steer(in input) {
	u.steers = append(u.steers, in)
	if u.coming || u.ask != nil || u.busy() {
		return
	}
	u.next.cancel()
	u.advance()
}

// busy reports whether a command or an edit is open.
func (u *turn) busy() bool {
	return slices.ContainsFunc(u.open, func(it *item) bool {
		return it.kind == "commandExecution" || it.kind == "fileChange"
	})
}

// absorb gives the agent all waiting inputs. Its open item is withdrawn and never ends. It then works on the last
// input.
func (u *turn) absorb() {
	if len(u.open) > 0 {
		u.open = nil
		u.usage()
	}
	last := u.steers[len(u.steers)-1]
	for _, in := range u.steers {
		u.say(in)
	}
	u.steers = nil
	u.plan(last, true)
}

func turnSteer(t *thread, r request, p turnParams) *refusal {
	switch {
	case p.Expected == nil:
		return refuse("Invalid request: missing field `expectedTurnId`")
	case *p.Expected == "":
		return refuse("expectedTurnId must not be empty")
	case t.turn == nil:
		return refuse("no active turn to steer")
	case t.turn.id != *p.Expected:
		return refuse("expected active turn id `%s` but found `%s`", *p.Expected, t.turn.id)
	case len(p.Input) == 0:
		return refuse("input must not be empty")
	}
	in, no := p.input()
	if no != nil {
		return no
	}
	start := Start{Thread: t.id, Turn: t.turn.id, Prompt: in.text, Steered: true, At: time.Now()}
	if in.client != nil {
		start.ClientID = *in.client
	}
	t.m.starts = append(t.m.starts, start)
	r.conn.reply(r.id, map[string]any{"turnId": t.turn.id})
	t.turn.steer(in)
	return nil
}

func turnInterrupt(t *thread, r request, p turnParams) *refusal {
	switch {
	case p.TurnID == nil:
		return refuse("Invalid request: missing field `turnId`")
	case *p.TurnID == "":
	case t.turn == nil, t.turn.coming:
		return refuse("no active turn to interrupt")
	case t.turn.id != *p.TurnID:
		return refuse("expected active turn id %s but found %s", *p.TurnID, t.turn.id)
	}
	r.conn.reply(r.id, map[string]any{})
	if t.turn != nil {
		t.turn.finish(turnInterrupted, "")
	}
	return nil
}

// finish ends a turn. Its open items never end; an open request to the clients is withdrawn last.
func (u *turn) finish(status, fault string) {
	t := u.thread
	u.next.cancel()
	u.status, u.fault, u.completed = status, fault, time.Now()
	u.frames, u.steers, u.open = nil, nil, nil
	t.turn, t.updated = nil, u.completed
	turn := u.wire(viewNone)
	switch status {
	case turnFailed:
		t.setStatus(statusFailed)
		t.publish("error", map[string]any{"error": turn["error"], "willRetry": false, "turnId": u.id})
		u.markUnread()
	case turnCompleted:
		turn["itemsView"] = viewSummary
		if last := u.lastMessage(); last != nil {
			turn["items"] = []any{last.wire()}
		}
		u.markUnread()
		t.setStatus(statusIdle)
	default:
		t.setStatus(statusIdle)
	}
	t.publish("turn/completed", map[string]any{"turn": turn})
	if u.ask != nil {
		t.m.resolve(u.ask)
	}
	t.unloadLater()
}

// markUnread notifies the clients that the turn is unread.
func (u *turn) markUnread() {
	u.thread.publish("thread/readState/changed", map[string]any{"readState": map[string]any{
		"firstUnread": map[string]any{"type": "turn", "turnId": u.id}, "revision": newID(time.Now()),
	}})
}

// usage publishes the token usage, which follows every answer of the model.
func (u *turn) usage() {
	tokens := map[string]any{
		"totalTokens": 110, "inputTokens": 100, "cachedInputTokens": 0, "cacheWriteInputTokens": 0, "outputTokens": 10,
		"reasoningOutputTokens": 0,
	}
	u.thread.publish("thread/tokenUsage/updated", map[string]any{"turnId": u.id, "tokenUsage": map[string]any{
		"total": tokens, "last": tokens, "modelContextWindow": 258400,
	}})
	u.thread.m.notify(u.thread.subscribers, "account/rateLimits/updated", map[string]any{
		"rateLimits": map[string]any{"limitId": "codex", "limitName": nil},
	})
}

// openItem begins an item.
func (u *turn) openItem(it *item) {
	it.started = time.Now()
	if it.id == "" {
		it.id = newID(it.started)
	}
	u.open = append(u.open, it)
	u.thread.publish("item/started", map[string]any{"item": it.wire(), "turnId": u.id,
		"startedAtMs": it.started.UnixMilli()})
}

// closeItem ends an open item.
func (u *turn) closeItem(it *item) {
	it.completed = time.Now()
	u.open = slices.DeleteFunc(u.open, func(have *item) bool { return have == it })
	u.items = append(u.items, it)
	u.thread.publish("item/completed", map[string]any{
		"item": it.wire(), "turnId": u.id, "contentTokenCount": nil, "completedAtMs": it.completed.UnixMilli(),
	})
}

// delta publishes a piece of an open item.
func (u *turn) delta(it *item, method, text string) {
	u.thread.publish(method, map[string]any{"turnId": u.id, "itemId": it.id, "delta": text})
}

// learn makes a fact true.
func (t *thread) learn(f Fact) {
	s := t.scene()
	s.Learn(f)
	t.sawFailure, t.pushed, t.done = s.sawFailure, s.pushed, s.done
	t.m.fixed = t.m.fixed || f == FactFixed
}

package simulator

import (
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
	Turn    string // the turn that it began or steered; "" after StartLost
	Prompt  string
	Asked   string // the first 4 KiB of the params; "" for a steer
	Steered bool   // it steered a running turn
}

// turnParams are the params of the methods on turns.
type turnParams struct {
	Input    []struct{ Type, Text string }
	ClientID *string `json:"clientUserMessageId"`
	Expected string  `json:"expectedTurnId"`
	TurnID   string  `json:"turnId"`
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
	start := Start{Prompt: in.text, Asked: handoff.Clip(string(r.args), 4<<10), Steered: t.turn != nil}
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
		u = &turn{id: newID(time.Now()), thread: t, status: turnRunning, work: NewWork(t.plan, t.learn)}
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
		u.next = t.m.after(slowStart, func() { u.begin(in) })
	default:
		u.begin(in)
	}
	return nil
}

// slowStart is how long after its answer a turn begins with [StartSlow]; with the real one it was 3 to 8 ms.
const slowStart = 20 * time.Millisecond

// begin begins a turn with an input, and its work.
func (u *turn) begin(in input) {
	t := u.thread
	t.turn, t.stored, u.coming = u, true, false
	t.turns = append(t.turns, u)
	u.started = time.Now()
	t.updated = u.started
	t.setStatus(statusActive)
	t.publish("turn/started", map[string]any{"turn": u.wire(viewNone)})
	u.say(in)
	u.work.Hear(Prompt{Text: in.text})
	u.advance()
}

// say adds the user's message to a turn.
func (u *turn) say(in input) {
	if in.text == "" {
		return // a turn without a message
	}
	if u.thread.preview == "" {
		u.thread.preview = in.text
	}
	it := &item{Item: &Item{Kind: ItemUser, Text: in.text}, client: in.client}
	u.openItem(it)
	u.closeItem(it)
}

// plan returns the steps for a prompt: those of the script, or else those of the built-in agent.
func (t *thread) plan(p Prompt) []Step {
	t.known.failing = isShop(t.cwd) && !t.m.fixed
	p.Known = t.known.Plan(p)
	if t.m.Script != nil {
		if steps := t.m.Script(p); steps != nil {
			return steps
		}
	}
	return p.Known
}

// learn makes a fact true.
func (t *thread) learn(f Fact) {
	t.known.Learn(f)
	t.m.fixed = t.m.fixed || f == FactFixed
}

// advance does the work of a turn until it has to wait.
func (u *turn) advance() {
	for u.status == turnRunning {
		if len(u.steers) > 0 && !u.work.Busy() {
			u.absorb()
			continue
		}
		act, more := u.work.Next()
		if !more && u.ask == nil {
			u.finish(turnCompleted, "")
		}
		if !more || !u.show(act) {
			return
		}
	}
}

// show shows an act to the clients. It returns false if the turn has to wait.
func (u *turn) show(act Act) bool {
	switch act.Does {
	case Waits:
		if act.For > 0 {
			u.next = u.thread.m.after(act.For, u.advance)
		}
		return act.For <= 0
	case Begins:
		u.openItem(&item{Item: act.Item, cwd: u.thread.cwd})
	case Adds:
		u.delta(u.itemOf(act.Item), act.Text)
	case Ends:
		u.endItem(u.itemOf(act.Item))
	case Asks:
		return !u.asks(act)
	case Tells:
		if fail, ok := act.Step.(Fail); ok {
			u.finish(turnFailed, fail.Message)
		}
	case Rests:
		u.hangs = !u.thread.m.released
		return !u.hangs
	}
	return true
}

// steer adds an input to a running turn. The agent hears it at once while it speaks or thinks; a command, an edit or a
// request to the clients ends first.
func (u *turn) steer(in input) {
	u.steers = append(u.steers, in)
	if u.coming || u.work.Busy() {
		return
	}
	u.next.cancel()
	u.advance()
}

// absorb gives the agent all waiting inputs. Its open item is withdrawn and never ends. It then works on the last
// input.
func (u *turn) absorb() {
	if u.work.Open() {
		u.usage()
	}
	u.open, u.hangs = nil, false
	last := u.steers[len(u.steers)-1]
	for _, in := range u.steers {
		u.say(in)
	}
	u.steers = nil
	u.work.Hear(Prompt{Text: last.text, Steered: true})
}

func turnSteer(t *thread, r request, p turnParams) *refusal {
	switch {
	case t.turn == nil:
		return refuse("no active turn to steer")
	case t.turn.id != p.Expected:
		return refuse("expected active turn id `%s` but found `%s`", p.Expected, t.turn.id)
	}
	in, no := p.input()
	if no != nil {
		return no
	}
	t.m.starts = append(t.m.starts, Start{Turn: t.turn.id, Prompt: in.text, Steered: true})
	r.conn.reply(r.id, map[string]any{"turnId": t.turn.id})
	t.turn.steer(in)
	return nil
}

func turnInterrupt(t *thread, r request, p turnParams) *refusal {
	switch {
	case p.TurnID == "":
	case t.turn == nil, t.turn.coming:
		return refuse("no active turn to interrupt")
	case t.turn.id != p.TurnID:
		return refuse("expected active turn id %s but found %s", p.TurnID, t.turn.id)
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
	u.work.Leave()
	u.steers, u.open = nil, nil
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

// endItem ends an open item of the agent, and publishes what follows it.
func (u *turn) endItem(it *item) {
	u.closeItem(it)
	if it.Kind != ItemThought {
		u.usage()
	}
	if it.Kind == ItemEdit {
		var diff strings.Builder
		for _, c := range it.Changes {
			diff.WriteString("diff --git a/" + c.Path + " b/" + c.Path + "\n" + c.Diff)
		}
		u.thread.publish("turn/diff/updated", map[string]any{"turnId": u.id, "diff": diff.String()})
	}
}

// itemOf returns the open item of the work.
func (u *turn) itemOf(of *Item) *item {
	return u.open[slices.IndexFunc(u.open, func(it *item) bool { return it.Item == of })]
}

// delta publishes a piece of an open item.
func (u *turn) delta(it *item, text string) {
	params := map[string]any{"turnId": u.id, "itemId": it.id, "delta": text}
	method := map[string]string{
		ItemMessage: "item/agentMessage/delta", ItemCommand: "item/commandExecution/outputDelta",
		ItemThought: "item/reasoning/summaryTextDelta",
	}[it.Kind]
	if it.Kind == ItemThought {
		params["summaryIndex"] = 0
	}
	u.thread.publish(method, params)
}

package responses

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers/responses/wire"
	"switchboard/servers/responses/workspace"
)

const (
	// maxParallel is how many tool calls of one answer run at once.
	maxParallel = 8
	// maxRepeats is how often a turn may make the same call before the model is told so.
	maxRepeats = 3
	// maxShown bounds the shown output of a tool, in bytes; its end is kept.
	maxShown = 64 << 10
	// maxPrinted bounds what is shown of the output of a tool while it works, in bytes.
	maxPrinted = 1 << 20
)

// leftOut replaces output that is not shown.
const leftOut = "\n[… more was printed …]\n"

// tools are the tools that a model may call.
type tools interface {
	Tools() []workspace.Tool
	Allowed() []string
	// Run runs a tool. It returns when nothing of the tool is left running. Errors are results.
	Run(ctx context.Context, name string, args json.RawMessage, call workspace.Call) workspace.Result
}

// A toolCall is a call of the model while its tool runs.
type toolCall struct {
	call    wire.Item
	printed printed
	result  workspace.Result
	done    chan struct{} // closed when result is set
}

// printed is what a tool prints. It is kept until its call is shown, and then shown as it comes, in whole characters.
// Writing never blocks, and never fails.
type printed struct {
	mu   sync.Mutex
	show func(string) // Guarded by mu, like all below: nil until the call is shown
	text []byte       // not shown yet
	room int          // bytes that may still be printed; the rest is left out
	over bool
}

// Write implements [io.Writer].
func (p *printed) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.over:
		return len(text), nil
	case len(text) > p.room:
		p.text, p.over = append(p.text, leftOut...), true
	default:
		p.text, p.room = append(p.text, text...), p.room-len(text)
	}
	p.flush(whole(p.text))
	return len(text), nil
}

// to has what is printed shown from now on.
func (p *printed) to(show func(string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.show = show
	p.flush(whole(p.text))
}

// close shows what is left. Nothing more is shown.
func (p *printed) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.flush(len(p.text))
}

// flush shows the first n bytes that are not shown yet. The caller holds mu.
func (p *printed) flush(n int) {
	if p.show != nil && n > 0 {
		p.show(strings.ToValidUTF8(string(p.text[:n]), "?"))
		p.text = p.text[n:]
	}
}

// whole returns the length of a text without an incomplete character at its end.
func whole(text []byte) int {
	for i := len(text) - 1; i >= 0 && i > len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return i
			}
			break
		}
	}
	return len(text)
}

// answer runs the calls of one answer concurrently, shows them one after the other, and stores one output for each,
// both in the order of the calls. New words for the turn follow with the next request.
func (r *run) answer(ctx context.Context, calls []wire.Item) error {
	running := make([]*toolCall, len(calls))
	var work sync.WaitGroup
	slots := make(chan struct{}, maxParallel)
	for i, call := range calls {
		c := &toolCall{call: call, printed: printed{room: maxPrinted}, done: make(chan struct{})}
		running[i] = c
		work.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			r.runTool(ctx, c)
		})
	}
	var items []threads.Item
	for _, c := range running {
		r.show(c)
		items = append(items, threads.Item{JSON: outputItem(c.call,
			output{Text: c.result.Text, Pictures: c.result.Pictures})})
		if len(c.result.Changes) > 0 {
			items = append(items, threads.Item{JSON: wire.Encode(object{
				"type": typeChanges, "call_id": c.call.CallID, "changes": c.result.Changes})}) // for later readers
		}
	}
	work.Wait()
	return r.keep(ctx, items, nil)
}

// runTool runs one call. The call gets a result even if the tool panics.
func (r *run) runTool(ctx context.Context, c *toolCall) {
	defer close(c.done)
	defer func() {
		if v := recover(); v != nil {
			r.server.cfg.Log.Error("a tool panicked", zap.String("tool", c.call.Name), zap.Any("panic", v), zap.Stack("stack"))
			c.result = workspace.Result{Text: "Error: the tool broke down", Failed: true}
		}
	}()
	args := json.RawMessage(c.call.Arguments)
	switch {
	case ctx.Err() != nil:
		c.result = workspace.Result{Text: unanswered, Failed: true}
		return
	case !json.Valid(args):
		c.result = workspace.Result{Text: "Error: the arguments are no JSON", Failed: true}
		return
	}
	c.result = r.server.cfg.Workspace.Run(ctx, c.call.Name, args, workspace.Call{
		Out: &c.printed,
		Ask: func(ctx context.Context, q handoff.Question) (bool, error) { return r.askPerson(ctx, c.call, q) },
	})
	if ctx.Err() != nil {
		c.result.Text, c.result.Failed = unanswered, true
	}
}

// askPerson asks a person about a call, unless the same act was allowed for the session.
func (r *run) askPerson(ctx context.Context, call wire.Item, q handoff.Question) (bool, error) {
	act := wire.Encode([]any{r.thread, q.Kind, q.Text, q.Command, q.Cwd, q.Changes})
	if r.server.allowedBefore(string(act)) {
		return true, nil
	}
	q.ID, q.Turn = questionID(r.server.cfg.Name, r.thread, r.id, call.ID), r.id
	d, err := r.hub.ask(ctx, q)
	switch d {
	case handoff.DecisionAcceptForSession:
		r.server.allow(string(act))
	case handoff.DecisionStop: // before the tool or the model can go on
		r.interrupt(errInterrupted)
	}
	return d == handoff.DecisionAccept || d == handoff.DecisionAcceptForSession, err
}

// show publishes a call from its beginning to its end.
func (r *run) show(c *toolCall) {
	it := workspace.Shown(c.call.Name, c.call.Arguments)
	it.ID = c.call.ID
	r.hub.began(it)
	var shown strings.Builder
	c.printed.to(func(text string) {
		r.hub.delta(it.ID, handoff.DeltaOutput, text)
		shown.WriteString(text)
	})
	<-c.done
	c.printed.close()
	it.Output = handoff.Tail(shown.String(), maxShown)
	switch {
	case len(c.result.Changes) > 0: // the changes are shown instead
		it.Output = ""
	case it.Kind != handoff.ItemCommand && (it.Output == "" || c.result.Failed):
		it.Output = handoff.Tail(c.result.Text, maxShown)
	}
	it.Exit, it.Failed, it.Changes = c.result.Exit, c.result.Failed, c.result.Changes
	if n := r.countCall(c.call); n >= maxRepeats {
		c.result.Text += fmt.Sprintf("\n[You made this same call %d times in this turn. Do something else, or answer.]", n)
	}
	r.hub.finished(it)
}

// countCall returns how often this turn has made a call with the same arguments.
func (r *run) countCall(call wire.Item) int {
	if r.calls == nil {
		r.calls = map[string]int{}
	}
	key := call.Name + " " + call.Arguments
	r.calls[key]++
	return r.calls[key]
}

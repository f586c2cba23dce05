package responses

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

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
)

// tools are the tools that a model may call.
type tools interface {
	Tools() []workspace.Tool
	Allowed() []string
	// Run runs a tool. It returns when nothing of the tool is left running. Errors are results.
	Run(ctx context.Context, name string, args json.RawMessage, call workspace.Call) workspace.Result
}

// A toolCall is a call of the model while its tool runs.
type toolCall struct {
	call   wire.Item
	output *workspace.Output // buffered until the call is shown
	result workspace.Result
	done   chan struct{} // closed when result is set
}

// answer runs the calls of one answer concurrently, shows them one after the other, and stores one output for each,
// both in the order of the calls. New words for the turn follow with the next request.
func (r *run) answer(ctx context.Context, calls []wire.Item) error {
	running := make([]*toolCall, len(calls))
	var work sync.WaitGroup
	slots := make(chan struct{}, maxParallel)
	for i, call := range calls {
		c := &toolCall{call: call, output: workspace.NewOutput(), done: make(chan struct{})}
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
	defer c.output.Close()
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
		Out: c.output,
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
	q.ID, q.Turn = questionID(r.server.cfg.Name, r.thread, r.id, call.CallID), r.id
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
	var shown bytes.Buffer
	for text := range c.output.All() {
		r.hub.delta(it.ID, handoff.DeltaOutput, text)
		shown.WriteString(text)
	}
	<-c.done
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

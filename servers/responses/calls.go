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
	// parallel is how many tools of one answer run at once.
	parallel = 8
	// repeats is how often the same call may be made before the model is told that it goes in circles.
	repeats = 3
	// maxShown bounds what is shown of a tool's output, in bytes; its end is kept.
	maxShown = 64 << 10
)

// A tools is what a model may call.
type tools interface {
	Tools() []workspace.Tool
	Allowed() []string
	// Run uses a tool and returns when nothing of it runs any more. Errors are results.
	Run(ctx context.Context, name string, args json.RawMessage, call workspace.Call) workspace.Result
}

// A window is one call while it runs. Its output waits there until its turn to be shown.
type window struct {
	call   wire.Item
	output *workspace.Output
	result workspace.Result
	done   chan struct{} // closed when result is set
}

// answer runs the calls of one answer side by side, shows them one after the other in call order, and writes one
// output for each, in call order. What the turn was told meanwhile comes after them, with the next request.
func (r *run) answer(ctx context.Context, calls []wire.Item) error {
	windows := make([]*window, len(calls))
	var work sync.WaitGroup
	room := make(chan struct{}, parallel)
	for i, call := range calls {
		w := &window{call: call, output: workspace.NewOutput(), done: make(chan struct{})}
		windows[i] = w
		work.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			r.use(ctx, w)
		})
	}
	var items []threads.Item
	for _, w := range windows {
		r.show(w)
		items = append(items, threads.Item{JSON: outputItem(w.call,
			output{Text: w.result.Text, Pictures: w.result.Pictures})})
		if len(w.result.Changes) > 0 {
			items = append(items, threads.Item{JSON: wire.Encode(object{
				"type": typeChanges, "call_id": w.call.CallID, "changes": w.result.Changes})}) // to be shown later
		}
	}
	work.Wait()
	return r.keep(ctx, items, nil)
}

// use runs one call. Whatever the tool does, its window gets a result.
func (r *run) use(ctx context.Context, w *window) {
	defer close(w.done)
	defer w.output.Close()
	defer func() {
		if v := recover(); v != nil {
			r.server.log.Error("a tool panicked", zap.String("tool", w.call.Name), zap.Any("panic", v), zap.Stack("stack"))
			w.result = workspace.Result{Text: "Error: the tool broke down", Failed: true}
		}
	}()
	args := json.RawMessage(w.call.Arguments)
	switch {
	case ctx.Err() != nil:
		w.result = workspace.Result{Text: unanswered, Failed: true}
		return
	case !json.Valid(args):
		w.result = workspace.Result{Text: "Error: the arguments are no JSON", Failed: true}
		return
	}
	w.result = r.server.workspace.Run(ctx, w.call.Name, args, workspace.Call{
		Out: w.output,
		Ask: func(ctx context.Context, q handoff.Question) (bool, error) { return r.consult(ctx, w.call, q) },
	})
	if ctx.Err() != nil {
		w.result.Text, w.result.Failed = unanswered, true
	}
}

// consult asks a person for a call. Acts that were allowed for the session are not asked again.
func (r *run) consult(ctx context.Context, call wire.Item, q handoff.Question) (bool, error) {
	same := wire.Encode([]any{r.thread, q.Kind, q.Text, q.Command, q.Cwd, q.Changes})
	if r.server.allowedBefore(string(same)) {
		return true, nil
	}
	q.ID, q.Turn = questionID(r.server.cfg.Name, r.thread, r.id, call.CallID), r.id
	d, err := r.hub.ask(ctx, q)
	switch d {
	case handoff.DecisionAcceptForSession:
		r.server.allow(string(same))
	case handoff.DecisionStop: // here, so that neither the tool nor the model goes on before it
		r.interrupt(errInterrupted)
	}
	return d == handoff.DecisionAccept || d == handoff.DecisionAcceptForSession, err
}

// show tells a call from its beginning to its end.
func (r *run) show(w *window) {
	it := workspace.Shown(w.call.Name, w.call.Arguments)
	it.ID = w.call.ID
	r.hub.began(it)
	var shown bytes.Buffer
	for text := range w.output.All() {
		r.hub.delta(it.ID, handoff.DeltaOutput, text)
		shown.WriteString(text)
	}
	<-w.done
	it.Output = handoff.Tail(shown.String(), maxShown)
	switch {
	case len(w.result.Changes) > 0: // they show what the edit did
		it.Output = ""
	case it.Kind != handoff.ItemCommand && (it.Output == "" || w.result.Failed):
		it.Output = handoff.Tail(w.result.Text, maxShown)
	}
	it.Exit, it.Failed, it.Changes = w.result.Exit, w.result.Failed, w.result.Changes
	if n := r.count(w.call); n >= repeats {
		w.result.Text += fmt.Sprintf("\n[You made this same call %d times in this turn. Do something else, or answer.]", n)
	}
	r.hub.finished(it)
}

// count returns how often a call was made in this turn with the same arguments.
func (r *run) count(call wire.Item) int {
	if r.asked == nil {
		r.asked = map[string]int{}
	}
	key := call.Name + " " + call.Arguments
	r.asked[key]++
	return r.asked[key]
}

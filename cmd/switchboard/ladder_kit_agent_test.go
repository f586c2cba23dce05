package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
	"switchboard/servers/responses/workspace"
)

// A ladderAgent is an attached thread behind the way to its machine.
type ladderAgent struct {
	handoff.Agent
	handoff.Controls
	handoff.Reconciler
	world  *ladderWorld
	target handoff.Target
}

// Start implements [handoff.Agent].
func (a *ladderAgent) Start(ctx context.Context, turn handoff.Turn) (handoff.TurnID, error) {
	w := a.world
	if err := w.Wait(ctx, w.StartTakes); err != nil {
		return "", err
	}
	lost := w.Failure("start "+a.target.Thread, a.target.Server)
	if lost != nil && !w.found[a.target.Thread] {
		return "", lost
	}
	w.api.begin(a.target.Thread, nil)
	id, err := a.Agent.Start(ctx, turn)
	if lost != nil {
		return "", lost
	}
	return id, err
}

// Steer implements [handoff.Controls].
func (a *ladderAgent) Steer(ctx context.Context, turn handoff.TurnID, input []handoff.Part) error {
	if err := a.world.Failure("steer "+a.target.Thread, a.target.Server); err != nil {
		return err
	}
	return a.Controls.Steer(ctx, turn, input)
}

// Interrupt implements [handoff.Controls].
func (a *ladderAgent) Interrupt(ctx context.Context, turn handoff.TurnID) error {
	if err := a.world.Failure("interrupt "+a.target.Thread, a.target.Server); err != nil {
		return err
	}
	return a.Controls.Interrupt(ctx, turn)
}

// ladderTools are what the model of a ladder may use: commands, with a question or without.
type ladderTools struct{}

// Tools implements the workspace of an agent.
func (ladderTools) Tools() []workspace.Tool {
	return []workspace.Tool{{Name: "exec", Kind: handoff.ItemCommand, Parameters: map[string]any{"type": "object"}}}
}

// Allowed implements the workspace of an agent.
func (ladderTools) Allowed() []string { return []string{"exec"} }

// Run implements the workspace of an agent.
func (ladderTools) Run(ctx context.Context, _ string, args json.RawMessage, c workspace.Call) workspace.Result {
	var with struct {
		Command string
		Outside bool
	}
	_ = json.Unmarshal(args, &with)
	if with.Outside {
		yes, err := c.Ask(ctx, handoff.Question{
			Kind: handoff.QuestionCommand, Command: with.Command, Cwd: "/src",
			Decisions: []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline}, Asked: time.Now(),
		})
		if err != nil || !yes {
			return workspace.Result{Text: "Error: they said no", Failed: true}
		}
	}
	return workspace.Result{Exit: new(0)}
}

// A ladderAPI is a Responses API whose model does in each thread what the ladder says of its turns.
type ladderAPI struct {
	plans map[string][]string // Set once: by what the ladder calls the thread; "*": any

	mu    sync.Mutex
	names map[string]string   // Guarded by mu, like all that follows: what the ladder calls a thread
	left  map[string][]string // the steps of the turn that runs, by thread
	asked int
}

func newLadderAPI(plans map[string][]string) *ladderAPI {
	return &ladderAPI{plans: plans, names: map[string]string{}, left: map[string][]string{}}
}

// call tells what the ladder calls a thread.
func (a *ladderAPI) call(thread, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.names[thread] = name
}

// begin tells that a turn begins, and what it does; nil: what the ladder says.
func (a *ladderAPI) begin(thread string, plan []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if plan == nil {
		plan = a.plans[thread]
	}
	if plan == nil {
		plan = a.plans["*"]
	}
	a.left[thread] = plan
}

// step takes the next step of a thread's turn; "" when it has none.
func (a *ladderAPI) step(key string) (step string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if name := a.names[key]; name != "" {
		key = name
	}
	if left := a.left[key]; len(left) > 0 {
		step, a.left[key] = strings.TrimSpace(left[0]), left[1:]
	}
	return step
}

// ServeHTTP answers a request for a response: with what the model says until it calls a tool, or is done. What it was
// told when it had said everything changes nothing any more.
func (a *ladderAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Thread string `json:"prompt_cache_key"`
	}
	_ = json.NewDecoder(r.Body).Decode(&req)
	a.mu.Lock()
	a.asked++
	id := fmt.Sprint("resp_", a.asked)
	a.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	said := 0
	send := func(kind string, fields map[string]any) {
		fields["type"] = kind
		body, _ := json.Marshal(fields)
		_, _ = fmt.Fprintf(w, "data: %s\n\n", body)
	}
	item := func(it map[string]any) {
		it["id"] = fmt.Sprint(id, "_", said)
		send("response.output_item.added", map[string]any{"output_index": said, "item": map[string]any{"type": it["type"], "id": it["id"], "role": it["role"]}})
		send("response.output_item.done", map[string]any{"output_index": said, "item": it})
		said++
	}
	send("response.created", map[string]any{"response": map[string]any{"id": id, "output": []any{}}})
	for {
		after, rest, _ := strings.Cut(a.step(req.Thread), " ")
		verb, text, _ := strings.Cut(rest, " ")
		if d, err := time.ParseDuration(after); err == nil {
			select {
			case <-time.After(d):
			case <-r.Context().Done():
				return
			}
		}
		switch verb {
		case "message":
			item(ladderMessage(text))
			continue
		case "command", "ask":
			args, _ := json.Marshal(map[string]any{"command": text, "outside": verb == "ask"})
			item(map[string]any{"type": "function_call", "call_id": id, "name": "exec", "arguments": string(args)})
		case "completed":
			if text != "" {
				item(ladderMessage(text))
			}
		case "failed": // after the model began to answer: before that it would be asked again
			send("response.output_item.added", map[string]any{"output_index": said, "item": map[string]any{"type": "reasoning", "id": id + "_thinks", "summary": []any{}}})
		}
		kind, fault := "response.completed", any(nil)
		if verb == "failed" {
			kind, fault = "response.failed", map[string]any{"code": "server_error", "message": "out of luck"}
		}
		send(kind, map[string]any{"response": map[string]any{"id": id, "status": kind[len("response."):], "output": []any{}, "error": fault}})
		return
	}
}

func ladderMessage(text string) map[string]any {
	return map[string]any{"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": text}}}
}

// inMemory reaches a handler without a network, which knows no fake time.
type inMemory struct{ handler http.Handler }

// RoundTrip implements [http.RoundTripper].
func (m inMemory) RoundTrip(req *http.Request) (*http.Response, error) {
	body, out := io.Pipe()
	ctx, cancel := context.WithCancel(req.Context())
	w := &answering{header: http.Header{}, status: http.StatusOK, begun: make(chan struct{}), out: out}
	go func() {
		m.handler.ServeHTTP(w, req.WithContext(ctx))
		w.begin()
		_ = out.Close()
	}()
	<-w.begun
	stop := context.AfterFunc(req.Context(), func() { _ = body.CloseWithError(context.Cause(req.Context())) })
	return &http.Response{StatusCode: w.status, Header: w.header, Body: read{body, func() { stop(); cancel() }}, Request: req}, nil
}

// answering is where the handler writes.
type answering struct {
	header http.Header
	status int
	once   sync.Once
	begun  chan struct{}
	out    *io.PipeWriter
}

func (w *answering) Header() http.Header { return w.header }

func (w *answering) WriteHeader(status int) { w.status = status; w.begin() }

func (w *answering) Write(p []byte) (int, error) { w.begin(); return w.out.Write(p) }

func (w *answering) begin() { w.once.Do(func() { close(w.begun) }) }

// read is a body whose reader went away when it is closed.
type read struct {
	*io.PipeReader
	left func()
}

func (r read) Close() error { r.left(); return r.PipeReader.Close() }

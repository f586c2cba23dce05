package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// A fakeProvider is the model behind a real codex: the Responses API as far as codex uses it. What the
// last message of the user says decides what it does:
//
//	run CMD           calls the shell tool with CMD, then says "ran CMD"
//	list N            says N messages
//	slow SECONDS      streams an answer for that long
//	held              begins to speak, and ends once the test lets it go
//	anything else     says "answer N to: ..." at once
type fakeProvider struct {
	*httptest.Server
	script func(*providerStream, []providerItem) bool // Set once before it is asked; nil: the verbs above
	goes   chan struct{}                              // Closed by letsGo: nothing is held any more
	letsGo func()                                     // Set once; may be called more than once

	mu     sync.Mutex
	asked  []string // Guarded by mu: the last user message of each request, oldest first
	bodies []string // Guarded by mu
}

func newProvider(t testing.TB) *fakeProvider {
	p := &fakeProvider{goes: make(chan struct{})}
	p.letsGo = sync.OnceFunc(func() { close(p.goes) })
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	t.Cleanup(p.letsGo)
	return p
}

// providerItem is an input item of a Responses request, as far as it matters here.
type providerItem struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Output  json.RawMessage `json:"output"`
}

func (p *fakeProvider) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	if err != nil || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/responses") {
		http.Error(w, "not here", http.StatusNotFound)
		return
	}
	var req struct {
		Input []providerItem `json:"input"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	user, done := lastUser(req.Input)
	p.mu.Lock()
	p.asked = append(p.asked, user)
	p.bodies = append(p.bodies, string(body))
	n := len(p.asked)
	p.mu.Unlock()
	s := &providerStream{w: w, r: r, n: n}
	w.Header().Set("Content-Type", "text/event-stream")
	s.event("response.created", map[string]any{"response": map[string]any{"id": s.id(), "status": "in_progress"}})
	if p.script != nil {
		if p.script(s, req.Input) {
			s.completed()
		}
		return
	}
	verb, rest, _ := strings.Cut(user, " ")
	switch {
	case verb == "run" && !done:
		s.shell(rest)
	case verb == "run":
		s.say("ran "+rest, 0)
	case verb == "list":
		var n int
		_, _ = fmt.Sscan(rest, &n)
		for i := range n {
			s.say(fmt.Sprintf("Entry %d: I looked at the tests of that package, and none of them fails.", i), 0)
		}
	case verb == "slow":
		var seconds float64
		_, _ = fmt.Sscan(rest, &seconds)
		s.say("slow answer to: "+user, time.Duration(seconds*float64(time.Second)))
	case verb == "held":
		s.held = p.goes
		s.say("held answer to: "+user, 0)
	default:
		s.say("answer to: "+user, 0)
	}
	s.completed()
}

// completed ends an answer.
func (s *providerStream) completed() {
	s.event("response.completed", map[string]any{"response": map[string]any{
		"id": s.id(), "status": "completed", "output": []any{},
		"usage": map[string]any{"input_tokens": 100, "output_tokens": 10, "total_tokens": 110,
			"input_tokens_details": map[string]any{"cached_tokens": 0}, "output_tokens_details": map[string]any{"reasoning_tokens": 0}},
	}})
}

// lastUser returns the last message of the user, and whether a tool's output follows it.
func lastUser(items []providerItem) (text string, done bool) {
	for _, it := range items {
		if it.Type == "function_call_output" && strings.Contains(string(it.Output), "") && !strings.Contains(string(it.Content), "caller_words") {
			done = text != ""
			continue
		}
		if it.Role != "user" {
			continue
		}
		var parts []struct{ Text string }
		if json.Unmarshal(it.Content, &parts) == nil && len(parts) > 0 && !strings.HasPrefix(parts[0].Text, "<") {
			text, done = parts[len(parts)-1].Text, false
		}
	}
	return text, done
}

// prompts returns the user messages that began a turn, each as often as it was asked.
func (p *fakeProvider) prompts() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

type providerStream struct {
	w http.ResponseWriter
	r *http.Request
	n int

	items int             // that were sent
	held  <-chan struct{} // what is said goes on when it is closed; nil: at once
}

func (s *providerStream) id() string { return fmt.Sprintf("resp_%d", s.n) }

func (s *providerStream) event(kind string, data map[string]any) {
	data["type"] = kind
	b, _ := json.Marshal(data)
	fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", kind, b)
	s.w.(http.Flusher).Flush()
}

func (s *providerStream) say(text string, over time.Duration) {
	at := s.next()
	item := map[string]any{"type": "message", "id": fmt.Sprintf("msg_%d_%d", s.n, at), "role": "assistant", "status": "in_progress", "content": []any{}}
	s.event("response.output_item.added", map[string]any{"output_index": at, "item": item})
	words := strings.SplitAfter(text, " ")
	for i, word := range words {
		if i == 1 && s.held != nil {
			select {
			case <-s.held:
			case <-s.r.Context().Done():
				return
			}
		}
		s.event("response.output_text.delta", map[string]any{"item_id": item["id"], "output_index": at, "content_index": 0, "delta": word})
		select {
		case <-time.After(over / time.Duration(len(words))):
		case <-s.r.Context().Done():
			return
		}
	}
	item["status"] = "completed"
	item["content"] = []any{map[string]any{"type": "output_text", "text": text, "annotations": []any{}}}
	s.event("response.output_item.done", map[string]any{"output_index": at, "item": item})
}

// next counts the items of an answer.
func (s *providerStream) next() int {
	s.items++
	return s.items - 1
}

func (s *providerStream) shell(command string) {
	s.tool("", "exec_command", map[string]any{"cmd": command})
}

// tool calls a tool of codex, or with a namespace one of an MCP server.
func (s *providerStream) tool(namespace, name string, arguments map[string]any) {
	at := s.next()
	args, _ := json.Marshal(arguments)
	item := map[string]any{"type": "function_call", "id": fmt.Sprintf("fc_%d_%d", s.n, at), "call_id": fmt.Sprintf("call_%d_%d", s.n, at),
		"name": name, "arguments": string(args), "status": "completed"}
	if namespace != "" {
		item["namespace"] = namespace
	}
	s.event("response.output_item.added", map[string]any{"output_index": at, "item": item})
	s.event("response.output_item.done", map[string]any{"output_index": at, "item": item})
}

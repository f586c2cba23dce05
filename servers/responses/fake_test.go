package responses

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A fake is a Responses API that does what a script says. It is as strict as the real one about ids, calls and
// their outputs, and it can misbehave.
type fake struct {
	t      testing.TB
	server *httptest.Server
	script func(fakeRequest) fakeReply // Set once

	mu       sync.Mutex
	requests []fakeRequest                // Guarded by mu
	stored   map[string][]json.RawMessage // Guarded by mu: whole histories, by response
	faults   []func(http.ResponseWriter, fakeRequest) bool
	released chan struct{}
	once     sync.Once
}

// fakeRequest is one request, with the history as the model sees it.
type fakeRequest struct {
	Model        string            `json:"model"`
	Input        []json.RawMessage `json:"input"`
	Previous     string            `json:"previous_response_id"`
	Store        bool              `json:"store"`
	Stream       bool              `json:"stream"`
	Instructions string            `json:"instructions"`
	Tools        json.RawMessage   `json:"tools"`
	Choice       json.RawMessage   `json:"tool_choice"`
	CacheKey     string            `json:"prompt_cache_key"`
	key          string
	n            int // of the request, from 1
	history      []json.RawMessage
	done         <-chan struct{}
}

// fakeReply is one response.
type fakeReply struct {
	items  []object
	wait   bool   // hold the stream after the first item until release
	failed string // a code: the response fails after its items
	status string // "" is completed
}

func newFake(t testing.TB, script func(fakeRequest) fakeReply) *fake {
	f := &fake{t: t, script: script, stored: map[string][]json.RawMessage{}, released: make(chan struct{})}
	f.server = httptest.NewServer(f)
	t.Cleanup(f.server.Close)
	t.Cleanup(f.release)
	return f
}

func (f *fake) release() { f.once.Do(func() { close(f.released) }) }

// fault has the next request answered by a function, if it says that it did.
func (f *fake) fault(answer func(http.ResponseWriter, fakeRequest) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, answer)
}

// got returns the requests so far.
func (f *fake) got() []fakeRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	var req fakeRequest
	if err != nil || json.Unmarshal(data, &req) != nil || r.URL.Path != "/v1/responses" || r.Method != http.MethodPost {
		refuse(w, http.StatusNotFound, "", "Invalid URL")
		return
	}
	req.key, req.done = r.Header.Get("Authorization"), r.Context().Done()
	f.mu.Lock()
	req.n = len(f.requests) + 1
	f.requests = append(f.requests, req)
	var fault func(http.ResponseWriter, fakeRequest) bool
	if len(f.faults) > 0 {
		fault, f.faults = f.faults[0], f.faults[1:]
	}
	before, known := f.stored[req.Previous]
	f.mu.Unlock()
	if fault != nil && fault(w, req) {
		return
	}
	if req.Previous != "" && !known {
		refuse(w, http.StatusBadRequest, "previous_response_not_found", "Previous response with id '"+req.Previous+"' not found.")
		return
	}
	req.history = slices.Concat(before, req.Input)
	if why := invalid(req); why != "" {
		f.t.Errorf("request %d: %s", req.n, why)
		refuse(w, http.StatusBadRequest, "", why)
		return
	}
	f.stream(w, req, f.script(req))
}

// invalid is what the real API would refuse.
func invalid(req fakeRequest) string {
	open := map[string]bool{}
	for i, raw := range req.history {
		s := look(raw)
		switch {
		case s.isCall():
			open[s.CallID] = true
		case s.isOutput() && !open[s.CallID]:
			return "No tool call found for function call output with call_id " + s.CallID
		case s.isOutput():
			delete(open, s.CallID)
		case s.Type == typeReasoning && i+1 == len(req.history):
			return "Item of type 'reasoning' was provided without its required following item."
		}
		if i >= len(req.history)-len(req.Input) && s.ID != "" {
			return "Item with id '" + s.ID + "' not found."
		}
	}
	for id := range open {
		return "No tool output found for function call " + id
	}
	if !req.Stream || len(req.Input) == 0 {
		return "it does not stream, or has no input"
	}
	if !strings.Contains(string(req.Choice), `"allowed_tools"`) && string(req.Choice) != `"none"` {
		return "tool_choice is " + string(req.Choice)
	}
	return ""
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object{"error": object{"message": message, "type": "invalid_request_error", "code": code, "param": nil}})
}

// frames writes events with their numbers.
type frames struct {
	w   http.ResponseWriter
	seq int
}

func (f *frames) send(kind string, fields object) {
	fields["type"], fields["sequence_number"] = kind, f.seq
	f.seq++
	_, _ = fmt.Fprintf(f.w, "event: %s\ndata: %s\n\n", kind, encode(fields))
	if flusher, ok := f.w.(http.Flusher); ok {
		flusher.Flush()
	}
}

// stream writes a response as the real API does.
func (f *fake) stream(w http.ResponseWriter, req fakeRequest, reply fakeReply) {
	id := fmt.Sprint("resp_", req.n, "_", strings.TrimPrefix(f.server.URL, "http://127.0.0.1:"))
	w.Header().Set("Content-Type", "text/event-stream")
	out := &frames{w: w}
	response := func(status string, items []object) object {
		return object{"id": id, "object": "response", "status": status, "output": append([]object{}, items...), "error": nil,
			"usage": object{"input_tokens": 10 * len(req.history), "output_tokens": 7, "total_tokens": 10*len(req.history) + 7}}
	}
	out.send("response.created", object{"response": response("in_progress", nil)})
	out.send("response.in_progress", object{"response": response("in_progress", nil)})
	history := req.history
	for i, it := range reply.items {
		if it["id"] == nil {
			it["id"] = fmt.Sprint(id, "_item_", i)
		}
		item(out, i, it)
		history = append(slices.Clip(history), encode(it))
		if reply.wait && i == 0 {
			select {
			case <-f.released:
			case <-req.done:
				return
			}
		}
	}
	if reply.failed != "" {
		r := response("failed", nil)
		r["error"] = object{"code": reply.failed, "message": "out of luck"}
		out.send("response.failed", object{"response": r})
		return
	}
	if req.Store {
		f.mu.Lock()
		f.stored[id] = history
		f.mu.Unlock()
	}
	status := "completed"
	if reply.status != "" {
		status = reply.status
	}
	out.send("response."+status, object{"response": response(status, reply.items)})
}

// item writes one item.
func item(out *frames, at int, it object) {
	added := object{"type": it["type"], "id": it["id"]}
	for _, name := range []string{"role", "call_id", "name"} {
		if it[name] != nil {
			added[name] = it[name]
		}
	}
	out.send("response.output_item.added", object{"output_index": at, "item": added})
	if content, ok := it["content"].([]object); ok {
		for part, c := range content {
			for word := range strings.SplitAfterSeq(c["text"].(string), " ") {
				out.send("response.output_text.delta", object{"output_index": at, "item_id": it["id"], "content_index": part, "delta": word})
			}
		}
	}
	if args, ok := it["arguments"].(string); ok {
		out.send("response.function_call_arguments.delta", object{"output_index": at, "item_id": it["id"], "delta": args})
	}
	out.send("response.output_item.done", object{"output_index": at, "item": it})
}

func says(words string) object {
	return object{"type": "message", "role": "assistant", "content": []object{{"type": "output_text", "text": words, "annotations": []object{}}}}
}

func calls(id, name string, args object) object {
	return object{"type": "function_call", "call_id": id, "name": name, "arguments": string(encode(args))}
}

// lastSaid is the newest words of a person, and whether a tool's output came after them.
func (r fakeRequest) lastSaid() (words string, answered bool) {
	for _, raw := range r.history {
		switch s := look(raw); {
		case s.Role == "user":
			words, answered = s.text(), false
		case s.isOutput():
			answered = true
		}
	}
	return words, answered
}

// lastOutput is what the newest call gave back.
func (r fakeRequest) lastOutput() string {
	text := ""
	for _, raw := range r.history {
		if s := look(raw); s.isOutput() {
			text = s.text()
		}
	}
	return text
}

// pictures counts the pictures in items.
func pictures(items []json.RawMessage) int {
	n := 0
	for _, it := range items {
		n += strings.Count(string(it), `"input_image"`)
	}
	return n
}

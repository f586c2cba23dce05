package simulator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
	"switchboard/servers/responses/wire"
)

// Bounds.
const (
	maxBody   = 64 << 20 // bytes of a request
	maxStored = 1000     // responses; older ones are dropped, as the real API does after a while
)

// An API answers requests for responses, and keeps the responses that it is asked to store. It is safe for concurrent
// use.
type API struct {
	Wrong  func(why string)    // Set once, before it serves: is told of requests that the real API would refuse; may be nil
	script func(Request) Reply // Set once
	speed  float64             // Set once
	name   string              // Set once: part of every id, so that two APIs do not share ids

	mu       sync.Mutex
	received int                          // Guarded by mu, like all below: requests in all
	stored   map[string][]json.RawMessage // whole histories, by id of the response
	order    []string                     // keys of stored, oldest first
	released chan struct{}                // closed by Release
	once     sync.Once
}

// A Reply is one response.
type Reply struct {
	Items  []Item
	Wait   bool   // pause the stream after the first item until [API.Release]
	Failed string // error code with which the response fails after its items; "" for none
	Status string // status of the response; "" is completed
}

// New returns an API that answers with a script, which must be safe for concurrent use. speed divides all delays; 0 is
// 1.
func New(name string, speed float64, script func(Request) Reply) *API {
	if speed <= 0 {
		speed = 1
	}
	return &API{script: script, speed: speed, name: name, stored: map[string][]json.RawMessage{},
		released: make(chan struct{})}
}

// Release ends every [Reply.Wait], now and in the future.
func (a *API) Release() { a.once.Do(func() { close(a.released) }) }

// Forget drops all stored responses.
func (a *API) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.stored)
	a.order = nil
}

// ServeHTTP answers POST /v1/responses.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var req Request
	if err != nil || handoff.TooDeep(data) || json.Unmarshal(data, &req) != nil || r.URL.Path != "/v1/responses" ||
		r.Method != http.MethodPost {
		Refuse(w, http.StatusNotFound, "", "Invalid URL")
		return
	}
	if !a.take(&req) {
		Refuse(w, http.StatusBadRequest, "previous_response_not_found",
			"Previous response with id '"+req.Previous+"' not found.")
		return
	}
	if why := invalid(req); why != "" {
		if a.Wrong != nil {
			a.Wrong(why)
		}
		Refuse(w, http.StatusBadRequest, "", why)
		return
	}
	a.stream(r.Context(), w, req, a.script(req))
}

// take numbers a request, and sets its History. It reports whether its Previous is known.
func (a *API) take(req *Request) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.received++
	req.N = a.received
	before, known := a.stored[req.Previous]
	req.History = slices.Concat(before, req.Input)
	return known || req.Previous == ""
}

// keep stores the history of a response.
func (a *API) keep(id string, history []json.RawMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stored[id], a.order = history, append(a.order, id)
	if len(a.order) > maxStored {
		delete(a.stored, a.order[0])
		a.order = a.order[1:]
	}
}

// invalid returns the error with which the real API would refuse a request, "" for none.
func invalid(req Request) string {
	open := map[string]bool{}
	for i, raw := range req.History {
		s := wire.Read(raw)
		switch {
		case s.Type == wire.Call || s.Type == wire.CustomCall:
			open[s.CallID] = true
		case s.IsOutput() && !open[s.CallID]:
			return "No tool call found for function call output with call_id " + s.CallID
		case s.IsOutput():
			delete(open, s.CallID)
		case s.Type == wire.Reasoning && i+1 == len(req.History):
			return "Item of type 'reasoning' was provided without its required following item."
		}
		if i >= len(req.History)-len(req.Input) && s.ID != "" {
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

// Refuse answers with an error in the form of the real API.
func Refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(wire.Encode(object{"error": object{"message": message, "type": "invalid_request_error", "code": code,
		"param": nil}}))
}

// stream writes a response in the form of the real API.
func (a *API) stream(ctx context.Context, w http.ResponseWriter, req Request, reply Reply) {
	id := fmt.Sprint("resp_", req.N, "_", a.name)
	w.Header().Set("Content-Type", "text/event-stream")
	out := &frames{w: w, ctx: ctx, speed: a.speed}
	response := func(status string, items ...object) object {
		return object{"id": id, "object": "response", "status": status, "output": append([]object{}, items...), "error": nil,
			"usage": object{"input_tokens": 10 * len(req.History), "output_tokens": 7, "total_tokens": 10*len(req.History) + 7}}
	}
	out.send("response.created", object{"response": response("in_progress")})
	out.send("response.in_progress", object{"response": response("in_progress")})
	history := slices.Clip(req.History)
	var items []object
	for i, it := range reply.Items {
		said := it.withID(fmt.Sprint(id, "_item_", i))
		if !out.item(i, it, said) {
			return
		}
		history, items = append(history, wire.Encode(said)), append(items, said)
		if reply.Wait && i == 0 {
			select {
			case <-a.released:
			case <-ctx.Done():
				return
			}
		}
	}
	if reply.Failed != "" {
		r := response("failed")
		r["error"] = object{"code": reply.Failed, "message": "out of luck"}
		out.send("response.failed", object{"response": r})
		return
	}
	if req.Store {
		a.keep(id, history)
	}
	status := "completed"
	if reply.Status != "" {
		status = reply.Status
	}
	out.send("response."+status, object{"response": response(status, items...)})
}

// frames writes numbered events.
type frames struct {
	w     http.ResponseWriter
	ctx   context.Context // of the request
	speed float64
	seq   int
}

func (f *frames) send(kind string, fields object) {
	fields["type"], fields["sequence_number"] = kind, f.seq
	f.seq++
	_, _ = fmt.Fprintf(f.w, "event: %s\ndata: %s\n\n", kind, wire.Encode(fields)) // ctx ends when the client is gone
	if flusher, ok := f.w.(http.Flusher); ok {
		flusher.Flush()
	}
}

// wait waits for a duration divided by speed. It returns false when the client is gone.
func (f *frames) wait(d time.Duration) bool {
	if d <= 0 {
		return f.ctx.Err() == nil
	}
	select {
	case <-time.After(time.Duration(float64(d) / f.speed)):
		return true
	case <-f.ctx.Done():
		return false
	}
}

// item writes the events of one item. It returns false when the client is gone.
func (f *frames) item(at int, it Item, said object) bool {
	added := object{"type": said["type"], "id": said["id"]}
	for _, name := range []string{"role", "call_id", "name"} {
		if said[name] != nil {
			added[name] = said[name]
		}
	}
	f.send("response.output_item.added", object{"output_index": at, "item": added})
	parts, _ := said["content"].([]object)
	for part, content := range parts {
		text, _ := content["text"].(string)
		for word := range strings.SplitAfterSeq(text, " ") {
			if !f.wait(it.Every) {
				return false
			}
			f.send("response.output_text.delta", object{"output_index": at, "item_id": said["id"], "content_index": part,
				"delta": word})
		}
	}
	if !f.wait(it.For) {
		return false
	}
	if args, ok := said["arguments"].(string); ok {
		f.send("response.function_call_arguments.delta", object{"output_index": at, "item_id": said["id"], "delta": args})
	}
	f.send("response.output_item.done", object{"output_index": at, "item": said})
	return true
}

package responses

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// An oracle reads a stream as the strictest SDK does (openai-node 7, lib/responses): known types only, append-only
// indices, ids that stay, and one terminal event, whose response is what the events made. It is a port of its rules.
type oracle struct {
	next   int
	id     string
	output []map[string]any
	closed []bool
	over   string
	last   map[string]any // the terminal response
}

// bodies are the types of events that are about an item, with the type of that item.
var bodies = map[string]string{
	evText: typeMessage, evTextDone: typeMessage, evPart: typeMessage, evPartDone: typeMessage,
	evSummary: typeThought, evSummaryEnd: typeThought, evThought: typeThought, evThoughtEnd: typeThought,
	evArgs: typeCall, evArgsDone: typeCall, evCalling: typeCall, evCalled: typeCall, evCallFailed: typeCall,
}

// read takes frames as they go over the wire.
func (o *oracle) read(frames []byte) error {
	for block := range strings.SplitSeq(strings.TrimSuffix(string(frames), "\n\n"), "\n\n") {
		if strings.HasPrefix(block, ":") || block == "" {
			continue
		}
		head, data, ok := strings.Cut(block, "\ndata: ")
		if !ok || strings.Contains(data, "\n") {
			return fmt.Errorf("no frame: %q", block)
		}
		var e map[string]any
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return err
		}
		if head != "event: "+fmt.Sprint(e["type"]) {
			return fmt.Errorf("%s has %v", head, e["type"])
		}
		if err := o.event(e); err != nil {
			return fmt.Errorf("%v %v: %w", e["sequence_number"], e["type"], err)
		}
	}
	return nil
}

func (o *oracle) event(e map[string]any) error {
	typ, _ := e["type"].(string)
	if _, has := e["error"]; has {
		return fmt.Errorf("a top-level error kills openai-go's stream")
	}
	if o.over != "" {
		return fmt.Errorf("after %s", o.over)
	}
	if e["sequence_number"] != float64(o.next) {
		return fmt.Errorf("number, want %d", o.next)
	}
	o.next++
	switch typ {
	case evCreated, evQueued, evProgress, evCompleted, evFailed, evIncomplete:
		return o.lifecycle(typ, e)
	case evAdded:
		return o.added(e)
	case evDone:
		return o.done(e)
	}
	want, known := bodies[typ]
	if !known {
		return fmt.Errorf("an unknown type")
	}
	at, it, err := o.item(e)
	if err != nil {
		return err
	}
	if it["type"] != want || e["item_id"] != it["id"] || o.closed[at] {
		return fmt.Errorf("does not fit %v, closed %v", it, o.closed[at])
	}
	return o.body(typ, e, at, it)
}

func (o *oracle) lifecycle(typ string, e map[string]any) error {
	resp, ok := e["response"].(map[string]any)
	if !ok {
		return fmt.Errorf("has no response")
	}
	output, ok := resp["output"].([]any)
	switch {
	case !ok:
		return fmt.Errorf("output is no list")
	case (typ == evCreated) != (o.next == 1):
		return fmt.Errorf("created is the first event")
	case o.id != "" && resp["id"] != o.id:
		return fmt.Errorf("the id changed")
	case typ == evCreated && (len(output) > 0 || resp["usage"] != nil || resp["object"] != "response"):
		return fmt.Errorf("begins with %v", resp)
	}
	o.id = fmt.Sprint(resp["id"])
	if typ != evCompleted && typ != evFailed && typ != evIncomplete {
		return nil
	}
	o.over, o.last = typ, resp
	for at, closed := range o.closed {
		if !closed {
			return fmt.Errorf("output %d is open", at)
		}
	}
	if resp["status"] == cancelled {
		if len(output) > 0 || resp["error"] != nil {
			return fmt.Errorf("cancelled with %v", resp)
		}
		return nil
	}
	if len(output) != len(o.output) {
		return fmt.Errorf("%d items, want %d", len(output), len(o.output))
	}
	for at, it := range o.output {
		if !reflect.DeepEqual(it, output[at]) {
			return fmt.Errorf("item %d is\n%v, want\n%v", at, output[at], it)
		}
	}
	return nil
}

func (o *oracle) added(e map[string]any) error {
	it, _ := e["item"].(map[string]any)
	if e["output_index"] != float64(len(o.output)) {
		return fmt.Errorf("index %v, want %d", e["output_index"], len(o.output))
	}
	id, _ := it["id"].(string)
	for _, other := range o.output {
		if other["id"] == id {
			return fmt.Errorf("id %q twice", id)
		}
	}
	for at, closed := range o.closed {
		if !closed {
			return fmt.Errorf("output %d is still written", at)
		}
	}
	if id == "" {
		return fmt.Errorf("no id")
	}
	switch it["type"] {
	case typeMessage:
		if content, ok := it["content"].([]any); !ok || len(content) > 0 {
			return fmt.Errorf("content %v", it["content"])
		}
	case typeThought:
		if summary, ok := it["summary"].([]any); !ok || len(summary) > 0 {
			return fmt.Errorf("summary %v", it["summary"])
		}
	case typeCall:
		if it["arguments"] != "" || it["server_label"] == nil || it["name"] == nil {
			return fmt.Errorf("call %v", it)
		}
	case typeApproval:
		if args, _ := it["arguments"].(string); !json.Valid([]byte(args)) {
			return fmt.Errorf("arguments %q", args)
		}
	default:
		return fmt.Errorf("item %v", it["type"])
	}
	o.output, o.closed = append(o.output, it), append(o.closed, false)
	return nil
}

func (o *oracle) item(e map[string]any) (int, map[string]any, error) {
	at, ok := e["output_index"].(float64)
	if !ok || int(at) >= len(o.output) {
		return 0, nil, fmt.Errorf("index %v of %d", e["output_index"], len(o.output))
	}
	return int(at), o.output[int(at)], nil
}

func (o *oracle) done(e map[string]any) error {
	at, was, err := o.item(e)
	if err != nil {
		return err
	}
	it, _ := e["item"].(map[string]any)
	if o.closed[at] || it["id"] != was["id"] || it["type"] != was["type"] || it["status"] == inProgress {
		return fmt.Errorf("%v becomes %v, closed %v", was, it, o.closed[at])
	}
	for _, made := range []string{"content", "summary", "arguments"} {
		if !reflect.DeepEqual(was[made], it[made]) {
			return fmt.Errorf("%s was written as %v, and is %v", made, was[made], it[made])
		}
	}
	o.output[at], o.closed[at] = it, true
	return nil
}

// body applies what an event adds to its item.
func (o *oracle) body(typ string, e map[string]any, at int, it map[string]any) error {
	list, index := "content", e["content_index"]
	if it["type"] == typeThought {
		list, index = "summary", e["summary_index"]
	}
	parts, _ := it[list].([]any)
	if typ == evPart || typ == evSummary {
		if index != float64(len(parts)) {
			return fmt.Errorf("part %v of %d", index, len(parts))
		}
		it[list] = append(parts, e["part"])
		return nil
	}
	if it["type"] == typeCall {
		return o.call(typ, e, it)
	}
	if index != float64(len(parts)-1) {
		return fmt.Errorf("part %v of %d", index, len(parts))
	}
	part := parts[len(parts)-1].(map[string]any)
	switch typ {
	case evText, evThought:
		delta, _ := e["delta"].(string)
		if delta == "" {
			return fmt.Errorf("an empty delta")
		}
		part["text"] = part["text"].(string) + delta
	case evTextDone, evThoughtEnd:
		if part["text"] != e["text"] {
			return fmt.Errorf("%v was written, and is %v", part["text"], e["text"])
		}
	case evPartDone, evSummaryEnd:
		if !reflect.DeepEqual(part, e["part"]) {
			return fmt.Errorf("%v was written, and is %v", part, e["part"])
		}
	}
	return nil
}

func (o *oracle) call(typ string, e, it map[string]any) error {
	args := it["arguments"].(string)
	switch typ {
	case evArgs:
		it["arguments"] = args + e["delta"].(string)
	case evArgsDone:
		if args != e["arguments"] || !json.Valid([]byte(args)) {
			return fmt.Errorf("arguments %q, and %v", args, e["arguments"])
		}
	case evCalled, evCallFailed:
		if !json.Valid([]byte(args)) {
			return fmt.Errorf("called with %q", args)
		}
	}
	return nil
}

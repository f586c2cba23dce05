package realtime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

// take lets the model take the oldest event that it was sent.
func (w *streamWorld) take() {
	if len(w.inbox) == 0 {
		return
	}
	event := gjson.Parse(w.inbox[0])
	w.inbox = w.inbox[1:]
	id := event.Get("event_id").Str
	switch event.Get("type").Str {
	case events.TypeSessionUpdate:
		if strings.HasPrefix(id, "c") && w.choose(3) == 0 {
			w.refuse(id, "invalid_value")
			return
		}
		w.tools = orRaw(event.Get("session.tools"), w.tools)
		w.says = orRaw(event.Get("session.instructions"), w.says)
		w.emit(events.TypeSessionUpdated, `"session":`+w.session())
	case events.TypeItemCreate:
		w.create(event)
	case events.TypeItemDelete:
		if item := event.Get("item_id").Str; !w.remove(item) {
			w.refuse(id, "item_delete_invalid_item_id")
		} else {
			w.emit(events.TypeItemDeleted, `"item_id":"`+item+`"`)
		}
	case events.TypeCreate:
		w.begin(event)
	case events.TypeCancel:
		if which := event.Get("response_id"); w.run == nil || which.Exists() && which.Str != w.run.id {
			w.refuse(id, "response_cancel_not_active")
			return
		}
		w.end(events.StatusCancelled)
	}
}

func orRaw(r gjson.Result, otherwise string) string {
	if r.Exists() {
		return r.Raw
	}
	return otherwise
}

func (w *streamWorld) refuse(id, code string) {
	w.emit(events.TypeError,
		fmt.Sprintf(`"error":{"type":"invalid_request_error","code":%q,"message":"no","event_id":%q}`, code, id))
}

// create puts an item into the conversation.
func (w *streamWorld) create(event gjson.Result) {
	item := event.Get("item").Raw
	id := event.Get("item.id").Str
	if id == "" {
		w.n++
		id = fmt.Sprint("i", w.n)
		item = `{"id":"` + id + `",` + item[1:]
	}
	at := len(w.items)
	if event.Get("previous_item_id").Str == "root" {
		at = 0
	}
	w.items = slices.Insert(w.items, at, id)
	w.told(id, item, events.TypeItemAdded, events.TypeItemDone)
}

// told tells of an item of the conversation.
func (w *streamWorld) told(id, item string, kinds ...string) {
	previous := "null"
	if i := slices.Index(w.items, id); i > 0 {
		previous = `"` + w.items[i-1] + `"`
	}
	for _, kind := range kinds {
		w.emit(kind, `"previous_item_id":`+previous+`,"item":`+item)
	}
}

// begin begins a response, if none runs: one beside the conversation is whole at once.
func (w *streamWorld) begin(event gjson.Result) {
	beside := event.Get("response.conversation").Str == "none"
	if w.run != nil && !beside {
		w.refuse(event.Get("event_id").Str, events.CodeActive)
		return
	}
	w.n++
	r := &streamResponse{id: fmt.Sprint("r", w.n), metadata: orRaw(event.Get("response.metadata"), "null"),
		conversation: `"conv_1"`, tools: orRaw(event.Get("response.tools"), w.tools)}
	if beside {
		r.conversation = "null"
	}
	w.emit(events.TypeCreated, `"response":`+r.as("in_progress"))
	if beside {
		w.emit(events.TypeDone, `"response":`+r.as(events.StatusCompleted))
		return
	}
	w.run = r
}

func (r *streamResponse) as(status string) string {
	return fmt.Sprintf(`{"id":%q,"object":"realtime.response","status":%q,"output":[%s],"conversation_id":%s,`+
		`"metadata":%s}`, r.id, status, strings.Join(r.output, ","), r.conversation, r.metadata)
}

// speak lets the model go on with its response, or begin one by itself, as when the caller spoke.
func (w *streamWorld) speak() {
	switch {
	case w.run == nil:
		if w.choose(3) == 0 {
			w.begin(gjson.Parse(`{}`))
		}
	case w.run.item == "" && len(w.run.output) > 0 && w.choose(2) == 0:
		w.end(events.StatusCompleted)
	case w.run.item == "":
		w.write()
	case w.choose(8) == 0: // the caller speaks into it
		w.emit(events.TypeSpeechStarted, `"audio_start_ms":1,"item_id":"u"`)
		w.end(events.StatusCancelled)
		w.emit(events.TypeSpeechStopped, `"audio_end_ms":2,"item_id":"u"`)
	case w.choose(2) == 0:
		w.emit(map[string]string{events.ItemMessage: events.TypeSpokenDelta,
			events.ItemCall: events.TypeArguments}[w.run.kind],
			fmt.Sprintf(`"response_id":%q,"item_id":%q,"output_index":%d,"delta":"x"`, w.run.id, w.run.item, len(w.run.output)))
	default:
		w.written(events.StatusCompleted)
	}
}

// write begins an item: words, or a call of a tool that the model has.
func (w *streamWorld) write() {
	w.n++
	r := w.run
	r.item, r.kind = fmt.Sprint("o", w.n), events.ItemMessage
	if tools := gjson.Parse(r.tools).Array(); len(tools) > 0 && w.choose(2) == 0 {
		tool := tools[w.choose(len(tools))]
		r.kind = events.ItemCall
		owner := "theirs_"
		if ourTool(tool) {
			owner = "ours_"
			w.view.hide(r.item)
		}
		r.call = fmt.Sprintf(`"call_id":"%s%d","name":%q,"arguments":"{}"`, owner, w.n, tool.Get("name").Str)
	}
	w.items = append(w.items, r.item)
	w.emit(events.TypeOutputAdded,
		fmt.Sprintf(`"response_id":%q,"output_index":%d,"item":%s`, r.id, len(r.output), r.written("in_progress")))
	w.told(r.item, r.written("in_progress"), events.TypeItemAdded)
}

func (r *streamResponse) written(status string) string {
	if r.kind == events.ItemCall {
		return fmt.Sprintf(`{"id":%q,"type":"function_call","status":%q,%s}`, r.item, status, r.call)
	}
	return fmt.Sprintf(`{"id":%q,"type":"message","role":"assistant","status":%q,"content":[{"type":"output_audio",`+
		`"transcript":"x"}]}`, r.item, status)
}

// written ends the item.
func (w *streamWorld) written(status string) {
	r := w.run
	item := r.written(status)
	if call := gjson.Get(item, "call_id").Str; status == events.StatusCompleted && strings.HasPrefix(call, "ours_") {
		w.outputs[call] += 0 // one is owed
	} else if status == events.StatusCompleted && call != "" {
		w.theirs = append(w.theirs, call)
	}
	index := len(r.output)
	r.output, r.item = append(r.output, item), ""
	w.emit(events.TypeOutputDone, fmt.Sprintf(`"response_id":%q,"output_index":%d,"item":%s`, r.id, index, item))
	if id := gjson.Get(item, "id").Str; slices.Contains(w.items, id) {
		w.told(id, item, events.TypeItemDone)
	}
}

// end ends the response, if one runs.
func (w *streamWorld) end(status string) {
	r := w.run
	if r == nil {
		return
	}
	if r.item != "" {
		w.written(map[bool]string{true: events.StatusCompleted,
			false: events.StatusIncomplete}[status == events.StatusCompleted])
	}
	w.run = nil
	w.emit(events.TypeDone, `"response":`+r.as(status))
}
